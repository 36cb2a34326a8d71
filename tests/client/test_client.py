"""The Python client against a running station: submit, updates that resume, current answers as tables, refusals."""

import asyncio
import itertools
import subprocess
import sys
from datetime import UTC, datetime

import httpx
import pytest

from basestation.station.retention import Budget
from moteloom.client import (
    AsyncQuery,
    AsyncStationClient,
    Query,
    ResultsGoneError,
    StationClient,
    StationError,
    connect,
    connect_async,
)
from moteloom.client.requests import Patience
from moteloom.client.results import ResultReader
from moteloom.station_address import find_station
from tests.client.conftest import served
from tests.client.cutting_proxy import CuttingProxy

QUERY = "SELECT site, temp FROM field [NOW]"


def first(query, count, **more):
    return list(itertools.islice(query.updates(**more), count))


def test_submitted_query_gives_updates_with_rows_and_coverage(station):
    query = station.submit(QUERY, name="all-sites")
    updates = first(query, 5)
    assert [update.number for update in updates] == [1, 2, 3, 4, 5]
    full = next(update for update in query.updates() if update.coverage == {"field": (2, 2)})
    assert sorted(row[0] for row in full.rows) == [3, 4] and full.kind == "window"
    assert full.time.tzinfo is not None and full.time > datetime(2020, 1, 1, tzinfo=UTC)
    assert station.query("all-sites").number == query.number and query.number in [q.number for q in station.queries()]
    query.pause()
    assert query.state == "paused"
    query.resume()
    query.stop()
    assert query.state == "stopped" and repr(query) == f"<Query {query.number}, stopped: {QUERY}>"


@pytest.mark.promise("resume")
def test_updates_go_on_behind_a_number_in_another_client(running, station):
    query = station.submit(QUERY)
    before = first(query, 4)
    with connect(running.url, running.token) as other:
        after = first(other.query(query.number), 4, after=before[-1].number, epoch=before[-1].epoch)
    assert [update.number for update in before + after] == list(range(1, 9))
    query.stop()


@pytest.mark.promise("resume")
def test_client_cut_at_random_bytes_has_each_update_once(running, counts, rng):
    times = counts(12, 200, 1_000)
    with connect(running.url, running.token) as direct:
        query = direct.submit(QUERY)
        with CuttingProxy(httpx.URL(running.url).netloc.decode().split(":"), rng.random()) as proxy:
            with connect(proxy.url, running.token, patience=60) as station:
                numbers, updates = [], station.query(query.number).updates(wait=1)
                for update in updates:
                    numbers.append(update.number)
                    if proxy.cuts >= times and len(numbers) > 20:
                        break
        assert numbers == list(range(1, len(numbers) + 1)) and proxy.cuts >= times
        query.stop()


def test_updates_end_with_the_query(station):
    query = station.submit(QUERY)
    seen = first(query, 3)
    query.stop()
    rest = list(query.updates(after=seen[-1].number, wait=1))
    assert [update.number for update in rest] == list(range(4, 4 + len(rest)))


def test_current_answer_is_the_sum_of_updates_as_tables(station):
    query = station.submit("SELECT site, temp, temp FROM field [NOW]")
    updates = first(query, 4)
    query.stop()
    answer = query.current()
    assert len(answer) >= len(updates[0].rows) and answer.to_dicts()[0].keys() == {
        "_time", "_used", "_due", "site", "temp", "temp_2",
    }  # fmt: skip
    table = answer.to_arrow()
    assert table.num_rows == len(answer) and str(table.schema[0].type) == "timestamp[ms, tz=UTC]"
    assert answer.to_polars()["site"].to_list() == list(answer.to_pandas()["site"]) == table["site"].to_pylist()
    shown = answer._repr_html_()
    assert "<td>4</td>" in shown and "<svg" in shown and f"<p>{len(answer)} rows</p>" in shown


def test_refused_query_has_its_diagnostics(station):
    with pytest.raises(StationError, match="no column `tmep`") as refused:
        station.submit("SELECT tmep FROM field [NOW]")
    [diagnostic] = refused.value.problem["diagnostics"]
    assert (refused.value.status, diagnostic["code"], diagnostic["column"]) == (422, "SN202", 8)
    assert not refused.value.is_passing


@pytest.mark.parametrize(("call", "status"), [
    (lambda station: station.query(99_999), 404),
    (lambda station: station.query("no such"), 404),
    (lambda station: station.latest("nowhere/../field"), 404),
    (lambda station: station.submit(""), 422),
])  # fmt: skip
def test_requests_that_name_nothing_are_refused(station, call, status):
    with pytest.raises(StationError) as refused:
        call(station)
    assert refused.value.status == status


def test_wrong_token_is_refused(running):
    with connect(running.url, "wrong") as station, pytest.raises(StationError) as refused:
        station.extents()
    assert refused.value.status == 401


def test_extents_latest_and_health(station):
    query = station.submit(QUERY)
    first(query, 3)
    assert [extent["name"] for extent in station.extents()][:1] == ["field"]
    assert {site["site"] for site in station.latest("field")} == {3, 4} and "ok" in station.health()
    query.stop()


def test_results_from_the_wrong_epoch_are_gone(station):
    query = station.submit(QUERY)
    first(query, 1)
    with pytest.raises(ResultsGoneError, match="backup"):
        next(query.updates(after=1, epoch="00000000"))
    query.stop()


def test_current_answer_begins_at_the_first_update_that_is_kept(tmp_path):
    async def ask(number):
        async with connect_async(running.url, running.token) as station:
            return await (await station.query(number)).current()

    with served(tmp_path) as running, connect(running.url, running.token) as station:
        query = station.submit(QUERY)
        first(query, 6)
        running.runner.call(lambda now_ms: running.network.journal.trim(Budget(numbers=2), now_ms))
        for answer in (query.current(), asyncio.run(ask(query.number))):
            assert answer.first > 1 and len(answer) > 0
        assert len(station.get(f"/v1/queries/{query.number}/current", last=100)["windows"]) > 0


def test_async_client_does_the_same(running):
    async def use():
        async with connect_async(running.url, running.token) as station:
            query = await station.submit(QUERY)
            numbers = []
            async for update in query.updates():
                numbers.append(update.number)
                if len(numbers) == 3:
                    break
            with pytest.raises(StationError, match="SELCT"):
                await station.submit("SELCT")
            await query.pause()
            states = [await query.state()]
            await query.resume()
            async for answer in query.answers(last=2):
                if len(answer):
                    break
            await query.stop()
            listed = [each.number async for each in station.queries(state="stopped")]
            assert query.number in listed and "ok" in await station.health()
            assert [job async for job in station.jobs()] == []
            return numbers, [*states, await query.state()], len(await query.current()) > 0, await station.extents()

    numbers, states, has_rows, extents = asyncio.run(use())
    assert numbers == [1, 2, 3] and states == ["paused", "stopped"] and has_rows and extents[0]["name"] == "field"


def test_live_answer_is_that_of_the_newest_windows(station):
    query = station.submit(QUERY)
    first(query, 8)
    found = list(itertools.islice(query.answers(last=3), 4))
    ticks = [sorted({row.line["tick"] for row in answer.rows}) for answer in found]
    assert (
        all(len(each) <= 3 for each in ticks) and ticks[0][0] > 0 and ticks == sorted(ticks) and ticks[0] != ticks[-1]
    )
    query.stop()
    *_, last = query.answers(last=3, wait=1)
    newest = [row for row in query.current().to_dicts() if row["_time"] in {each["_time"] for each in last.to_dicts()}]
    assert last.to_dicts() == newest and len(last) > 0


def test_live_answer_of_a_stream_has_its_newest_ticks_whole(station):
    query = station.submit("SELECT site, temp FROM field")
    first(query, 12)
    query.stop()
    whole = query.current().to_dicts()
    times = sorted({row["_time"] for row in whole})
    for last in 1, 3, 5:
        newest = next(query.answers(last=last)).to_dicts()
        assert newest == [row for row in whole if row["_time"] in times[-last:]], last
    assert len(newest) > 5, "two sites a tick"


@pytest.mark.promise("resume")
def test_live_answer_goes_on_over_cuts(running, rng):
    with connect(running.url, running.token) as direct:
        query = direct.submit(QUERY)
        first(query, 8)
        with CuttingProxy(httpx.URL(running.url).netloc.decode().split(":"), rng.random()) as proxy:
            with connect(proxy.url, running.token, patience=60) as station:
                live = station.query(query.number).answers(last=3, wait=1)
                for answer in live:
                    assert answer.first is None and len({row.line["tick"] for row in answer.rows}) <= 3
                    if proxy.cuts >= 4:
                        proxy.is_cutting = False
                        break
                query.stop()
                *_, answer = (answer, *live)
        assert len(answer) > 0 and answer.to_dicts() == query.current().to_dicts()[-len(answer) :]


def test_live_answer_begins_again_where_updates_were_dropped(tmp_path):
    async def ask():
        async with connect_async(running.url, running.token) as other:
            live = (await other.query(query.number)).answers(last=3, wait=1)
            await anext(live)
            await asyncio.to_thread(drop)
            return [answer async for answer in live][-1]

    def drop():
        page = station.get(f"/v1/queries/{query.number}/current")
        first(query, 6, after=page["next"])
        running.runner.call(lambda now_ms: running.network.journal.trim(Budget(numbers=2), now_ms))
        query.stop()

    with served(tmp_path) as running, connect(running.url, running.token) as station:
        query = station.submit(QUERY)
        first(query, 4)
        live = query.answers(last=3, wait=1)
        next(live)
        drop()
        *_, last = live
        expected = next(query.answers(last=3)).to_dicts()
        assert last.to_dicts() == expected and len(expected) > 0
        query = station.submit(QUERY)
        first(query, 4)
        last = asyncio.run(ask())
        expected = next(query.answers(last=3)).to_dicts()
        assert last.to_dicts() == expected and len(expected) > 0


def test_notebook_shows_a_live_answer_in_one_place(station, monkeypatch):
    class Display:
        """The part of IPython.display that is needed; the cell is interrupted at the third answer."""

        def __init__(self):
            self.shown = []

        def display(self, answer, display_id):
            assert display_id is True
            self.shown.append(answer._repr_html_())
            return self

        def update(self, answer):
            self.shown.append(answer._repr_html_())
            if len(self.shown) == 3:
                raise KeyboardInterrupt

    shown = Display()
    monkeypatch.setitem(sys.modules, "IPython", shown)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    query = station.submit(QUERY)
    first(query, 2)
    query.show()
    assert len(shown.shown) == 3 and len(set(shown.shown)) == 3 and "<svg" in shown.shown[0]
    query.stop()


def test_async_client_has_the_methods_of_the_other():
    for blocking, other in ((StationClient, AsyncStationClient), (Query, AsyncQuery)):
        names = {name for name in vars(blocking) if not name.startswith("_")} - {"show"}
        assert names <= {name for name in vars(other) if not name.startswith("_")}


def test_client_imports_no_engine():
    code = "import moteloom.client, sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("basestation", "acquisition", "innet", "simulator", "numpy", "pyarrow", "pandas", "fastapi"):
        assert f"'{name}'" not in loaded


# --- without a station ---


def test_no_station_is_an_error_with_the_url():
    for url in ("http://127.0.0.1:9", "nowhere", "http://[", "ftp://a"):
        with pytest.raises(StationError, match="no station answers at"):
            connect(url).extents()


def test_request_is_sent_again_while_no_station_answers():
    keys = []

    def answer(request):
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            raise httpx.ConnectError("refused")
        return httpx.Response(201, json={"number": 7, "state": "running", "text": "x"})

    station = StationClient(find_station("http://field:1", None, None), 60, httpx.MockTransport(answer))
    assert station.submit("SELECT 1").number == 7 and len(set(keys)) == 1


def test_live_answer_waits_for_a_station_at_its_first_request():
    def make_answer():
        paths = []

        def answer(request):
            paths.append(request.url.path)
            if paths.count("/v1/queries/7/current") == 1:
                raise httpx.ReadError("cut")
            if paths[-1].endswith("/current"):
                columns = [{"name": "site", "type": "integer"}]
                window = {"tick": 1, "n": 1, "time": "2026-11-19T08:00:00Z", "coverage": {}, "rows": [[3]]}
                found = {"next": 5, "epoch": "ab", "columns": columns, "windows": [window], "tuples": []}
                return httpx.Response(200, json=found)
            return httpx.Response(200, json={"number": 7, "state": "running", "text": "x"})

        return httpx.MockTransport(answer)

    async def ask():
        station = AsyncStationClient(find_station("http://field:1", None, None), 0, make_answer())
        query = await station.query(7)
        with pytest.raises(StationError, match="cut"):
            await anext(query.answers(patience=0))
        return await anext(query.answers())

    station = StationClient(find_station("http://field:1", None, None), 0, make_answer())
    for found in next(station.query(7).answers()), asyncio.run(ask()):
        assert [row.values for row in found.rows] == [(3,)]


def test_patience_waits_longer_each_time_and_ends():
    patience, waits = Patience(10), []
    with pytest.raises(StationError, match="gone"):
        while True:
            waits.append(patience.delay(StationError("gone")))
    assert waits[:3] == [0.02, 0.04, 0.08] and sum(waits) == pytest.approx(10)
    refused = StationError("no", {"status": 422})
    with pytest.raises(StationError, match="no"):
        Patience(10).delay(refused)


def test_reader_asks_for_the_state_only_where_nothing_came():
    reader = ResultReader(3, after=5)
    page = {"next": 5, "epoch": "ab", "columns": [], "updates": []}
    assert reader.request().path == "/v1/queries/3/results" and reader.take(page) == []
    assert reader.request().path == "/v1/queries/3" and reader.take({"state": "stopped"}) == []
    assert reader.request().parameters["wait"] == 0 and not reader.is_over
    assert reader.take(page) == [] and reader.is_over


def test_page_is_smaller_after_a_cut_and_grows_again():
    reader = ResultReader(3)
    for expected in (500, 250):
        reader.take_error(StationError("cut"))
        assert reader.request().parameters["limit"] == expected
    reader.take({"next": 1, "epoch": "ab", "columns": [], "updates": [{"number": 1}]})
    assert reader.request().parameters["limit"] == 500


@pytest.mark.parametrize(("url", "expected"), [
    (None, "secret"), ("http://field.example:8137/", "secret"), ("http://localhost:9", "secret"),
    ("http://other.example:8137", None), ("http://[", None),
])  # fmt: skip
def test_token_of_a_folder_goes_to_its_own_station_only(url, expected, tmp_path, monkeypatch):
    monkeypatch.delenv("MOTELOOM_URL", raising=False)
    monkeypatch.delenv("MOTELOOM_TOKEN", raising=False)
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "url").write_text("http://field.example:8137\n")
    assert find_station(url, None, tmp_path).token == expected
    monkeypatch.setenv("MOTELOOM_TOKEN", "given")
    assert find_station(url, None, tmp_path).token == "given"

"""Results as CSV, Arrow and the current answer: the same rows as the JSON lines, resumable, from a number or a time."""

import json
import sqlite3
import time
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.rest.control import ResultPage
from basestation.rest.current_answer import CurrentAnswer, current_columns, current_rows
from basestation.rest.result_formats import encode_csv, rows_of, to_arrow, to_csv
from basestation.station.retention import Budget
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES

COLUMNS = [{"name": "site", "type": "integer"}, {"name": "mean", "type": "float"}, {"name": "site", "type": "string"}]


def page(*lines, kind="window", **more):
    texts = tuple(json.dumps({"number": number, "query": 1, "time": "2026-11-19T08:00:00Z"} | line)
                  for number, line in enumerate(lines, 1))  # fmt: skip
    return ResultPage(1, {"kind": kind, "columns": COLUMNS, **more}, texts, len(texts), "e")


def sum_updates(lines, last, begin_ms=None, until_ms=None, before=False):
    answer = CurrentAnswer(last, begin_ms, until_ms, before)
    answer.add(lines)
    return answer.as_json()


def window(tick, revision=0, **rows):
    return {"type": "window", "tick": tick, "n": 1, "revision": revision, "coverage": {"lab": [2, 3]}} | rows


WINDOWS = page(
    window(10, rows=[[1, 2.5, "a,b"], [2, None, ""]]),
    {"type": "epoch", "tick": 10, "coverage": {"lab": [2, 3]}},
    window(10, 1, removed=[[1, 2.5, "a,b"]], added=[[1, 3.0, 'say "x"']]),
    window(20, rows=[]),
)
TUPLES = page(
    {"type": "tuple", "tick": 1, "index": 7, "weight": 1, "row": [1, 1.0, None]},
    {"type": "tuple", "tick": 1, "index": 7, "weight": -1, "row": [1, 1.0, None]},
    {"type": "tuple", "tick": 1, "index": 7, "weight": 1, "row": [1, 2.0, None]},
    {"type": "tuple", "tick": 2, "index": 8, "weight": 1, "row": [2, 1.0, None]},
    kind="stream",
)  # fmt: skip


def test_csv_has_a_row_for_each_change():
    assert to_csv(WINDOWS).decode().splitlines() == [
        "_time,_query,_number,_revision,_weight,_used,_due,site,mean,site_2",
        '2026-11-19T08:00:00Z,1,1,0,1,2,3,1,2.5,"a,b"',
        '2026-11-19T08:00:00Z,1,1,0,1,2,3,2,,""',
        '2026-11-19T08:00:00Z,1,3,1,-1,2,3,1,2.5,"a,b"',
        '2026-11-19T08:00:00Z,1,3,1,1,2,3,1,3.0,"say ""x"""',
    ]
    assert to_csv(page(kind="stream", loops=True)) == b"_time,_query,_number,_index,_weight,_t,site,mean,site_2\r\n"


@pytest.mark.parametrize("given", [WINDOWS, TUPLES, page()])
def test_arrow_has_the_rows_of_json(given):
    table = pa.ipc.open_stream(to_arrow(given)).read_all()
    assert table.to_pylist() == list(rows_of(given))
    assert (table.schema.field("site").type, table.schema.field("mean").type) == (pa.int64(), pa.float64())


def test_current_answer_is_the_sum_of_updates():
    found = sum_updates(WINDOWS.lines, 1)
    assert [(each["tick"], each["rows"]) for each in found["windows"]] == [(20, [])]
    both = sum_updates(WINDOWS.lines, 5)["windows"]
    assert [(each["tick"], each["revision"], each["rows"]) for each in both] == [
        (10, 1, [[2, None, ""], [1, 3.0, 'say "x"']]), (20, 0, [])]  # fmt: skip
    assert sum_updates(WINDOWS.lines[1:], 5)["windows"][0]["tick"] == 20, "a revision alone is no window"
    assert [each["row"] for each in sum_updates(TUPLES.lines, 5)["tuples"]] == [[1, 2.0, None], [2, 1.0, None]]


def test_windows_of_a_loop_with_one_tick_stay_apart():
    lines = page(
        *(window(10, rows=[[t, None, None]]) | {"t": t} for t in (1, 2)),
        window(10, 1, removed=[[1, None, None]], added=[[3, None, None]]) | {"t": 1},
        loops=True,
    ).lines
    found = sum_updates(lines, 5)["windows"]
    assert [(each["t"], each["rows"]) for each in found] == [(1, [[3, None, None]]), (2, [[2, None, None]])]


def test_windows_of_several_loops_have_a_list_of_iterations(station):
    loops = " ".join(f"FOR (t = ST; t < ST + 300; t += 10) {{ WindowIs({name}, t - 9, t); }}" for name in "pq")
    station.submit(f"SELECT p.temp FROM field AS p, field AS q {loops}")
    lines = [each for each in station.wait_for(1, 20) if each["type"] == "window"]
    found = station.get("/v1/queries/1/current", params={"last": 100})
    assert found.status_code == 200, found.text
    iterations = [tuple(each["t"]) for each in found.json()["windows"]]
    assert len(set(iterations)) == len(iterations) >= 3 and tuple(lines[0]["t"]) in iterations
    station.ask("POST", "/v1/queries/1/stop")
    for part, most in ("results", "limit"), ("current", "last"):
        text = station.get(f"/v1/queries/1/{part}.csv", params={most: 1_000}).text
        arrow = station.get(f"/v1/queries/1/{part}.arrow", params={most: 1_000}).content
        table = pa.ipc.open_stream(arrow).read_all()
        assert table.num_rows == len(text.splitlines()) - 1 > 0
        assert all(f'"{row}"' in text for row in table.column("_t").to_pylist()), text
    none = station.get("/v1/queries/1/results.arrow", params={"after": 100_000}).content
    assert pa.ipc.open_stream(none).schema.field("_t").type == pa.list_(pa.int64())


@given(st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=6))
def test_revisions_in_a_row_end_at_the_last_contents(contents):
    lines = [window(10, rows=[[n, None, None] for n in contents[0]])]
    for revision, (before, after) in enumerate(pairwise(contents), 1):
        rows = {"removed": [[n, None, None] for n in before], "added": [[n, None, None] for n in after]}
        lines.append(window(10, revision, **rows))
    [found] = sum_updates(page(*lines).lines, 1)["windows"]
    assert found["rows"] == [[n, None, None] for n in contents[-1]]


def test_last_of_equal_rows_is_removed():
    one, two, three, four = ([site, 0.5, None] for site in (1, 2, 3, 4))
    lines = page(window(10, rows=[one, two, one, three]), window(10, 1, removed=[one], added=[four])).lines
    assert sum_updates(lines, 1)["windows"][0]["rows"] == [one, two, three, four]


def tuples_of(*ticks):
    """One tuple for each tick, in this order."""
    rows = [{"type": "tuple", "tick": tick, "index": index, "weight": 1, "row": [index, None, None]}
            for index, tick in enumerate(ticks, 1)]  # fmt: skip
    return page(*rows, kind="stream").lines


def test_newest_tuples_are_those_of_whole_ticks():
    lines = tuples_of(1, 1, 2, 2, 2, 3)
    for last, indexes in (1, [6]), (2, [3, 4, 5, 6]), (3, [1, 2, 3, 4, 5, 6]):
        found = sum_updates(lines, last)
        assert [each["index"] for each in found["tuples"]] == indexes and found["truncated"] == (last < 3)
    late = sum_updates(tuples_of(1, 2, 3, 1), 3)["tuples"]
    assert [(each["tick"], each["index"]) for each in late] == [(1, 1), (1, 4), (2, 2), (3, 3)]


def test_long_streams_keep_their_newest_ticks():
    answer = CurrentAnswer(2)
    for tick in range(10):
        answer.add(tuples_of(tick, tick))
    answer.add(tuples_of(*(tick for tick in range(10, 20) for _ in range(3))))
    found = answer.as_json()
    assert [each["tick"] for each in found["tuples"]] == [18] * 3 + [19] * 3 and found["truncated"]


def test_tick_whose_first_tuples_may_be_cut_off_is_left_out():
    for ticks, expected in ((1, 2, 2, 1, 3), [2, 2, 3]), ((1, 1), [1, 1]):
        found = sum_updates(tuples_of(*ticks), 5, before=True)["tuples"]
        assert [each["tick"] for each in found] == expected, ticks


def at(second, *lines):
    """Lines with the time of a second of 1970 in the place of theirs."""
    return [line | {"time": f"1970-01-01T00:00:{second:02}Z"} for line in lines]


def test_range_of_time_has_its_ends_and_their_revisions():
    """```
    windows    10   20   30   40   and late revisions of 20 and 40
    range           [20 … 30]
    ```"""
    row = [[1, 1.0, None]]
    windows = [line for second in (10, 20, 30, 40) for line in at(second, window(second, rows=row))]
    late = [*at(20, window(20, 1, removed=row, added=[[1, 9.0, None]])), *at(40, window(40, 1, removed=row, added=[]))]
    found = sum_updates(page(*windows, *late).lines, 5, 20_000, 30_000)
    assert [(each["tick"], each["revision"], each["rows"]) for each in found["windows"]] == [
        (20, 1, [[1, 9.0, None]]), (30, 0, row)]  # fmt: skip
    assert not found["truncated"]
    both = [sum_updates(page(*windows).lines, 5, *ends)["windows"] for ends in ((20_001, None), (None, 29_999))]
    assert [[each["tick"] for each in found] for found in both] == [[30, 40], [10, 20]]


def test_tuple_that_a_correction_moves_out_of_the_range_is_gone():
    one, two = {"type": "tuple", "index": 7, "tick": 1}, {"type": "tuple", "index": 8, "tick": 2}
    lines = [*at(1, one | {"weight": 1, "row": [1, 1.0, None]}), *at(2, two | {"weight": 1, "row": [2, 1.0, None]})]
    moved = [*at(2, two | {"weight": -1, "row": [2, 1.0, None]}), *at(9, two | {"weight": 1, "row": [2, 1.0, None]})]
    assert [each["index"] for each in sum_updates(page(*lines, kind="stream").lines, 5, 0, 5_000)["tuples"]] == [7, 8]
    found = sum_updates(page(*lines, *moved, kind="stream").lines, 5, 0, 5_000)
    assert [each["index"] for each in found["tuples"]] == [7]


def test_oldest_windows_of_a_long_range_are_left_out():
    answer = CurrentAnswer(3, 0)
    for second in range(10):
        answer.add(page(*at(second, window(second, rows=[[second, 1.0, None]]))).lines)
        assert answer.as_json()["truncated"] == (second >= 3), "and it stays so when the oldest are forgotten"
    assert [each["tick"] for each in answer.as_json()["windows"]] == [7, 8, 9]


def test_rows_of_a_current_answer_are_those_of_its_windows():
    found = sum_updates(WINDOWS.lines, 5)
    assert encode_csv(current_columns(WINDOWS), current_rows(WINDOWS, found)).decode().splitlines() == [
        "_time,_query,_revision,_used,_due,site,mean,site_2",
        '2026-11-19T08:00:00Z,1,1,2,3,2,,""',
        '2026-11-19T08:00:00Z,1,1,2,3,1,3.0,"say ""x"""',
    ]
    tuples = list(current_rows(TUPLES, sum_updates(TUPLES.lines, 5)))
    assert [(row["_index"], row["site"], row["mean"]) for row in tuples] == [(7, 1, 2.0), (8, 2, 1.0)]
    assert "_number" not in current_columns(TUPLES) and "_weight" not in current_columns(TUPLES)


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path) as running:
        yield running


@pytest.mark.promise("resume")
def test_formats_resume_and_begin_at_a_time(station):
    station.submit(QUERIES[2])
    updates = station.wait_for(1, 4)
    for suffix in "csv", "jsonl", "arrow":
        part = station.get(f"/v1/queries/1/results.{suffix}", params={"limit": 2})
        assert (part.status_code, part.headers["moteloom-next"]) == (200, "2")
        same = {"after": 2, "epoch": part.headers["moteloom-epoch"]}
        assert station.get(f"/v1/queries/1/results.{suffix}", params=same).status_code == 200
        gone = station.get(f"/v1/queries/1/results.{suffix}", params={"after": 2, "epoch": "01234567"})
        assert (gone.status_code, gone.json()["code"]) == (410, "results-gone")
    later = station.get("/v1/queries/1/results", params={"since": updates[2]["time"]}).json()["updates"]
    assert later[0]["number"] <= 3 and later[-1]["number"] >= 4
    assert station.get("/v1/queries/1/results", params={"since": "2999-01-01T00:00:00Z"}).json()["updates"] == []
    local = f"{datetime.fromisoformat(updates[2]['time']) + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}+01:00"
    for zone in local, local.replace("+", "%2B"):
        found = station.get(f"/v1/queries/1/results?since={zone}").json()["updates"]
        assert found[: len(later)] == later, zone  # the station goes on
    for path in "/v1/queries/9/results.csv?since=2026-01-01T00:00:00Z", "/v1/queries/9/current":
        assert station.get(path).json()["code"] == "no-such-query"
    wrong = station.get("/v1/queries/1/results", params={"since": "yesterday"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad-request")


def test_current_answer_is_that_of_the_newest_windows(station):
    station.submit(QUERIES[2])
    updates = station.wait_for(1, 3)
    found = station.get("/v1/queries/1/current", params={"last": 2}).json()
    assert (found["kind"], found["tuples"], len(found["windows"])) == ("window", [], 2)
    assert found["windows"][-1]["tick"] >= updates[-1]["tick"] and found["next"] >= 3


def test_range_of_current_answer_takes_times_of_dashboards(station, monkeypatch):
    station.submit(QUERIES[2])
    windows = station.wait_for(1, 4)
    first, last = windows[1]["time"], windows[2]["time"]
    by_ms = [str(int(datetime.fromisoformat(each).timestamp() * 1_000)) for each in (first, last)]
    for begin, until in ((first, last), by_ms, (first.replace("Z", "+00:00"), by_ms[1])):
        found = station.get("/v1/queries/1/current", params={"from": begin, "to": until})
        assert [each["time"] for each in found.json()["windows"]] == [first, last], found.text
        assert not found.json()["truncated"]
    table = station.get(f"/v1/queries/1/current.csv?from={by_ms[0]}&to={by_ms[1]}")
    assert [line.split(",")[0] for line in table.text.splitlines()] == ["_time", first, last]
    assert (table.headers["moteloom-truncated"], int(table.headers["moteloom-next"]) >= 4) == ("false", True)
    arrow = station.get("/v1/queries/1/current.arrow", params={"from": first, "to": last})
    assert pa.ipc.open_stream(arrow.content).read_all().column("_time").to_pylist() == [first, last]
    since = station.get("/v1/queries/1/results", params={"since": by_ms[1]}).json()["updates"]
    assert since[0]["number"] <= 3, "`since` takes ms, too"
    for wrong in {"from": "yesterday"}, {"to": "-5"}, {"from": last, "to": first}:
        refused = station.get("/v1/queries/1/current.csv", params=wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad-request"), wrong
    monkeypatch.setattr("basestation.rest.result_routes.LONGEST_RANGE", 1)
    cut = station.get("/v1/queries/1/current", params={"from": first}).json()
    assert cut["truncated"] and len(cut["windows"]) <= 2
    assert not station.get("/v1/queries/1/current", params={"last": 2}).json()["truncated"]


def test_current_answer_of_a_range_is_read_in_pages(station, monkeypatch):
    station.submit(QUERIES[2])
    times = [each["time"] for each in station.wait_for(1, 7) if each["revision"] == 0]
    monkeypatch.setattr("basestation.rest.result_routes.NEWEST", 2)
    found = station.get("/v1/queries/1/current", params={"from": times[0], "to": times[4], "last": 5})
    assert [each["time"] for each in found.json()["windows"]] == times[:5]


def test_current_answer_begins_with_what_is_kept(station):
    station.submit(QUERIES[2])
    station.wait_for(1, 6)
    station.runner.call(lambda now_ms: station.network.journal.trim(Budget(numbers=2), now_ms))
    assert station.get("/v1/queries/1/results").status_code == 410
    found = station.get("/v1/queries/1/current")
    assert found.status_code == 200, found.text
    assert {"windows", "next", "epoch"} <= set(found.json())
    kept = station.get("/v1/queries/1/current", params={"last": 5}).json()["windows"]
    assert not found.json()["truncated"] and len(kept) >= 2
    ranges = [{"from": "2020-01-01T00:00:00Z"}, {"to": kept[-1]["time"]}, {"from": kept[-1]["time"]}]
    truncated = [station.get("/v1/queries/1/current", params=each).json()["truncated"] for each in ranges]
    assert truncated == [True, True, False], "dropped windows may have been in the range"


def test_metrics_and_readiness_come_from_the_data(station, monkeypatch):
    station.submit(QUERIES[2])
    station.wait_for_full_coverage(1)
    assert station.get("/v1/ready").json() == {"ready": True}
    text = station.get("/v1/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    from prometheus_client.parser import text_string_to_metric_families

    samples = {(s.name, *s.labels.values()): s.value
               for family in text_string_to_metric_families(text.text) for s in family.samples}  # fmt: skip
    assert samples["moteloom_up",] == 1
    assert samples["moteloom_queries", "running"] + samples["moteloom_queries", "deploying"] == 1
    assert samples["moteloom_readings", "field", "received"] > 0

    def fail(*given, **named):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(station.network.journal, "commit", fail)
    end = time.monotonic() + 60
    while station.get("/v1/ready").status_code == 200 and time.monotonic() < end:
        time.sleep(0.05)
    assert station.get("/v1/ready").status_code == 503
    assert station.get("/v1/health").status_code == 503
    assert b"moteloom_up 0.0" in station.get("/v1/metrics").content

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
from basestation.rest.result_formats import rows_of, sum_updates, to_arrow, to_csv
from basestation.station.retention import Budget
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES

COLUMNS = [{"name": "site", "type": "integer"}, {"name": "mean", "type": "float"}, {"name": "site", "type": "string"}]


def page(*lines, kind="window", **more):
    texts = tuple(json.dumps({"number": number, "query": 1, "time": "2026-11-19T08:00:00Z"} | line)
                  for number, line in enumerate(lines, 1))  # fmt: skip
    return ResultPage(1, {"kind": kind, "columns": COLUMNS, **more}, texts, len(texts), "e")


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


def test_current_answer_begins_with_what_is_kept(station):
    station.submit(QUERIES[2])
    station.wait_for(1, 6)
    station.runner.call(lambda now_ms: station.network.journal.trim(Budget(numbers=2), now_ms))
    assert station.get("/v1/queries/1/results").status_code == 410
    found = station.get("/v1/queries/1/current")
    assert found.status_code == 200, found.text
    assert {"windows", "next", "epoch"} <= set(found.json())


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

"""A running query over a history takes a step where a scan is due, not at each tick of the recording."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.history import HistoryTable
from basestation.execution.ingest.stored_table import StoredTable
from basestation.planner.binder import bind_text
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from basestation.updates.update import split_by_query

SCHEMA = """
kinds: stored (v:integer)
road: sensed (site:integer, temp:integer) every 2 sec at sites 1, 2 wait 1 sec late revise by 20 sec
hits: pushed (v:integer) wait 3 sec late revise by 20 sec
"""
ROAD = [{"_tick": 2 * at, "_site": site, "temp": at % 7} for at in range(1_000) for site in (1, 2)]
HITS = [{"_tick": tick, "v": tick % 5} for tick in range(0, 2_000, 3)]
QUERIES = [
    "SELECT COUNT(*) AS n, MAX(tick) AS t, MAX(index) AS i FROM road.HISTORY [SCAN 100 SEC]",
    "SELECT h.v, COUNT(*) AS n FROM road.HISTORY AS r [SCAN 500 SEC], hits.HISTORY AS h [SCAN 700 SEC] "
    "WHERE r.temp = h.v GROUP BY h.v",
    "ISTREAM(SELECT site, MAX(temp) AS m FROM road.HISTORY [SCAN 50 SEC] GROUP BY site)",
    "SELECT n.site, COUNT(*) AS n FROM road [FROM NOW TO NOW SLIDE 400 SEC] AS n, road.HISTORY AS h [SCAN 400 SEC] "
    "WHERE n.site = h.site AND h.temp > n.temp GROUP BY n.site",
]


@pytest.fixture
def steps(monkeypatch):
    """The clock ticks that steps of engines end."""
    found, step = [], OperatorGraph.step
    monkeypatch.setattr(OperatorGraph, "step", lambda graph, tick: found.append(tick) or step(graph, tick))
    return found


def replay(query, inputs, every_tick=False):
    catalog = read_catalog(SCHEMA)
    statements = read_statements([query], catalog)
    run = Replay(read_recording(catalog, inputs, statements), statements, every_tick=every_tick)
    result = Result(run.queries)
    for updates in run.updates():
        result.add(updates)
    result.finish(run.until, run.ledger())
    return result.history(1)


@pytest.mark.parametrize("query", QUERIES)
def test_scan_of_history_takes_few_steps_of_a_recording(query, steps):
    inputs = {"road": ROAD, "hits": HITS}
    found = replay(query, inputs)
    assert len(steps) < 20
    assert found == replay(query, inputs, every_tick=True)


def test_late_and_corrected_tuples_add_steps_of_their_own(steps):
    late = [{"_tick": 900, "_arrival": 915, "v": 9}, {"_tick": 903, "_arrival": 1_002, "_replaces": 302, "v": 8}]
    query = "SELECT COUNT(*) AS n, SUM(v) AS s, MAX(_arrival) AS a FROM hits.HISTORY [SCAN 50 SEC]"
    inputs = {"hits": sorted([*HITS, *late], key=lambda row: row.get("_arrival", row["_tick"]))}
    found = replay(query, inputs)
    assert len(steps) < 20
    assert found == replay(query, inputs, every_tick=True)


def hits(tick):
    at = np.array([tick])
    return Batch(at, 0 * at, at, unit_weights(1), {"v": at % 5})


def test_live_scan_of_history_takes_a_step_when_it_is_due(steps):
    catalog = read_catalog(SCHEMA)
    engine = Engine(catalog)
    engine.add(1, bind_text("SELECT COUNT(*) AS n FROM hits.HISTORY [SCAN 50 SEC]", catalog)[0])
    given = []
    for tick in range(400):
        engine.deliver("hits", hits(tick))
        given += [
            (tick, update.tick.tolist(), update.added.to_lists()) for update in split_by_query(engine.on_clock(tick))
        ]
    assert given == [(due + 3, [due], [(due + 1,)]) for due in range(0, 400, 50)]
    assert len(steps) < 20


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("table", [HistoryTable, StoredTable])
def test_scans_of_one_step_read_a_bounded_number_of_rows(monkeypatch, steps, table):
    """A scan each second of a table of thousands reads millions of rows: no step may hold all of them."""
    monkeypatch.setattr(thresholds, "STEP_ROWS", 5_000)
    read, frame = {}, table.frame

    def counted(self, columns, ticks):
        found = frame(self, columns, ticks)
        read[len(steps)] = read.get(len(steps), 0) + len(found)
        return found

    monkeypatch.setattr(table, "frame", counted)
    name, inputs = (
        ("kinds", {"kinds": [{"v": v} for v in range(700)]}) if table is StoredTable else ("road.HISTORY", {})
    )
    found = replay(f"SELECT COUNT(*) AS n FROM {name} [SCAN 1 SEC]", {"road": ROAD} | inputs)
    expected = [700 if table is StoredTable else tick // 2 * 2 + 2 for tick in range(1_999)]
    assert [each.added for each in found] == [[(count,)] for count in expected]
    assert max(read.values()) <= 5_000 < sum(read.values())
    assert len(read) < 4 * sum(read.values()) // 5_000

"""Motes evaluate the conditions of queries, and answers do not show it: a station and simulated motes."""

from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.planner.lowering import deliver_everything
from basestation.planner.rewriter import rewrite
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from gateway.source import Source
from innet.placement.placement import conditions, extents_of
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.simulation.scenario_judge import FOLDER, answers, delivered, judge, run_scenario

SECONDS = 900
TOLD = 10 * 10 + 20
"""After ten epochs and a little more of silence a mote has said what it filtered."""
KINDS = {"awake": EventTestbed, "by agenda": partial(EventTestbed, agenda=True), "swept": VectorTestbed}


@cache
def ran(name, kind, seconds=SECONDS):
    return run_scenario(read_scenario(FOLDER / f"{name}.toml"), seconds, kind=KINDS[kind])


@pytest.mark.promise("placement")
@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_those_of_a_replay_of_every_reading(kind):
    bed = ran("filtering", kind)
    produced = {(e.mote, e["tick"]): e for e in bed.trace.of("produced")}
    told = delivered(bed)
    end = SECONDS + bed.scenario.begin_ms // 1_000
    # Nothing is lost, so each reading was sent, or reported within ten epochs.
    assert {key for key in produced if key[1] < end - TOLD} <= told.keys()
    sent = {key for key, e in produced.items() if e["sent"]}
    assert len(sent) < 0.8 * len(produced)
    for name in ("now", "minute", "some"):
        assert judge(bed, name) >= 10
        known = {coverage["hall"][0] / coverage["hall"][1] for (tick, _), (coverage, _) in answers(bed, name).items()
                 if bed.scenario.begin_ms // 1_000 + 100 < tick < end - TOLD}  # fmt: skip
        assert known == {1.0}


@pytest.mark.promise("placement")
@pytest.mark.parametrize("seed", [1, 2])
def test_with_loss_answers_equal_replay_of_reported_readings(seed):
    scenario, lossy = read_scenario(FOLDER / "filtering.toml"), read_scenario(FOLDER / "calm.toml").deployment
    bed = run_scenario(replace(scenario, deployment=lossy, delivery=0.5), SECONDS, seed)
    assert bed.station.engine.ledger()["hall"]["late"] > 0 and bed.tally.attempts.total() > 2 * bed.tally.frames.total()
    for name in ("now", "minute", "some"):
        assert judge(bed, name) >= 10


@pytest.mark.promise("placement")
@pytest.mark.parametrize("kind", KINDS)
def test_filtered_reading_costs_no_message(kind):
    scenario = read_scenario(FOLDER / "filtering.toml")
    everything = ScenarioQuery("all", "SELECT temp, supply FROM hall", 0, None)
    more = run_scenario(replace(scenario, queries=(*scenario.queries, everything)), 300, kind=KINDS[kind])
    less = run_scenario(scenario, 300, kind=KINDS[kind])
    attempts = [sum(e["attempts"] for e in bed.trace.of("sent") if e["kind"] == "READING") for bed in (less, more)]
    assert attempts[0] < attempts[1]


@pytest.mark.parametrize("kind", KINDS)
def test_without_pushdown_all_readings_are_sent(kind):
    bed = run_scenario(read_scenario(FOLDER / "filtering.toml"), SECONDS, kind=partial(KINDS[kind], pushdown="nothing"))
    assert all(e["sent"] for e in bed.trace.of("produced"))
    for name in ("now", "minute", "some"):
        here, there = ({key: rows for key, (_, rows) in answers(each, name).items() if key[0] < SECONDS - TOLD}
                       for each in (bed, ran("filtering", kind)))  # fmt: skip
        assert here == there


def test_each_condition_moves():
    bed = ran("filtering", "awake")
    for query in bed.station.world.queries.values():
        assert all(conditions(operator) for operator in query.deliveries)
        assert deliver_everything(rewrite(query.plan)[0].root) != query.deliveries


@pytest.mark.promise("placement")
def test_reading_filtered_before_a_query_does_not_count():
    """A wall stands between half of the motes and the station while a query comes that wants everything."""
    scenario = read_scenario(FOLDER / "filtering.toml")
    late = ScenarioQuery("late", "SELECT site, temp FROM hall [NOW]", 305_000, None)
    wall = tuple((a, b, 0.0) for pair in ((1, 3), (1, 5), (2, 4), (2, 5)) for a, b in (pair, pair[::-1]))
    fault = InjectedFault("wall", "links_change", 295_000, 355_000, links=wall)
    bed = run_scenario(replace(scenario, queries=(*scenario.queries, late), faults=(fault,)), 600)
    begin = scenario.begin_ms // 1_000
    found = {
        tick - begin: (coverage["hall"], len(rows)) for (tick, _), (coverage, rows) in answers(bed, "late").items()
    }
    assert min(found) == 310
    assert all(coverage == [rows, 8] for coverage, rows in found.values())
    assert found[320][1] < 8
    assert [found[tick] for tick in range(480, 590, 10)] == [([8, 8], 8)] * 11


def test_site_condition_of_one_extent_keeps_the_other():
    scenario = read_scenario(FOLDER / "filtering.toml")
    extents = """
warm: sensed (site:integer, temp:float {scale 2, sensor 'temperature'}) every 10 sec at sites 1 .. 8
power: sensed (site:integer, supply:integer {sensor 'supply'}) every 10 sec at sites 1 .. 8
"""
    text = """SELECT w.temp, p.supply
        FROM (SELECT tick AS t, site, temp FROM warm) w [NOW], (SELECT tick AS t, site, supply FROM power) p [NOW]
        WHERE w.t = p.t AND w.site = p.site AND w.site <= 3 AND w.temp > 20"""
    deployment = replace(scenario.deployment, extents=Source(extents))
    bed = run_scenario(replace(scenario, deployment=deployment, queries=(ScenarioQuery("pairs", text, 0, None),)), 300)
    assert all(len(extents_of(operator)) == 2 for operator in bed.station.world.queries[1].deliveries)
    begin = scenario.begin_ms // 1_000
    values = {}
    for e in bed.trace.of("produced"):
        values.setdefault((e["tick"], e.mote), {})[e["sampling"]] = e["values"]
    found = answers(bed, "pairs")
    for tick in range(begin + 50, begin + 300 - TOLD, 10):
        coverage, rows = found[tick, 1]
        assert coverage == {"warm": [8, 8], "power": [8, 8]}
        pairs = [[value for _, (value,) in sorted(values[tick, site].items())] for site in (1, 2, 3)]
        assert sorted(rows) == sorted((temp / 100, supply) for temp, supply in pairs if temp > 2000)


@pytest.mark.promise("placement")
@pytest.mark.parametrize("kind", ["awake", "by agenda"])
def test_late_report_of_earlier_filter_does_not_count(kind):
    """A mote is cut off while two queries come, and then says what it has filtered by the conditions before both."""
    asked = ("temp > 60", 0), ("supply < 2940", 199), ("supply < 2930", 242)
    queries = tuple(
        ScenarioQuery(f"{second}", f"SELECT site, supply FROM hall [NOW] WHERE {condition}", second * 1_000, None)
        for condition, second in asked
    )
    cut = InjectedFault("cut", "cut", 195_000, 260_000, (3,))
    bed = run_scenario(
        replace(read_scenario(FOLDER / "filtering.toml"), queries=queries, faults=(cut,)), 400, kind=KINDS[kind]
    )
    for query in queries:
        assert judge(bed, query.name) >= 14
    covered = {
        tick - bed.scenario.begin_ms // 1_000: of["hall"][0] for (tick, _), (of, _) in answers(bed, "199").items()
    }
    assert all(covered[tick] <= 7 for tick in range(200, 250, 10))


@pytest.mark.promise("placement")
@pytest.mark.parametrize("after_ms", [0, 500, 750])
def test_query_amid_a_tick_ignores_reports_that_are_here(after_ms):
    """By then some motes have said that they filtered the reading of this tick, which the new query asks for."""
    asked = ("temp > 22", 0), ("temp <= 22", 300_000 + after_ms)
    queries = tuple(
        ScenarioQuery(condition, f"SELECT site, temp FROM hall [NOW] WHERE {condition}", at, None)
        for condition, at in asked
    )
    bed = run_scenario(replace(read_scenario(FOLDER / "calm.toml"), queries=queries), 360)
    first, second = [judge(bed, query.name) for query in queries]
    assert first >= 30 and second >= 6
    found, tick = answers(bed, "temp <= 22"), bed.scenario.begin_ms // 1_000 + 300
    assert found[tick, 1] == ({"hall": [4, 8]}, [])  # those that the first query has taken; the others may pass
    assert found[tick + 10, 1][0] == {"hall": [8, 8]}

"""Queries that motes fold for come and go: those that stay miss nothing and double nothing, those that come begin with a slice."""

from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.testbed.event_testbed import EventTestbed
from gateway.source import Source
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.simulation.scenario_judge import FOLDER, answers, folds_of, judge, merged, run_scenario

WINDOW = "FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC]"
STAYS = ScenarioQuery("mean", f"SELECT AVG(temp) AS mean, COUNT(*) AS n {WINDOW}", 0, None)
WIDER = ScenarioQuery("spread", f"SELECT STDEV(temp) AS spread {WINDOW}", 305_000, 665_000)
SAME = ScenarioQuery("sum", f"SELECT SUM(temp) AS total {WINDOW}", 420_000, 700_000)
OTHER = ScenarioQuery("supply", f"SELECT MIN(supply) AS least {WINDOW}", 410_000, 700_000)
SECONDS = 1_200
TWO = """
warm: sensed (site:integer, temp:float {scale 2, sensor 'temperature'}) every 10 sec at sites 1 .. 8 wait 10 sec
power: sensed (site:integer, supply:integer {sensor 'supply'}, near:float {scale 2, sensor 'temperature'}) every 10 sec at sites 1 .. 8 wait 10 sec
"""
PAIRS = ScenarioQuery("pairs", """SELECT COUNT(*) AS n, AVG(w.temp) AS mean, MIN(p.supply) AS least
    FROM (SELECT tick AS t, site, temp FROM warm) w [FROM NOW-50 TO NOW SLIDE 60 SEC],
         (SELECT tick AS t, site, supply FROM power) p [FROM NOW-50 TO NOW SLIDE 60 SEC]
    WHERE w.t = p.t AND w.site = p.site AND p.supply < 2955""", 0, None)  # fmt: skip
MORE = ScenarioQuery("more", "SELECT MAX(near) AS most FROM power [FROM NOW-50 TO NOW SLIDE 60 SEC]", 410_000, 700_000)


@cache
def ran(agenda, *queries, faults=(), schema=None):
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=queries, faults=faults)
    if schema is not None:
        scenario = replace(scenario, deployment=replace(scenario.deployment, extents=Source(schema)))
    return run_scenario(scenario, SECONDS, kind=partial(EventTestbed, agenda=agenda, pushdown="everything"))


def windows(bed, name, extent="hall"):
    """Seconds since the beginning -> [used, due]."""
    begin = bed.scenario.begin_ms // 1_000
    return {tick - begin: coverage[extent] for (tick, _), (coverage, _) in answers(bed, name).items()}


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_query_keeps_all_readings_while_others_come_and_go(agenda):
    bed = ran(agenda, STAYS, WIDER, SAME)
    assert judge(bed, "mean") >= 19
    assert list(windows(bed, "mean").values())[1:] == [[48, 48]] * (len(windows(bed, "mean")) - 1)
    states = [bed.station.world.queries[bed.numbers[name]].state for name in ("mean", "spread", "sum")]
    assert states == [QueryState.RUNNING, QueryState.STOPPED, QueryState.STOPPED]
    assert list(bed.station.world.running) == [1]


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_no_reading_is_in_two_partials_that_came(agenda):
    bed = ran(agenda, STAYS, WIDER, SAME)
    for fold in (1, 2):
        readings = [
            reading for e in bed.trace.of("merged") if e["table"] == fold for reading in e["readings"].split(",")
        ]
        assert len(readings) == len(set(readings)) > 100


@pytest.mark.promise("queries-apart")
def test_fold_begins_with_a_slice():
    bed = ran(False, STAYS, WIDER, SAME)
    assert folds_of(bed, "spread") == {"hall": 2}
    # It was asked at 305: its fold begins with the slice of 310.
    assert list(windows(bed, "spread").items())[:3] == [(360, [48, 48]), (420, [48, 48]), (480, [48, 48])]
    other = ran(False, STAYS, replace(WIDER, at_ms=315_000))
    assert list(windows(other, "spread").items())[:2] == [(360, [0, 48]), (420, [48, 48])]


def test_aggregate_of_running_fold_is_there_at_once():
    """The sum is a part of what the mean keeps: no other fold runs for it, and it begins with what is known."""
    bed = ran(False, STAYS, WIDER, SAME)
    assert folds_of(bed, "sum") == {"hall": 1}
    assert set(windows(bed, "sum")) == set(range(420, 700, 60))
    assert set(map(tuple, windows(bed, "sum").values())) == {(48, 48)}


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_new_sampling_loses_no_reading(agenda):
    """Programs come before the schedules that they are for."""
    bed = ran(agenda, STAYS, OTHER)
    assert judge(bed, "mean") >= 19
    assert list(windows(bed, "mean").values())[1:] == [[48, 48]] * (len(windows(bed, "mean")) - 1)
    assert len({e["sampling"] for e in bed.trace.of("produced")}) == 3


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_another_sampling_of_one_of_two_costs_no_pair(agenda):
    """A fold of pairs runs by one of the samplings and reads the other."""
    bed = ran(agenda, PAIRS, MORE, schema=TWO)
    assert folds_of(bed, "pairs") == {"warm": 1, "power": 1}
    assert judge(bed, "pairs") >= 19
    for extent in ("warm", "power"):
        found = list(windows(bed, "pairs", extent).values())
        assert found[1:] == [[48, 48]] * (len(found) - 1)
    assert all(not e["sent"] for e in bed.trace.of("produced"))
    assert not list(bed.trace.of("wasted"))


def test_mote_without_queries_runs_nothing():
    """It goes on sampling by the same schedule, for others."""
    few = ScenarioQuery("few", f"SELECT MAX(temp) AS most {WINDOW} WHERE site <= 3", 0, None)
    bed = ran(False, few, replace(STAYS, until_ms=500_000))
    assert judge(bed, "few") >= 19
    late = bed.scenario.begin_ms // 1_000 + 560
    assert {e.mote for e in bed.trace.of("produced") if e["tick"] > late} == {1, 2, 3}


def test_rebooted_mote_misses_at_most_the_current_slice():
    fault = InjectedFault("again", "reboots", 500_000, motes=(3,))
    bed = ran(False, STAYS, faults=(fault,))
    assert judge(bed, "mean") >= 19
    lacking = {second for second, coverage in windows(bed, "mean").items() if second and coverage != [48, 48]}
    assert lacking and lacking <= {540, 600}
    begin = bed.scenario.begin_ms // 1_000
    again = {tick - begin for site, tick in merged(bed, "hall", 1) if site == 3 and tick - begin > 600}
    assert again >= set(range(610, 1_140, 10))

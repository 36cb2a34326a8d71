"""FOR: a query whose time is over has no mote measure any more, and loses nothing of its last windows for that."""

from dataclasses import replace
from functools import partial

import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from simulator.scenario import ScenarioQuery, read_scenario
from tests.simulation.answer_comparison import said_by
from tests.simulation.random_faults import LOSSY
from tests.simulation.scenario_judge import FOLDER, judge, run_scenario

COLLECTED = "SELECT site, temp, supply FROM hall [NOW]"
FILTERED = "SELECT site, supply FROM hall [NOW] WHERE temp > 21"
FOLDED = "SELECT AVG(supply) AS mean, COUNT(*) AS n FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC]"
STAYS = "SELECT site, temp FROM hall [NOW] WHERE temp > 21 AND site <= 2"
SHORT, SECONDS = 300, 900
KINDS = {"awake": EventTestbed, "by agenda": partial(EventTestbed, agenda=True)}


def ran(kind, text, *others, **radio):
    queries = (ScenarioQuery("short", f"{text} FOR {SHORT} SEC", 0, None), *others)
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=queries, **radio)
    bed = run_scenario(scenario, SECONDS, kind=partial(KINDS[kind], pushdown=PushdownPolicy.EVERYTHING))
    begin = scenario.begin_ms // 1_000
    return bed, {(e.mote, e["tick"] - begin) for what in ("produced", "wasted") for e in bed.trace.of(what)}


@pytest.mark.promise("lifetime")
@pytest.mark.parametrize("text", [COLLECTED, FILTERED, FOLDED])
@pytest.mark.parametrize(
    ("kind", "configured"), [("awake", 150), ("by agenda", 270)]
)  # sleeping motes are configured late
def test_motes_stop_after_the_last_whole_window_of_for(kind, configured, text):
    bed, measured = ran(kind, text)
    assert judge(bed, "short") > 0
    assert SHORT - 10 <= max(tick for _, tick in measured) <= SHORT + configured
    whole = {key: what for (kind, key), what in said_by(bed, "short").items() if kind == "coverage of"}
    assert [used == due for used, due in (whole[key]["hall"] for key in sorted(whole)[-2:])] == [True, True]
    assert bed.station.world.queries[1].state is QueryState.FINISHED


@pytest.mark.promise("lifetime")
@pytest.mark.sample("text", 2)
@pytest.mark.parametrize("text", [COLLECTED, FILTERED, FOLDED])
@pytest.mark.parametrize("kind", KINDS)
def test_late_reading_revises_after_another_query_ended(kind, text):
    bed, measured = ran(kind, text, ScenarioQuery("stays", STAYS, 0, None), **LOSSY)
    assert judge(bed, "short") > 0 and judge(bed, "stays") > 0
    at_one = {tick for site, tick in measured if site == 1}
    assert at_one >= set(range(min(at_one), max(at_one), 10)) and max(at_one) >= SECONDS - 20
    assert max(tick for site, tick in measured if site == 8) < SECONDS - 200


def test_a_query_that_has_passed_can_be_stopped():
    bed, _ = ran("awake", COLLECTED)
    assert bed.station.stop(1, bed.station.engine.clock * 1_000 + 1_000).state is QueryState.STOPPED

"""Sites that every query excludes sample nothing; they begin with a query that includes them, and end with it."""

from dataclasses import replace
from functools import partial

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from simulator.scenario import ScenarioQuery, read_scenario
from simulator.vector_engine.layout import NotVectorisableError
from tests.simulation.answer_comparison import said_by
from tests.simulation.scenario_judge import FOLDER, judge, run_scenario

SOME = ScenarioQuery("some", "SELECT site, temp FROM hall [NOW] WHERE site <= 4", 0, None)
NO_SITE = (
    "SELECT site, temp FROM hall WHERE site = 99",
    "SELECT site, temp FROM hall [NOW] WHERE site > 100 AND temp > 20",
    "SELECT COUNT(*) AS n, AVG(temp) AS mean FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC] WHERE site <> site",
)
ALL = ScenarioQuery("all", "SELECT site, temp FROM hall [NOW]", 200_000, 400_000)
KINDS = {"awake": EventTestbed, "by agenda": partial(EventTestbed, agenda=True), "swept": VectorTestbed}


def ran(kind, *queries):
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=queries)
    bed = run_scenario(scenario, 600, kind=KINDS[kind])
    begin = scenario.begin_ms // 1_000
    return bed, {(e.mote, e["tick"] - begin) for what in ("produced", "wasted") for e in bed.trace.of(what)}


@pytest.mark.promise("placement")
@pytest.mark.parametrize("kind", KINDS)
def test_excluded_site_measures_nothing_and_is_not_due(kind):
    bed, measured = ran(kind, SOME)
    assert {site for site, _ in measured} == {1, 2, 3, 4}
    assert judge(bed, "some") >= 58
    complete = [what for (kind, _), what in said_by(bed, "some").items() if kind == "coverage of"]
    assert complete.count({"hall": (8, 8)}) >= 57


@pytest.mark.promise("placement")
@pytest.mark.parametrize(
    ("kind", "configured"), [("awake", 30), ("by agenda", 150)]
)  # sleeping motes are configured late
def test_site_samples_only_while_a_query_includes_it(kind, configured):
    bed, measured = ran(kind, SOME, ALL)
    assert judge(bed, "some") >= 58
    others = {tick for site, tick in measured if site > 4}
    assert 200 <= min(others) <= 200 + configured and 390 <= max(others) <= 400 + configured
    assert {site for site, tick in measured if tick == 390} == set(range(1, 9))
    # No other query misses a tick, or samples one twice, because queries come and go.
    assert {tick for site, tick in measured if site == 1} >= set(range(20, 600, 10))
    assert len(bed.trace.of("produced")) == len({(e.mote, e["tick"]) for e in bed.trace.of("produced")})


@pytest.mark.promise("placement")
@pytest.mark.parametrize("moves", PushdownPolicy)
@pytest.mark.parametrize("kind", ["awake", "by agenda"])
def test_query_without_sites_is_answered_without_samples(kind, moves):
    """Also beside a query that includes some sites, and without any other query."""
    excluding = [ScenarioQuery(f"{number}", text, 0, 300_000) for number, text in enumerate(NO_SITE)]
    others = replace(ALL, until_ms=None)
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=(*excluding, others))
    bed = KINDS[kind](scenario, 1, pushdown=moves)
    for second in (190, 290):
        bed.run_until(second * 1_000)
        assert bed.refused == {}
        measured = {e["tick"] - scenario.begin_ms // 1_000 for e in bed.trace.of("produced")}
        assert bool(measured) == (second > 200 or moves is PushdownPolicy.NOTHING)
        for asked in excluding:
            assert judge(bed, asked.name) >= second // (60 if "60 SEC" in asked.text else 10) - 1
            said = {part: of for (part, _), of in said_by(bed, asked.name).items()}
            assert said["coverage of"]["hall"] in ((8, 8), (48, 48)) and not said.get("tuples at")
    assert (min(measured) < 190) == (moves is PushdownPolicy.NOTHING)
    assert judge(bed, others.name) >= 8


@pytest.mark.promise("placement")
def test_where_every_site_is_excluded_there_is_nothing_to_sweep():
    asked = ScenarioQuery("none", NO_SITE[0], 0, None)
    with pytest.raises(NotVectorisableError, match="no mote has anything to do"):
        VectorTestbed(replace(read_scenario(FOLDER / "filtering.toml"), queries=(asked,)), 1)

"""Queries that read other columns than running ones: readings without these columns do not count for them."""

from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.simulation.answer_comparison import said_by
from tests.simulation.scenario_judge import FOLDER, answers, judge, run_scenario

FOLD = "SELECT AVG(temp) AS mean, MIN(supply) AS least FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC]"
MEDIAN = "SELECT MEDIAN(temp) AS middle FROM hall [NOW]"
SUPPLY = "SELECT supply, site FROM hall"
COUNTED = "SELECT COUNT(*) AS n, MEDIAN(supply) AS middle FROM hall [NOW]"
SECONDS, TOLD = 300, 240  # sleeping motes are configured later


@cache
def ran(agenda, *asked, faults=(), moves=PushdownPolicy.PLANNED, kind=EventTestbed):
    queries = tuple(ScenarioQuery(f"{at}", text, second * 1_000, None) for at, (text, second) in enumerate(asked))
    scenario = replace(read_scenario(FOLDER / "calm.toml"), queries=queries, faults=faults)
    if kind is VectorTestbed:
        return run_scenario(scenario, SECONDS, kind=partial(kind, pushdown=moves))
    return run_scenario(scenario, SECONDS + agenda * TOLD, kind=partial(kind, agenda=agenda, pushdown=moves))


def rows(bed, name):
    return [row for (what, _), of in said_by(bed, name).items() if what == "tuples at" for row in of]


def judged(bed):
    return [judge(bed, name) for name in bed.numbers]


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
@pytest.mark.parametrize("first", [(), ((FOLD, 0),)], ids=["collected", "beside a fold"])
def test_query_for_new_column_never_sees_nulls(first, agenda):
    """A fold has motes measure the column all along, and send what they fold only."""
    bed = ran(agenda, *first, (MEDIAN, 101), (SUPPLY, 143), (COUNTED, 147))
    assert min(judged(bed)) >= 4
    supply, counted = list(bed.numbers)[-2:]
    assert rows(bed, supply) and all(value == ("int", 2950) for value, _ in rows(bed, supply))
    said = [(cover["hall"][0], *map(tuple, found)) for cover, found in answers(bed, counted).values()]
    assert said == [(used, (used, 2950.0 if used else None)) for used, _ in said]
    used = [used for used, _ in said]
    assert used == sorted(used) and used.count(8) >= (8 if agenda else 12)


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
@pytest.mark.parametrize("moves", [PushdownPolicy.PLANNED, PushdownPolicy.EVERYTHING])
def test_unconfigured_mote_serves_earlier_queries_only(moves, agenda):
    cut = InjectedFault("cut", "cut", 144_000, 175_000, motes=tuple(range(1, 9)))
    bed = ran(agenda, (FOLD, 0), (MEDIAN, 141), (SUPPLY, 147), faults=(cut,), moves=moves)
    assert min(judged(bed)) >= 4
    assert rows(bed, "2") and all(value == ("int", 2950) for value, _ in rows(bed, "2"))


@pytest.mark.promise("placement")
def test_reading_without_column_is_none_for_later_query():
    """All motes measure the supply; three of them send it, and with it all send the temperature."""
    back = "SELECT COUNT(*) AS n, MEDIAN(supply) AS middle FROM hall [FROM NOW-110 TO NOW SLIDE 30 SEC]"
    bed = ran(False, ("SELECT temp FROM hall", 0), ("SELECT site, supply FROM hall WHERE site < 4", 0), (back, 205))
    assert min(judged(bed)) >= 3
    first = bed.scenario.begin_ms // 1_000 + 210
    cover, found = answers(bed, "2")[first, 1]
    assert list(map(tuple, found)) == [(cover["hall"][0], 2950.0)] and 3 * 12 <= cover["hall"][0] <= 3 * 12 + 5


def test_both_engines_agree_if_sites_send_different_columns():
    asked = ("SELECT temp FROM hall", 0), ("SELECT site, supply FROM hall WHERE site < 4", 0)
    bed = ran(True, *asked, kind=VectorTestbed)
    assert min(judged(bed)) >= 20
    assert {row for row in rows(bed, "1")} == {(("int", site), ("int", 2950)) for site in (1, 2, 3)}

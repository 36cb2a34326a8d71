"""Sites that every query excludes sample nothing; they begin when somebody asks them, and stop when nobody does any more."""

from dataclasses import replace
from functools import partial

import pytest

from basestation import testbed
from simulator.scenario import Asked, read_scenario
from tests.simulation.judging import FOLDER, judge, run_scenario
from tests.simulation.saying import said_by

SOME = Asked("some", "SELECT site, temp FROM hall [NOW] WHERE site <= 4", 0, None)
ALL = Asked("all", "SELECT site, temp FROM hall [NOW]", 200_000, 400_000)
KINDS = {"awake": testbed.Testbed, "by agenda": partial(testbed.Testbed, agenda=True), "swept": testbed.SweptBed}


def ran(kind, *queries):
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=queries)
    bed = run_scenario(scenario, 600, kind=KINDS[kind])
    begin = scenario.begin_ms // 1_000
    return bed, {(e.mote, e["tick"] - begin) for what in ("produced", "wasted") for e in bed.trace.of(what)}


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_asked_by_nobody_measures_nothing_and_is_not_missed(kind):
    bed, measured = ran(kind, SOME)
    assert {site for site, _ in measured} == {1, 2, 3, 4}
    assert judge(bed, "some") >= 58
    complete = [what for (kind, _), what in said_by(bed, "some").items() if kind == "coverage of"]
    assert complete.count({"hall": (8, 8)}) >= 57


@pytest.mark.parametrize(("kind", "told"), [("awake", 30), ("by agenda", 150)])  # who sleeps hears late of it
def test_who_is_asked_later_begins_then_and_stops_when_that_is_over(kind, told):
    bed, measured = ran(kind, SOME, ALL)
    assert judge(bed, "some") >= 58
    others = {tick for site, tick in measured if site > 4}
    assert 200 <= min(others) <= 200 + told and 390 <= max(others) <= 400 + told
    assert {site for site, tick in measured if tick == 390} == set(range(1, 9))
    # Nobody who stays misses a tick, or samples one twice, because others come and go.
    assert {tick for site, tick in measured if site == 1} >= set(range(20, 600, 10))
    assert len(bed.trace.of("produced")) == len({(e.mote, e["tick"]) for e in bed.trace.of("produced")})

"""A reading is measured once and crosses each link once, however many queries there are and come and go."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.testbed.event_testbed import EventTestbed
from simulator.scenario import ScenarioQuery, read_scenario
from tests.simulation.scenario_judge import FOLDER, judge, run_scenario

SECONDS = 1_500
RARE = "SELECT site, supply FROM hall ACQUIRE EVERY 30 SEC"
OTHERS = (
    "SELECT site, temp FROM hall",
    "SELECT temp, supply FROM hall WHERE temp > 20",
    "SELECT AVG(temp) FROM hall [FROM NOW-50 TO NOW SLIDE 1 MIN]",
    "SELECT MAX(supply) FROM hall [NOW] WHERE site < 5",
    "SELECT MEDIAN(temp) FROM hall [FROM NOW-20 TO NOW SLIDE 30 SEC]",
)
FROM, UNTIL = 400, 1_000
"""While the others are there, all of them for some of that time."""


@cache
def ran(agenda, moves):
    """No frame is lost, so a frame that arrives twice was sent twice."""
    scenario = read_scenario(FOLDER / "calm.toml")
    sure = replace(scenario.deployment, links=dict.fromkeys(scenario.deployment.links, 1.0))
    queries = [ScenarioQuery("rare", RARE, 0, None)]
    for number, text in enumerate(OTHERS):
        at, until = FROM + 40 * number, UNTIL - 50 * number
        queries.append(ScenarioQuery(f"other {number}", text, 1_000 * at, 1_000 * until))
    scenario = replace(scenario, deployment=sure, queries=tuple(queries))
    return run_scenario(scenario, SECONDS, kind=partial(EventTestbed, agenda=agenda, pushdown=moves))


RUNS = pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
MOVES = pytest.mark.parametrize("moves", ["planned", "nothing"])


@pytest.mark.promise("sampled-once")
@RUNS
@MOVES
def test_each_due_tick_is_measured_once_and_no_other(agenda, moves):
    measured = Counter((e.mote, e["tick"]) for e in ran(agenda, moves).trace.of("produced"))
    assert set(measured.values()) == {1}
    assert len({mote for mote, _ in measured}) == 8
    ticks = {tick for _, tick in measured}
    assert all(tick % 10 == 0 for tick in ticks)  # as the extent declares, and not more often
    assert any(tick % 30 for tick in ticks if FROM < tick < UNTIL)
    deployed = 250  # until all motes are configured under an agenda
    assert all(tick % 30 == 0 for tick in ticks if not FROM <= tick < UNTIL + deployed)


@pytest.mark.promise("sampled-once")
@RUNS
@MOVES
def test_a_reading_is_in_one_frame_which_crosses_each_link_once(agenda, moves):
    bed = ran(agenda, moves)
    samplings = {each.number: each for each in bed.earlier}
    assert len(samplings) == len(bed.earlier)  # so few that none has got the number of another
    posted = Counter(
        (e.mote, samplings[e["sampling"]].epochs.tick(epoch))
        for e in bed.trace.of("posted")
        for epoch in range(e["first"], e["first"] + e["count"])
    )
    assert set(posted.values()) == {1}
    handed = Counter((e.mote, e["origin"], e["boot"], e["seq"]) for e in bed.trace.of("sent") if e["kind"] == "READING")
    assert set(handed.values()) == {1}
    assert len({mote for mote, origin, _, _ in handed if mote != origin}) > 1  # some are handed on


@pytest.mark.promise("sampled-once")
@RUNS
@MOVES
def test_staying_query_misses_no_tick(agenda, moves):
    bed = ran(agenda, moves)
    assert not bed.refused and judge(bed, "rare") > 40
    missed = {(mote, tick) for mote in range(1, 9) for tick in range(FROM, SECONDS - 60) if tick % 30 == 0}
    assert not missed - {(e.mote, e["tick"]) for e in bed.trace.of("produced")}

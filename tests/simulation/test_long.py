"""What takes long: queries that come and go, and weeks in which memory must not grow."""

import gc
import tracemalloc
from dataclasses import replace

import pytest

from basestation import testbed
from basestation.queries import State
from basestation.results.feed import Feed
from basestation.trials import Forgetful
from simulator.scenario import Asked, read_scenario
from tests.simulation.judging import FOLDER, answers, judge

COMING = (
    "SELECT site, supply FROM hall [NOW]",
    "SELECT MAX(temp) AS most FROM hall [FROM NOW-20 TO NOW SLIDE 30 SEC]",
    "SELECT AVG(supply) AS mean FROM hall [FROM NOW-10 TO NOW SLIDE 20 SEC] WHERE temp > 19",
)


@pytest.mark.timeout(1_800)
def test_a_query_that_comes_and_goes_every_minute_disturbs_none_that_stays(counts):
    minutes = counts(8, 1_440)
    scenario = read_scenario(FOLDER / "calm.toml")
    passing = tuple(
        Asked(f"passing {minute}", COMING[minute % len(COMING)], minute * 60_000 + 5_000, minute * 60_000 + 50_000)
        for minute in range(minutes)
    )
    bed = testbed.Testbed(replace(scenario, queries=(*scenario.queries, *passing)), 1)
    bed.run_until(minutes * 60_000)
    assert bed.refused == {}
    states = [bed.station.world.queries[bed.numbers[asked.name]].state for asked in passing]
    assert set(states) == {State.STOPPED}
    # Who stays gets every tick once, and nothing is missing once the first epochs are over.
    windows = answers(bed, "now")
    ticks = [tick for tick, _ in windows]
    assert ticks == list(range(ticks[0], ticks[0] + 10 * len(ticks), 10))
    produced = {(e.mote, e["tick"]) for e in bed.trace.of("produced")}
    assert len(bed.trace.of("produced")) == len(produced)
    complete = [coverage["hall"] for coverage, _ in list(windows.values())[3:-1]]
    assert sum(used for used, _ in complete) >= 0.97 * sum(due for _, due in complete)
    if minutes < 60:  # a number of a sampling is used again after 256
        judge(bed, "now")


@pytest.mark.timeout(1_800)
def test_weeks_go_by_and_memory_does_not_grow(counts):
    days = counts(2, 30)
    bed = testbed.Testbed(read_scenario(FOLDER / "thirty_days.toml"), 1, traced=False, archive=Forgetful())
    bed.station.feed = Feed(100)  # which is full after a few hours, not after a month
    held = []
    tracemalloc.start()
    try:
        for third in (1, 2, 3):
            bed.run_until(third * days * 86_400_000 // 3)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[2] < held[1] * 1.1 + 200_000
    received = bed.station.engine.ledger()["hall"]["received"]
    assert received >= 0.95 * bed.tally.produced.total()
    assert bed.tally.produced.total() >= 0.97 * 8 * 96 * days

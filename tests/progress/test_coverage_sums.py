"""Coverage sums: dropped sums are recomputed to the same values."""

import numpy as np
import pytest

from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.progress.coverage_sums import CoverageSums
from basestation.progress.query_scope import WHOLE_SCOPE
from basestation.progress.watermark import EpochProgress
from basestation.replay.inputs import read_recording
from basestation.updates.update import split_singly
from tests.execution.test_sharing import plainly

CATALOG = read_schema("road: sensed (site:integer, n:integer) every 2 sec at sites 1, 2, 3 late revise by 20 sec")
SELDOM = "SELECT COUNT(*) AS k FROM road [FROM NOW-9 TO NOW SLIDE 4000 SEC]"
DAY = 86_400  # a reading may be corrected for this many ticks
ROWS = [
    {"_tick": begin + tick, "_site": site, "_arrival": begin + tick + (tick // 2 * site) % 12, "n": 0}
    for begin in (0, DAY, 3 * DAY)
    for tick in range(0, 200, 2)
    for site in (1, 2, 3)
    if (tick + site) % 5
]


def came():
    [batch] = read_recording(CATALOG, {"road": sorted(ROWS, key=lambda row: row["_arrival"])}).batches.values()
    return batch


def told(tidy_every):
    engine, said, batch = Engine(CATALOG, tidy_every=tidy_every), [], came()
    engine.add(1, bind_text(SELDOM, CATALOG)[0])
    for clock in sorted({*batch.arrival.tolist(), *range(DAY, 6 * DAY, DAY // 2)}):
        engine.deliver("road", batch.take(batch.arrival == clock))
        said += [(clock, *plainly(update)) for update in split_singly(engine.on_clock(clock))]
    return said


def test_recomputed_coverage_is_the_same():
    assert told(tidy_every=1) == told(tidy_every=10_000)


@pytest.mark.promise("queries-apart")
def test_anchor_survives_days_without_queries():
    engine, none_excluded = Engine(CATALOG, tidy_every=1), np.zeros(3, bool)
    engine.deliver("road", came().take(came().tick < DAY))
    engine.on_clock(300)
    engine.ledger()  # takes in what waits
    intake = engine._intakes.extents["road"]
    intake.site_coverage.tally(2, none_excluded, WHOLE_SCOPE).anchor(0)
    begin, behind = np.array([0]), np.array([100])
    used = intake.site_coverage.tally(2, none_excluded, WHOLE_SCOPE).between(begin, behind).tolist()
    assert used[0] > 0
    engine.on_clock(3 * DAY)
    engine.ledger()
    assert intake.begun > 300
    assert intake.site_coverage.tally(2, none_excluded, WHOLE_SCOPE).between(begin, behind).tolist() == used


@pytest.mark.promise("queries-apart")
def test_ended_queries_leave_no_coverage_sums():
    engine = Engine(CATALOG, tidy_every=1)
    for number in range(30):
        every, site = 2 * number + 2, number % 3 + 1
        asked = f"SELECT COUNT(*) AS k FROM road [NOW] WHERE site = {site} ACQUIRE EVERY {every} SEC"
        engine.add(number, bind_text(asked, CATALOG)[0])
        engine.on_clock(number * DAY + 199)
        engine.remove(number)
        engine.on_clock((number + 1) * DAY - 1)
        assert len(engine._intakes.extents["road"].site_coverage.tallies) <= 3


class AllSitesUsed:
    """Uses three sites at every tick."""

    def used(self, ticks, excluded, scope):
        return np.full(len(ticks), 3)


def test_excluded_sites_count_in_forgotten_ticks():
    extent = CATALOG.find("road")
    sums = CoverageSums(AllSitesUsed(), EpochProgress(extent, 0), 2, np.array([True, False, False]), 0, WHOLE_SCOPE)
    first, behind = np.array([0]), np.array([10])  # places: tick 0, 2, … 18
    assert sums.between(first, behind).tolist() == [30]
    sums.forget(10)
    assert sums.between(first, behind).tolist() == [
        5 * 1 + 5 * 3
    ]  # of what was forgotten, only excluded sites are known


class CountedSites:
    """Uses as many sites at each tick as its number says, and excluded ones besides."""

    def __init__(self):
        self.by_tick = {}

    def used(self, ticks, excluded, scope):
        return np.array([self.by_tick.get(tick, 0) for tick in ticks.tolist()]) + int(excluded.sum())


def sums_of(sites, excluded=(False, False, False)):
    return CoverageSums(sites, EpochProgress(CATALOG.find("road"), 0), 2, np.array(excluded), 0, WHOLE_SCOPE)


def test_range_of_ticks_ends_with_the_place_of_its_last_tick():
    """
    tick    0  1  2  3  4  5
    place   0     1     2
    """
    low, high = np.array([0, 0, 1, 3]), np.array([4, 5, 4, 3])
    assert [found.tolist() for found in sums_of(CountedSites()).places(low, high)] == [[0, 0, 1, 2], [3, 3, 3, 2]]


def test_changed_tick_is_counted_anew():
    sites = CountedSites()
    sums, at = sums_of(sites), np.arange(5)
    assert sums.between(at, at + 1).tolist() == [0] * 5
    sites.by_tick = {4: 2, 6: 1}
    sums.changed(4)
    assert sums.between(at, at + 1).tolist() == [0, 0, 2, 1, 0]


def test_excluded_sites_count_where_no_reading_came():
    at = np.arange(3)
    assert sums_of(CountedSites(), (True, False, True)).between(at, at + 1).tolist() == [2, 2, 2]

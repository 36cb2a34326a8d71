"""The watermark against semantics 1.5.

due ticks    0    10    20    30
sites 4, 3   ●●   ●○    ●●              ○ missing: the watermark stays at 9 until clock 10 + wait
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Schema
from basestation.progress.watermark import FREE, NEVER, EpochProgress


def epochs(interval=10, sites=(4, 3), wait=5, begun=0):
    return EpochProgress(Extent("field", ExtentKind.SENSED, Schema(()), interval, sites, wait), begun)


def take(found, pairs, first=0, unseen=()):
    """`unseen` are the indexes of tuples that windows do not see any more."""
    ticks, sites = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    found.take(ticks, sites, first + np.arange(len(pairs)), lambda numbers: ~np.isin(numbers, [FREE, *unseen]))


def holders(found, pairs):
    ticks, sites = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return found.holders(ticks, sites).tolist()


def obvious(clock, begun, interval, sites, wait, here):
    """The largest m <= T such that each due tick up to m has all its sites' readings or lies at least wait back."""
    due = [tick for tick in range(0, clock + 1, interval) if tick >= begun]
    blocking = [tick for tick in due if len({s for t, s in here if t == tick}) < sites and clock - tick < wait]
    return min(blocking) - 1 if blocking else clock


@pytest.mark.promise("clock-and-schedule")
@given(st.data())
def test_watermark_matches_semantics(data):
    interval, sites = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    begun, wait = interval * data.draw(st.integers(0, 2)), data.draw(st.integers(0, 15))
    found = epochs(interval, tuple(range(sites)), wait, begun)
    pairs = [(tick, site) for tick in range(begun, 41, interval) for site in range(sites)]
    coming = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    here, before = [], -1
    for clock in range(-2, 45):
        now, coming = coming[: clock % 3], coming[clock % 3 :]
        if now:
            take(found, now, first=len(here))
        here += now
        watermark = found.watermark(clock)
        assert watermark == obvious(clock, begun, interval, sites, wait, here)
        assert watermark >= before or clock <= 0
        before = watermark
        found.forget(clock - wait)


@pytest.mark.promise("bounded-memory")
@given(st.data())
def test_first_tuple_holds_key_until_release(data):
    """Against dictionaries of holders, visible tuples and reports."""
    found = epochs(interval=2, sites=(7, 1, 4))
    unseen, held, seen = set(), {}, {}
    for number in range(data.draw(st.integers(0, 20))):
        key = (2 * data.draw(st.integers(0, 2)), data.draw(st.sampled_from([7, 1, 4])))
        assert holders(found, [key]) == [held.get(key, FREE)]
        if key in held:
            dead = data.draw(st.booleans())  # deleted, and visible to windows or not
            found.release(np.array([key[0]]), np.array([key[1]]))
            if dead:
                unseen.add(held[key])
            if dead and seen[key] == held[key]:
                seen[key] = None
            del held[key]
        else:
            take(found, [key], first=number, unseen=unseen)
            held[key] = number
            if seen.get(key) is None:
                seen[key] = number
    for tick in (0, 2, 4):
        row = found.seen_at(np.array([tick]))[0]
        for place, site in enumerate((7, 1, 4)):
            wanted = seen.get((tick, site))
            if wanted is not None:
                assert row[place] == wanted


@pytest.mark.promise("bounded-memory")
@given(st.data())
def test_key_batches_equal_single_keys(data):
    """In any order, with equal keys, and with site numbers close together or far apart."""
    sites = data.draw(st.sampled_from([(7, 1, 4), (3, 10**15, -(2**62)), ()]))
    together, singly = epochs(interval=5, sites=sites), epochs(interval=5, sites=sites)
    keys = st.tuples(st.integers(-1, 4).map(lambda n: 5 * n), st.sampled_from([*sites, 2, 2**62]))
    known = 0
    for _ in range(data.draw(st.integers(1, 5))):
        asked = data.draw(st.lists(keys, min_size=1, max_size=8))
        ticks, places = (np.array(column, np.int64) for column in zip(*asked, strict=True))
        due = together.due(ticks, places)
        assert due.tolist() == [tick >= 0 and site in sites for tick, site in asked]
        ticks, places = ticks[due], places[due]
        asked = list(zip(ticks.tolist(), places.tolist(), strict=True))
        first = together.first_of_each(ticks, places)
        assert first.tolist() == [key not in asked[:at] for at, key in enumerate(asked)]
        one = [(np.array([tick]), np.array([site])) for tick, site in asked]
        for ask in ("holders", "is_released", "positions"):
            found = getattr(together, ask)(ticks, places).tolist()
            assert found == [getattr(singly, ask)(*key)[0] for key in one]
        unheard = together.not_yet_reported(ticks, places)
        assert unheard.tolist() == [
            bool(singly.not_yet_reported(*key)[0]) and new for key, new in zip(one, first, strict=True)
        ]
        what = data.draw(st.sampled_from(["take", "report", "release"]))
        if what == "take":
            free = first & (together.holders(ticks, places) == FREE)
            for tick, site in zip(ticks[free].tolist(), places[free].tolist(), strict=True):
                take(singly, [(tick, site)], first=known)
                known += 1
            if free.any():
                pairs = list(zip(ticks[free].tolist(), places[free].tolist(), strict=True))
                take(together, pairs, first=known - len(pairs))
        elif what == "report":
            together.report(ticks, places, ticks + np.arange(len(ticks)))
            for at, key in enumerate(one):
                singly.report(*key, key[0] + at)
        else:
            held = together.holders(ticks, places) != FREE
            together.release(ticks[held], places[held])
            for at in np.flatnonzero(held):
                singly.release(*one[at])
    grid = np.arange(0, 21, 5)
    assert together.seen_at(grid).tolist() == singly.seen_at(grid).tolist()
    assert together.filtered_at(grid).tolist() == singly.filtered_at(grid).tolist()
    assert [together.watermark(clock) for clock in range(30)] == [singly.watermark(clock) for clock in range(30)]


@pytest.mark.promise("clock-and-schedule")
def test_silent_site_delays_watermark_by_wait():
    found = epochs()
    take(found, [(0, 3), (0, 4), (10, 4)])
    assert [found.watermark(clock) for clock in (0, 9, 10, 14, 15, 19)] == [0, 9, 9, 9, 15, 19]


def test_released_key_still_counts_as_reported():
    found = epochs()
    take(found, [(0, 3), (0, 4)])
    found.release(np.array([0]), np.array([3]))
    assert found.watermark(1) == 1
    assert holders(found, [(0, 3), (0, 4)]) == [FREE, 1]


def test_due_readings_are_on_grid_and_declared():
    found = epochs(interval=10, sites=(4, 3, 9), begun=15)
    ticks, sites = np.array([10, 20, 20, 20, 25, 30]), np.array([3, 3, 5, 9, 3, 10])
    assert found.due(ticks, sites).tolist() == [False, True, False, True, False, False]


def test_first_of_equal_keys_is_marked():
    found = epochs()
    mask = found.first_of_each(np.array([0, 0, 10, 0, 10]), np.array([3, 4, 3, 3, 3]))
    assert mask.tolist() == [True, True, True, False, False]


def test_first_schedule_fixes_first_due_tick():
    found = epochs(begun=None)
    assert found.begun == NEVER
    assert not found.due(np.array([0, 10]), np.array([3, 3])).any()
    assert found.watermark(42) == 42
    found.schedule(93)
    found.schedule(57)
    assert found.begun == 100
    assert [found.watermark(clock) for clock in (99, 100, 104, 105)] == [99, 99, 99, 105]


def test_extent_without_sites_never_delays():
    found = epochs(sites=())
    assert found.watermark(42) == 42
    assert not found.due(np.array([0]), np.array([3])).any()


def test_forgotten_epochs_are_empty():
    found = epochs()
    take(found, [(0, 3), (10, 3)])
    found.forget(10)
    assert found.seen_at(np.array([0, 10])).tolist() == [[FREE, FREE], [FREE, 1]]

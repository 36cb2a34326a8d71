"""SensedWatermark against the sentence of SEMANTICS 1.5, word for word."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.windows.watermark import SensedWatermark


def obvious(clock, first_due, interval, sites, wait, here):
    """The largest m <= T such that each due tick up to m has all its sites' readings or lies at least wait back."""
    due = [tick for tick in range(0, clock + 1, interval) if tick >= first_due]
    blocking = [tick for tick in due if here.count(tick) < sites and clock - tick < wait]
    return min(blocking) - 1 if blocking else clock


@given(st.data())
def test_it_is_what_the_semantics_say(data):
    interval, sites = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    first_due = interval * data.draw(st.integers(0, 2))
    wait = data.draw(st.integers(0, 15))
    watermark = SensedWatermark(first_due, interval, sites, wait)
    pairs = [(tick, site) for tick in range(first_due, 41, interval) for site in range(sites)]
    coming = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    here, before = [], -1
    for clock in range(-2, 45):
        now, coming = coming[: clock % 3], coming[clock % 3 :]
        watermark.reported(np.array([tick for tick, _ in now], np.int64))
        here += [tick for tick, _ in now]
        found = watermark.at(clock)
        assert found == obvious(clock, first_due, interval, sites, wait, here)
        assert found >= before or clock <= 0
        before = found
        watermark.forget(clock - wait)


def test_a_silent_site_holds_no_longer_than_wait():
    watermark = SensedWatermark(0, 10, 2, wait=5)
    watermark.reported(np.array([0, 0, 10]))
    assert [watermark.at(clock) for clock in (0, 9, 10, 14, 15, 19)] == [0, 9, 9, 9, 15, 19]


def test_before_the_first_due_tick_it_is_the_clock():
    assert SensedWatermark(100, 10, 2, wait=5).at(42) == 42

"""TickSpans against sets of ticks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.tick_spans import TickSpans

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 6)), max_size=6)
TICKS = np.arange(-1, 40)


def made(pairs):
    left = np.array([low for low, _ in pairs], np.int64)
    return TickSpans.of(left, left + np.array([more for _, more in pairs], np.int64))


def ticks_of(pairs):
    return {tick for low, more in pairs for tick in range(low, low + more + 1)}


@given(PAIRS)
def test_spans_contain_the_ticks_of_their_ranges(pairs):
    assert set(TICKS[made(pairs).contains(TICKS)].tolist()) == ticks_of(pairs)


@given(PAIRS, PAIRS)
def test_spans_unite_and_subtract_as_sets_do(a, b):
    assert set(TICKS[made(a).with_spans(made(b)).contains(TICKS)].tolist()) == ticks_of(a) | ticks_of(b)
    left = made(a).without(made(b))
    assert {tick for low, high in left for tick in range(low, high + 1)} == ticks_of(a) - ticks_of(b)
    assert all(low <= high for low, high in left) and left == sorted(left)

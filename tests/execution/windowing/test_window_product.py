"""Combinations of windows, against what is combined tick by tick; and edges against a count of each.

tick        0    2    3    4    6
input A     A1   A2        A3   A4
input B               B1        B2
combined              A2B1 A3B1 A4B2
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.window_lookup import find_containing
from basestation.execution.windowing.window_product import WindowSequence, combine_recent

TICKS = st.lists(st.integers(0, 30), max_size=12).map(sorted)
REGULAR = st.builds(range, st.integers(-9, 9), st.integers(-9, 40), st.integers(1, 7)).map(list)


@st.composite
def sequences(draw):
    """[(ticks of new windows, how many are the most recent before)], at least one window in all."""
    ticks = draw(st.lists(TICKS | REGULAR, min_size=1, max_size=3).filter(any))
    return [(of, draw(st.integers(0, 3))) for of in ticks]


@pytest.mark.promise("joins")
@given(sequences())
def test_each_tick_combines_the_most_recent_windows(told):
    recent = [np.arange(count) for _, count in told]
    new = [WindowSequence(np.array(of, np.int64), 10 + np.arange(len(of))) for of, _ in told]
    ticks, n, numbers = combine_recent(new, recent)
    expected, latest = [], [list(range(count)) for _, count in told]
    for tick in sorted({tick for of, _ in told for tick in of}):
        for place, (of, _) in enumerate(told):
            if tick in of:
                latest[place] = [10 + at for at, own in enumerate(of) if own == tick]
        expected += [(tick, at, each) for at, each in enumerate(product(*latest), 1)]
    assert list(zip(ticks.tolist(), n.tolist(), map(tuple, numbers.tolist()), strict=True)) == expected


@st.composite
def windows(draw):
    """(where windows begin, where they end), both in order; some are equal, or empty."""
    right = draw(TICKS | REGULAR)
    sizes = [draw(st.integers(0, 9))] * len(right) if draw(st.booleans()) else [draw(st.integers(0, 9)) for _ in right]
    return sorted(end - size for end, size in zip(right, sizes, strict=True)), right


@given(windows(), st.lists(st.integers(-20, 50), max_size=20))
def test_windows_containing_a_tick_are_consecutive(told, ticks):
    left, right = told
    found = find_containing(*(np.array(of, np.int64) for of in (left, right, ticks)))
    assert found[0].tolist() == [sum(end < tick for end in right) for tick in ticks]
    assert found[1].tolist() == [sum(begin <= tick for begin in left) - 1 for tick in ticks]

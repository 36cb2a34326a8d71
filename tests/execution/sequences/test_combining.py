"""Which windows stand together, against what stands there tick by tick; and edges against a count of each."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.edges import before
from basestation.execution.sequences.combining import Sequence, combinations

TICKS = st.lists(st.integers(0, 30), max_size=12).map(sorted)
REGULAR = st.builds(range, st.integers(-9, 9), st.integers(-9, 40), st.integers(1, 7)).map(list)


@st.composite
def sequences(draw):
    """[(ticks of new windows, how many are the most recent before)], at least one window in all."""
    ticks = draw(st.lists(TICKS | REGULAR, min_size=1, max_size=3).filter(any))
    return [(of, draw(st.integers(0, 3))) for of in ticks]


@given(sequences())
def test_at_each_tick_all_combinations_of_the_most_recent(told):
    recent = [np.arange(count) for _, count in told]
    new = [Sequence(np.array(of, np.int64), 10 + np.arange(len(of))) for of, _ in told]
    ticks, n, numbers = combinations(new, recent)
    expected, latest = [], [list(range(count)) for _, count in told]
    for tick in sorted({tick for of, _ in told for tick in of}):
        for place, (of, _) in enumerate(told):
            if tick in of:
                latest[place] = [10 + at for at, own in enumerate(of) if own == tick]
        expected += [(tick, at, each) for at, each in enumerate(product(*latest), 1)]
    assert list(zip(ticks.tolist(), n.tolist(), map(tuple, numbers.tolist()), strict=True)) == expected


@given(TICKS | REGULAR, st.lists(st.integers(-20, 50), max_size=20))
def test_edges_before_a_tick_are_counted(edges, ticks):
    found = before(np.array(edges, np.int64), np.array(ticks, np.int64))
    assert found.tolist() == [sum(edge < tick for edge in edges) for tick in ticks]

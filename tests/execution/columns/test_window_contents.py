"""WindowContents: the positions of the tuples of each window."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.window_contents import WindowContents

ALIKE = st.tuples(st.integers(0, 6), st.integers(0, 40)).map(lambda told: [told[1]] * told[0])
COUNTS = st.lists(st.integers(0, 40), max_size=6) | ALIKE


@given(COUNTS)
def test_bounds_are_running_counts_of_tuples(counts):
    window = np.repeat(np.arange(len(counts)), counts)
    assert WindowContents(len(counts), window, {}).bounds().tolist() == [0, *np.cumsum(counts).tolist()]

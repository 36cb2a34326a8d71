"""Frames: where the tuples of each window are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.window_contents import WindowContents

ALIKE = st.tuples(st.integers(0, 6), st.integers(0, 40)).map(lambda told: [told[1]] * told[0])
COUNTS = st.lists(st.integers(0, 40), max_size=6) | ALIKE


@given(COUNTS)
def test_where_windows_begin_and_end_is_how_many_tuples_are_before(counts):
    window = np.repeat(np.arange(len(counts)), counts)
    assert WindowContents(len(counts), window, {}).bounds().tolist() == [0, *np.cumsum(counts).tolist()]

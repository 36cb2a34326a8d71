"""Windows over rows of a matrix, against each window merged row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.slices.sparse_table import SparseTable
from innet.aggregates import create_aggregate

FOLDS = ((np.add, 0), (np.minimum, 99), (np.logical_or, False))


@st.composite
def windows(draw):
    """(rows, width, begin, end): windows that begin in any order, of any length, also of none."""
    rows, width = draw(st.integers(0, 40)), draw(st.integers(1, 3))
    ends = draw(st.lists(st.tuples(st.integers(0, rows), st.integers(0, rows)).map(sorted), max_size=6))
    if draw(st.booleans()):  # as they are mostly: one behind the other, all of one length
        length = draw(st.integers(0, rows))
        ends = [(begin, begin + length) for begin in range(rows - length + 1)]
    begin, end = (np.array([each[i] for each in ends], np.int64) for i in (0, 1))
    return rows, width, begin, end


@pytest.mark.promise("exact-aggregates")
@given(windows(), st.data())
def test_sparse_table_folds_rows_of_each_window(found, data):
    rows, width, begin, end = found
    doubling = SparseTable(rows, width, begin, end)
    cells = data.draw(st.lists(st.integers(0, 9), min_size=rows * width, max_size=rows * width))
    for fold, blank in FOLDS:
        matrix = np.array(cells, type(blank)).reshape(rows, width)
        wanted = [fold.reduce(matrix[a:b], axis=0, initial=blank) for a, b in zip(begin, end, strict=True)]
        got = doubling.array(fold, matrix.reshape(-1), blank).reshape(len(begin), width)
        assert got.tolist() == [row.tolist() for row in wanted]


@pytest.mark.promise("exact-aggregates")
@given(windows(), st.data())
def test_sparse_table_merges_states_without_folds(found, data):
    rows, width, begin, end = found
    least = create_aggregate("MIN", "string")
    texts = data.draw(st.lists(st.none() | st.text("abc", max_size=2), min_size=rows * width, max_size=rows * width))
    state, valid = least.init(rows * width), np.array([text is not None for text in texts], bool)
    values = np.array([text or "" for text in texts], object)
    least.update(state, np.arange(rows * width), values, valid)
    values, there = least.finalize(SparseTable(rows, width, begin, end).state(least, state))
    for cell in range(len(begin) * width):
        window, column = divmod(cell, width)
        inside = [texts[row * width + column] for row in range(begin[window], end[window])]
        wanted = min((text for text in inside if text is not None), default=None)
        assert (values[cell] if there[cell] else None) == wanted

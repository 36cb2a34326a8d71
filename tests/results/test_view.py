"""The current answer is the sum of the updates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.results.view import current_tuples, current_windows
from basestation.updates.update import EpochMark, QueryFailure, Rows, TupleUpdates, WindowUpdate
from tests.algebra.vectors import vector_of

TYPES = (Type.FLOAT, Type.INTEGER, Type.STRING)


def rows(items):
    columns = list(zip(*items, strict=True)) if items else [()] * len(TYPES)
    return Rows(tuple(vector_of(list(c), t) for c, t in zip(columns, TYPES, strict=True)), len(items))


def window(added=(), removed=(), revision=0, tick=10, n=1, query=1):
    """An update with columns v (float), w (integer or null) and s (string)."""
    coverage = {"field": (revision, 9)}
    return WindowUpdate(query, tick, n, None, revision, coverage, rows(list(added)), rows(list(removed)))


def tuples(*items, query=1):
    """From (tick, index, weight, row)."""
    tags = [np.array([item[i] for item in items], np.int64) for i in range(3)]
    return TupleUpdates(query, *tags, rows([item[3] for item in items]))


ROWS = st.tuples(st.sampled_from([0.5, 1.5]), st.sampled_from([None, 0, 7]), st.sampled_from(["a", "b"]))


@given(st.lists(st.lists(ROWS, max_size=4), min_size=1, max_size=5), st.data())
def test_window_is_sum_of_updates(given_, data):
    """Against a list: an update removes existing rows, of equal rows the last one."""
    there, updates = [], []
    for revision, new in enumerate(given_):
        old = data.draw(st.lists(st.sampled_from(there), max_size=3)) if there else []
        old = list((Counter(old) & Counter(there)).elements())
        updates.append(window(new, old, revision))
        for row in old:
            del there[len(there) - 1 - there[::-1].index(row)]
        there += new
    [found] = current_windows(updates)
    assert found.rows.to_lists() == there
    assert (found.revision, found.coverage) == (len(given_) - 1, {"field": (len(given_) - 1, 9)})


def test_null_differs_from_zero():
    [found] = current_windows([window([(1.0, None, "a"), (1.0, 0, "a")]), window([], [(1.0, 0, "a")], 1)])
    assert found.rows.to_lists() == [(1.0, None, "a")]


@pytest.mark.parametrize("there", [[], [(1.0, 1, "a")], [(1.0, 2, "a"), (1.0, 1, "b")]])
def test_removing_unknown_row_raises(there):
    with pytest.raises(AssertionError, match="had not added"):
        current_windows([window(there), window([], [(1.0, 1, "a"), (1.0, 1, "a")], 1)])


def test_rows_without_columns_are_counted():
    nothing = [Rows((), size) for size in (2, 1, 0)]
    first = WindowUpdate(1, 10, 1, None, 0, {}, nothing[0], nothing[2])
    then = WindowUpdate(1, 10, 1, None, 1, {}, nothing[2], nothing[1])
    [found] = current_windows([first, then])
    assert found.rows.to_lists() == [()]


def test_each_window_appears_once_in_order():
    late, early, second = window([(1.0, 1, "a")], tick=20), window([(2.0, 2, "b")]), window([(9.0, 9, "z")], n=2)
    fix = window([(3.0, 2, "b")], [(2.0, 2, "b")], 1)
    found = current_windows([early, second, late, fix, QueryFailure(1, "SN511", "why", 30)])
    assert [(w.tick, w.n, w.revision, w.rows.to_lists()) for w in found] == [
        (10, 1, 1, [(3.0, 2, "b")]), (10, 2, 0, [(9.0, 9, "z")]), (20, 1, 0, [(1.0, 1, "a")])]  # fmt: skip


def test_stream_is_added_minus_retracted_tuples():
    a, b, c = (0.5, 1, "a"), (1.5, None, "b"), (2.5, 3, "c")
    updates = [
        tuples((5, 1, 1, a), (5, 2, 1, b)),
        EpochMark(1, 5, {"field": (2, 2)}),
        tuples((4, 3, 1, c)),
        tuples((5, 1, -1, a)),
        tuples((5, 2, -1, b), (5, 2, 1, a)),  # a replacement keeps its index
    ]
    found = current_tuples(updates)
    assert (found.tick.tolist(), found.index.tolist(), found.rows.to_lists()) == ([5, 4], [2, 3], [a, c])


@pytest.mark.parametrize("weights", [(1, 1), (-1,), (1, -1, -1)])
def test_duplicate_add_or_retract_raises(weights):
    with pytest.raises(AssertionError, match="twice"):
        current_tuples([tuples((5, 1, weight, (0.5, 1, "a"))) for weight in weights])


def test_stream_without_tuples_raises():
    with pytest.raises(ValueError, match="no tuples yet"):
        current_tuples([EpochMark(1, 5, {})])

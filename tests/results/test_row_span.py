"""Spans of rows: their columns are cut when they are read, once, and a copy has no other rows."""

import pickle

import numpy as np

from basestation.algebra.vector import Vector
from basestation.updates.update import Rows, SharedWindowUpdates


def rows_of(count):
    numbers = np.arange(count)
    return Rows((Vector(numbers), Vector(numbers * 10, numbers % 3 > 0)), count)


def test_span_of_span_has_rows_of_first():
    span = rows_of(9).span(2, 8)
    assert (len(span), span.to_lists()) == (6, rows_of(9).to_lists()[2:8])
    assert span.span(1, 3).to_lists() == rows_of(9).to_lists()[3:5]
    assert span.take(np.array([0, 5])).to_lists() == [rows_of(9).to_lists()[at] for at in (2, 7)]


def test_span_of_all_rows_is_rows_themselves():
    rows = rows_of(4)
    assert rows.span(0, 4) is rows
    assert (part := rows.span(1, 3)).span(0, 2) is part


def test_unread_windows_of_query_cut_no_column():
    """A piece of 3 queries with 2 windows each is cut for the windows that are read, not for the query before."""

    class Counted(Vector):
        cuts = 0

        def take(self, which):
            Counted.cuts += 1
            return super().take(which)

    rows = Rows((Counted(np.arange(12)),), 12)
    ticks = np.arange(2)
    shared = SharedWindowUpdates(
        [1, 2, 3], ticks, ticks, np.array([None, None]), {}, rows, np.arange(0, 12, 4)[:, None] + [0, 2, 4]
    )
    pieces = list(shared.pieces())
    before = Counted.cuts
    windows = [window for piece in pieces[1:] for window in piece]
    assert Counted.cuts == before
    assert [window.added.to_lists() for window in windows] == [[(4,), (5,)], [(6,), (7,)], [(8,), (9,)], [(10,), (11,)]]
    assert [len(window.added.columns) for window in windows] == [1] * 4
    assert Counted.cuts == before + 4


def test_pickled_span_has_its_rows_alone():
    span = rows_of(100_000).span(5, 7)
    data = pickle.dumps(span)
    assert type(pickle.loads(data)) is Rows
    assert pickle.loads(data).to_lists() == span.to_lists()
    assert len(data) < 1_000

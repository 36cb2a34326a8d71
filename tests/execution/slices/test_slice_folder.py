"""Partial states of slices and groups: what undo leaves, with the cells that are made again, is what the other tuples give."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.execution.columns.tuples import Tuples
from basestation.execution.relational.aggregation import result_vector
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from tests.algebra.vectors import vector_of

CATALOG = read_schema("hits: pushed (k:integer, v:integer) late revise by 10 sec")
AGGREGATES = ("COUNT(v) AS n, SUM(v) AS s", "COUNT(*) AS n, MIN(v) AS low", "FIRST(v) AS f, AVG(v) AS mean")
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-3, 3) | st.none(), st.booleans()), max_size=16
)
"""(slice, k, v, whether the tuple is taken back) of each tuple."""


class Stream:
    """The part of a stream that a folder reads."""

    by_site = False


def folder_of(select, group):
    (plan,) = bind_text(f"SELECT {select} FROM hits [FROM NOW-9 TO NOW SLIDE 2 SEC] {group}", CATALOG)
    [node] = [node for node in walk(rewrite(plan)[0].root) if isinstance(node, SliceAggregation)]
    return SliceFolder(node, node.aggregates), node.child.columns


def tuples_of(columns, rows):
    place, none = np.arange(len(rows)), np.zeros(len(rows), np.int64)
    tick = np.array([row[0] for row in rows], np.int64)
    values = {"k": [row[1] for row in rows], "v": [row[2] for row in rows]}
    vectors = {column.id: vector_of(values[column.name], Type.INTEGER) for column in columns if column.name in values}
    return Tuples(place, tick, tick, none, none, place, none, np.zeros(len(rows), bool), vectors)


def described(folder, cells, ordered):
    """The rows of cells in plain values: slice, group, entry of the first tuple where groups are ordered, results."""
    columns = [cells.slice, cells.group, *([cells.arrival, cells.place] if ordered else [])]
    pairs = zip(folder.registry.functions, cells.states, strict=True)
    columns += [result_vector(function, *function.finalize(state)) for function, state in pairs]
    rows = zip(*(each.tolist() if isinstance(each, np.ndarray) else each.to_list() for each in columns), strict=True)
    return sorted(rows, key=repr)


@pytest.mark.parametrize("group", ["", "GROUP BY k"])
@pytest.mark.parametrize("select", AGGREGATES)
@given(rows=ROWS)
@example(
    rows=[(0, 1, 2, True), (0, 2, None, True), (1, 1, 3, True), (1, 1, 1, False), (3, 0, 0, False)]
)  # slice 0 empties
def test_undone_cells_equal_cells_of_the_tuples_left(select, group, rows):
    folder, columns = folder_of(select, group)
    tuples, back = tuples_of(columns, rows), np.array([row[3] for row in rows], bool)
    if not back.any():
        return
    removed, left = tuples.take(back), tuples.take(~back)
    cells = folder.separate([folder.cells(tuples.tick, tuples, Stream())])
    undone, lost = folder.undo(cells, removed.tick, removed)
    again = left.take(folder.among(left.tick, left, lost))
    if len(again):
        undone = folder.insert(undone, folder.cells(again.tick, again, Stream()))
    expected = folder.cells(left.tick, left, Stream()) if len(left) else folder.concatenate([])
    assert described(folder, undone, group) == described(folder, expected, group)

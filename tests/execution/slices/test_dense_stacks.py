"""Consecutive windows over slices whose groups come and go, against each window merged slice by slice."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.cells import Cells
from basestation.execution.slices.dense_stacks import DenseStacks
from innet.aggregates import create_aggregate
from innet.aggregates.identity_memo import IdentityMemo

COUNT = create_aggregate("COUNT", "integer")


def part(number, groups):
    """The cells of one slice: in each group there is one tuple."""
    of = np.array(sorted(groups), np.int64)
    ones = np.ones(len(of), np.int64)
    return Cells(number * ones, of, number * ones, of, [COUNT.aggregate_rows(ones, None)])


def spread(cells, count):
    state = COUNT.scatter(cells.states[0], count, cells.group, IdentityMemo())
    blank = np.full(count, int(cells.slice[0]))
    return Cells(blank, np.arange(count), blank, blank, [state])


def combine(a, b):
    return Cells(a.slice, a.group, a.arrival, a.place, [COUNT.combine(a.states[0], b.states[0])])


def counts(cells):
    return COUNT.finalize(cells.states[0])[0]


@pytest.mark.promise("exact-aggregates")
@given(st.lists(st.sets(st.integers(0, 40), min_size=1), min_size=1, max_size=25), st.data())
def test_dense_stacks_give_the_merge_of_all_slices(groups, data):
    stacks, parts, first = DenseStacks(), [], 0
    for number, present in enumerate(groups):
        parts.append(part(number, present))
        if data.draw(st.integers(0, 5)) == 0:  # a slice of before became another
            at = data.draw(st.integers(0, number))
            parts[at] = part(at, data.draw(st.sets(st.integers(0, 40), min_size=1)))
        first = data.draw(st.integers(first, number))
        begin = (
            data.draw(st.integers(0, first)) if data.draw(st.integers(0, 5)) == 0 else first
        )  # an older window again
        inside = parts[begin:]
        width = 1 + max(int(each.group.max()) for each in parts)
        found = counts(stacks.over(inside, width, spread, combine))
        assert len(found) >= width
        expected = reduce(combine, (spread(each, len(found)) for each in inside))
        assert found.tolist() == counts(expected).tolist()


def test_dense_stacks_spread_a_slice_twice_at_most():
    spreads = 0

    def counted(cells, count):
        nonlocal spreads
        spreads += 1
        return spread(cells, count)

    stacks, parts = DenseStacks(), [part(number, {0, number % 7}) for number in range(200)]
    for last in range(20, 200):
        stacks.over(parts[last - 20 : last], 7, counted, combine)
    assert spreads <= 2 * 200

"""Consecutive windows from two stacks, against each window merged slice by slice."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.cells import Cells
from basestation.execution.slices.two_stacks import TwoStacks
from innet.aggregates import create_aggregate, state_bundle

COUNT, LEAST = create_aggregate("COUNT", "integer"), create_aggregate("MIN", "integer")


def part(number, arrival, values):
    """The cells of one slice: in group i there is one tuple, with values[i]."""
    of = np.arange(len(values))
    states = [COUNT.aggregate_rows(np.ones(len(values), np.int64), None), LEAST.init(len(values))]
    LEAST.update(states[1], of, np.array(values))
    return Cells(np.full(len(values), number), of, np.full(len(values), arrival), of, states, len(values))


def bundled(cells):
    return state_bundle.bundle_states((COUNT, LEAST), cells.states)


def answers(found):
    return [made.finalize(state)[0].tolist() for made, state in zip((COUNT, LEAST), found.states(), strict=True)]


@pytest.mark.promise("exact-aggregates")
@given(st.data())
def test_two_stacks_give_the_merge_of_all_slices(data):
    sliding, parts, of, first = TwoStacks(), [], [], 0
    for number in range(data.draw(st.integers(1, 25))):
        width = 2 if data.draw(st.integers(0, 9)) else 3  # a group that was not there before
        late = not data.draw(st.integers(0, 9))  # its tuples came before those of the slice before it
        of.append(
            (number, 0 if late else number + 1, data.draw(st.lists(st.integers(0, 99), min_size=width, max_size=width)))
        )
        parts.append(part(*of[-1]))
        if not data.draw(st.integers(0, 5)):  # a slice of before became another
            at = data.draw(st.integers(0, number))
            of[at] = (*of[at][:2], [value + 1 for value in of[at][2]])
            parts[at] = part(*of[at])
        if data.draw(st.booleans()):
            first = data.draw(st.integers(first, number))
            last = data.draw(st.integers(first, number)) if not data.draw(st.integers(0, 5)) else number
            begin = (
                data.draw(st.integers(0, first)) if not data.draw(st.integers(0, 5)) else first
            )  # an older window again
            inside = of[begin : last + 1]
            alike = len({len(values) for *_, values in inside}) == 1
            found = sliding.over(parts[begin : last + 1], bundled)
            out_of_order = any(b[1] <= a[1] for a, b in pairwise(inside))  # those of one arrival have places in order
            if not alike or out_of_order:
                assert found is None
            else:
                rows = np.array([values for *_, values in inside])
                assert answers(found) == [[len(inside)] * rows.shape[1], rows.min(axis=0).tolist()]


@pytest.mark.promise("exact-aggregates")
def test_two_stacks_merge_a_slice_three_times_at_most(monkeypatch):
    times, merged = 0, state_bundle.StateBundle.combine

    def counted(self, other):
        nonlocal times
        times += 1
        return merged(self, other)

    monkeypatch.setattr(state_bundle.StateBundle, "combine", counted)
    sliding, slices, length = TwoStacks(), 500, 60
    parts = [part(number, number, [number, -number]) for number in range(slices)]
    for number in range(length, slices):
        assert answers(sliding.over(parts[number - length : number], bundled))[0] == [length] * 2
    assert times <= 3 * slices


def test_replaced_slice_is_merged_again():
    sliding, parts = TwoStacks(), [part(number, number, [number]) for number in range(5)]
    assert answers(sliding.over(parts[:4], bundled)) == [[4], [0]]
    parts[2] = part(2, 2, [-7])
    assert answers(sliding.over(parts[1:], bundled)) == [[4], [-7]]


def test_two_stacks_refuse_states_without_folds():
    least = create_aggregate("MIN", "string")
    assert (
        TwoStacks().over([part(0, 0, [1])], lambda cells: state_bundle.bundle_states([least], [least.init(1)])) is None
    )

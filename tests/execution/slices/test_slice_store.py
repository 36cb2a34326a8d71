"""The slice store against a list of all cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.cells import Cells
from basestation.execution.slices.slice_store import SliceStore
from innet.aggregates import create_aggregate

COUNT = create_aggregate("COUNT", "integer")
OPERATIONS = ("add", "add", "add", "between", "cut off", "cut off before", "set")


def cells(slices):
    """A group for each of some slices, in order."""
    slices = np.array(slices, np.int64)
    of = np.arange(len(slices))
    return Cells(slices, of, of, of, [COUNT.aggregate_rows(np.ones(len(slices), np.int64), None)])


def slices_of(parts):
    assert all(len(part) for part in parts)
    return [number for part in parts for number in part.slice.tolist()]


@pytest.mark.promise("exact-aggregates")
@given(st.data())
def test_slice_store_stays_in_order_after_cuts(data):
    held, wanted = SliceStore(), []
    for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), max_size=20)):
        low, high = sorted(data.draw(st.tuples(st.integers(0, 30), st.integers(0, 30))))
        match operation:
            case "add":
                begin = wanted[-1] + 1 if wanted else 0
                more = sorted(data.draw(st.lists(st.integers(begin, begin + 4), max_size=6)))
                held.add(cells(more))
                wanted += more
            case "between":
                assert slices_of(held.between(low, high)) == [each for each in wanted if low <= each <= high]
            case "cut off":
                assert slices_of(held.cut_off(high)) == [each for each in wanted if each >= high]
                wanted = [each for each in wanted if each < high]
            case "cut off before":
                assert slices_of(held.cut_off_before(low)) == [each for each in wanted if each < low]
                wanted = [each for each in wanted if each >= low]
                held.add_before(cells([low - 1]))
                wanted.insert(0, low - 1)
            case "set":
                held.set(held.all())
        assert slices_of(held.all()) == wanted
        assert len(held) == len(wanted)


def test_range_between_two_slices_of_a_part_is_empty():
    held = SliceStore()
    held.add(cells([1, 5]))
    assert held.between(2, 4) == []


@pytest.mark.promise("exact-aggregates")
def test_rest_of_a_cut_part_frees_the_memory_cut_off():
    held, part = SliceStore(), cells(range(1000))
    held.add(part)
    held.cut_off_before(999)
    [kept] = held.all()
    assert not any(np.shares_memory(kept.slice, column) for column in (part.slice, part.group))
    assert kept.states[0].cells["count"].base is None

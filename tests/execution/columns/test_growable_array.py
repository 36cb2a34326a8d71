"""GrowableArray against a list; the initial array is never written to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.growable_array import GrowableArray

NUMBERS = st.lists(st.integers(0, 9), max_size=40)
STEPS = st.lists(st.tuples(st.sampled_from(("extend", "drop", "cut")), NUMBERS, st.floats(0, 1)), max_size=20)


@given(NUMBERS, STEPS)
def test_growable_array_equals_list_after_drops_and_cuts(begun, steps):
    array = np.array(begun, np.int64)
    grown, wanted, added = GrowableArray(array), list(begun), 0
    for step, numbers, part in steps:
        if step == "extend":
            grown.extend(np.array(numbers, np.int64))
            wanted, added = wanted + numbers, added + len(numbers)
        elif step == "drop":
            count = int(part * len(wanted))
            grown.drop(count)
            wanted, added = wanted[count:], min(added, len(wanted) - count)
        else:
            count = int(part * added)
            grown.cut(len(wanted) - count)
            wanted, added = wanted[: len(wanted) - count], added - count
        assert grown.values.tolist() == wanted
        assert len(grown) == len(wanted)
    assert array.tolist() == begun


def test_cut_array_grows_again_without_copy():
    grown = GrowableArray(np.empty(0, np.int64))
    grown.extend(np.arange(1000))
    before = grown.values
    grown.cut(990)
    grown.extend(np.arange(5))
    assert np.shares_memory(grown.values, before)
    assert grown.values.tolist() == [*range(990), *range(5)]

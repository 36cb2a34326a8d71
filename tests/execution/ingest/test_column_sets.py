"""ColumnSets against a list, whose earliest entries are dropped."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.ingest.column_sets import ColumnSets

KINDS = st.frozensets(st.sampled_from("xyz"))
STEPS = st.lists(st.tuples(st.integers(1, 3), KINDS, st.integers(0, 2)), max_size=12)


@given(STEPS, KINDS)
def test_column_sets_equal_list_after_drops(steps, wanted):
    carried, came, first = ColumnSets(), [], 0
    for count, columns, forgotten in steps:
        carried.record(len(came), columns)
        came += [columns] * count
        first = min(first + forgotten, len(came) - 1)
        carried.drop_before(first)
        numbers = np.arange(first, len(came))
        assert carried.all_of(wanted, numbers).tolist() == [wanted <= each for each in came[first:]]
        assert carried.all_of(wanted, numbers[None]).tolist() == [[wanted <= each for each in came[first:]]]

"""COUNT: how many values are there, or how many tuples."""

from typing import ClassVar

import numpy as np

from innet.aggregates.group_ranges import RangeCounter
from innet.aggregates.protocol import StateField
from innet.aggregates.state import AggregateState, StateAggregate

COUNT_BITS = 32


def count_rows(counts, groups, weights) -> None:
    """Add the number of rows, taken back ones with their sign."""
    if len(groups) * 8 < len(counts):
        np.add.at(counts, groups, 1 if weights is None else weights)
    elif weights is None:
        counts += np.bincount(groups, minlength=len(counts))
    else:
        counts += np.bincount(groups, weights, len(counts)).astype(np.int64)


class Count(StateAggregate):
    name = "COUNT"
    result = "integer"
    can_undo = True
    stretches = True
    cells: ClassVar = {"count": (np.int64, 0)}
    folds: ClassVar = {"count": np.add}

    def folded(self, counts, groups, values=None, valid=None, order=None, once=None):
        if valid is None or valid.all():
            return AggregateState(len(counts), {"count": counts}, {})
        return super().folded(counts, groups, values, valid, order, once)

    def over(self, n_groups, first, last, values, valid, once):
        if valid is not None:
            first, last = first[valid], last[valid]
        return once(RangeCounter(n_groups), first, last), np.ones(n_groups, bool)

    def layout(self):
        return (StateField("count", COUNT_BITS),)

    def _fold(self, state, groups, values, weights, order):
        count_rows(state.cells["count"], groups, weights)

    def merge(self, state, other, into):
        np.add.at(state.cells["count"], into, other.cells["count"])

    def finalize(self, state):
        return state.cells["count"].copy(), np.ones(state.n_groups, bool)  # 5.6: of nothing, 0

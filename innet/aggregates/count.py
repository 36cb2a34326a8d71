"""COUNT: how many values are there, or how many tuples."""

from typing import ClassVar

import numpy as np

from innet.aggregates.protocol import Field
from innet.aggregates.state import Partial

COUNT_BITS = 32


def count_rows(counts, groups, weights) -> None:
    """Add the number of rows, taken back ones with their sign."""
    if len(groups) * 8 < len(counts):
        np.add.at(counts, groups, 1 if weights is None else weights)
    elif weights is None:
        counts += np.bincount(groups, minlength=len(counts))
    else:
        counts += np.bincount(groups, weights, len(counts)).astype(np.int64)


def add_counts(counts, others, into) -> None:
    """Add counts to those of the groups that they go into; None: to their own."""
    if into is None:
        counts += others
    else:
        np.add.at(counts, into, others)


class Count(Partial):
    name = "COUNT"
    result = "integer"
    can_undo = True
    cells: ClassVar = {"count": (np.int64, 0)}

    def layout(self):
        return (Field("count", COUNT_BITS),)

    def _fold(self, state, groups, values, weights, order):
        count_rows(state.cells["count"], groups, weights)

    def merge(self, state, other, into):
        add_counts(state.cells["count"], other.cells["count"], into)

    def finalize(self, state):
        return state.cells["count"].copy(), np.ones(state.n_groups, bool)  # 5.6: of nothing, 0

"""SUM and AVG, over exact sums."""

from typing import ClassVar

import numpy as np

from innet.aggregates.count import COUNT_BITS, add_counts, count_rows
from innet.aggregates.protocol import Field
from innet.aggregates.rounding import quotients
from innet.aggregates.state import Partial

SUM_BITS = 64


class Summing(Partial):
    """A count, which tells nothing from a sum of zero, and the exact sum."""

    can_undo = True
    cells: ClassVar = {"count": (np.int64, 0)}
    sums = ("sum",)

    def layout(self):
        return (Field("count", COUNT_BITS), Field("sum", SUM_BITS)) if self.on_motes else None

    def _fold(self, state, groups, values, weights, order):
        count_rows(state.cells["count"], groups, weights)
        add = state.sums["sum"].add_floats if self.type == "float" else state.sums["sum"].add_integers
        add(groups, values, weights)

    def merge(self, state, other, into):
        add_counts(state.cells["count"], other.cells["count"], into)
        for name, sums in state.sums.items():
            sums.merge(other.sums[name], into)


class Sum(Summing):
    """Of integers an integer, of floats a float, of a scaled attribute the sum of multiples turned into one (13)."""

    name = "SUM"

    @property
    def result(self):
        return "integer" if self.type == "integer" else "float"

    def finalize(self, state):
        there = state.cells["count"] > 0
        if self.type == "integer":
            return state.sums["sum"].wrapped(), there
        return quotients(state.sums["sum"], np.ones(state.n_groups, np.int64), there, self.scale)


class Avg(Summing):
    """The exact sum divided by the number, a float."""

    name = "AVG"
    result = "float"

    def finalize(self, state):
        count = state.cells["count"]
        return quotients(state.sums["sum"], count, count > 0, self.scale)

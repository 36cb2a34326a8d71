"""SUM and AVG, over exact sums."""

from typing import ClassVar

import numpy as np

from innet.aggregates.count import COUNT_BITS, count_rows
from innet.aggregates.protocol import StateField
from innet.aggregates.rounding import round_quotients
from innet.aggregates.state import AggregateState, StateAggregate

SUM_BITS = 64


class SumAggregate(StateAggregate):
    """A count, which tells nothing from a sum of zero, and the exact sum."""

    can_undo = True
    cells: ClassVar = {"count": (np.int64, 0)}
    folds: ClassVar = {"count": np.add}
    sums = ("sum",)

    def layout(self):
        return (StateField("count", COUNT_BITS), StateField("sum", SUM_BITS)) if self.on_motes else None

    def folded(self, counts, groups, values=None, valid=None, order=None, once=None):
        if not len(values) or not (valid is None or valid.all()):
            return super().folded(counts, groups, values, valid, order, once)
        state = AggregateState(len(counts), {"count": counts}, self._no_sums(len(counts)))
        self._add(state, groups, values, None)
        return state

    def _fold(self, state, groups, values, weights, order):
        count_rows(state.cells["count"], groups, weights)
        self._add(state, groups, values, weights)

    def _add(self, state, groups, values, weights):
        add = state.sums["sum"].add_floats if self.type == "float" else state.sums["sum"].add_integers
        add(groups, values, weights)

    def merge(self, state, other, into):
        np.add.at(state.cells["count"], into, other.cells["count"])
        for name, sums in state.sums.items():
            sums.merge(other.sums[name], into)


class Sum(SumAggregate):
    """Of integers an integer, of floats a float, of a scaled attribute the sum of multiples turned into one (13)."""

    name = "SUM"

    @property
    def result(self):
        return "integer" if self.type == "integer" else "float"

    def finalize(self, state):
        there = state.cells["count"] > 0
        if self.type == "integer":
            return state.sums["sum"].wrapped(), there
        return round_quotients(state.sums["sum"], np.ones(state.n_groups, np.int64), there, self.scale)


class Avg(SumAggregate):
    """The exact sum divided by the number, a float."""

    name = "AVG"
    result = "float"

    def finalize(self, state):
        count = state.cells["count"]
        return round_quotients(state.sums["sum"], count, count > 0, self.scale)

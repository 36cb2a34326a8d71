"""VARIANCE (divided by n) and STDEV, over exact sums of values and of their squares."""

from innet.aggregates.protocol import StateField
from innet.aggregates.rounding import round_deviations, round_variances
from innet.aggregates.sums import SumAggregate

SQUARES_BITS = 96


class Variance(SumAggregate):
    name = "VARIANCE"
    result = "float"
    sums = ("sum", "squares")

    def layout(self):
        fields = super().layout()
        return fields and (*fields, StateField("squares", SQUARES_BITS))

    def _add(self, state, groups, values, weights):
        super()._add(state, groups, values, weights)
        squares = state.sums["squares"]
        add = squares.add_squares_of_floats if self.type == "float" else squares.add_squares_of_integers
        add(groups, values, weights)

    def finalize(self, state):
        count = state.cells["count"]
        return round_variances(state.sums["sum"], state.sums["squares"], count, count > 0, self.scale)


class Stdev(Variance):
    name = "STDEV"

    def finalize(self, state):
        count = state.cells["count"]
        return round_deviations(state.sums["sum"], state.sums["squares"], count, count > 0, self.scale)

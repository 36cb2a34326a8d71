"""VARIANCE (of the population, divided by n) and STDEV, over exact sums of values and of their squares."""

from acquisition.arrays import AnyArray, IntArray
from innet.aggregates.protocol import Answers, StateField
from innet.aggregates.rounding import round_deviations, round_variances
from innet.aggregates.state import AggregateState
from innet.aggregates.sums import SumAggregate

SQUARES_BITS = 96


class Variance(SumAggregate):
    """The variance, a float rounded once."""

    name = "VARIANCE"
    result = "float"
    sums = ("sum", "squares")

    def layout(self) -> tuple[StateField, ...] | None:
        fields = super().layout()
        return fields and (*fields, StateField("squares", SQUARES_BITS))

    def _add(self, state: AggregateState, groups: IntArray | None, values: AnyArray, weights: IntArray | None) -> None:
        super()._add(state, groups, values, weights)
        squares = state.sums["squares"]
        add = squares.add_squares_of_floats if self.type == "float" else squares.add_squares_of_integers
        add(groups, values, weights)

    def finalize(self, state: AggregateState) -> Answers:
        count = state.cells["count"]
        return round_variances(state.sums["sum"], state.sums["squares"], count, count > 0, self.scale)


class Stdev(Variance):
    """The square root of the variance, rounded once."""

    name = "STDEV"

    def finalize(self, state: AggregateState) -> Answers:
        count = state.cells["count"]
        return round_deviations(state.sums["sum"], state.sums["squares"], count, count > 0, self.scale)

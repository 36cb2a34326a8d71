"""SUM and AVG, over exact sums."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.count import COUNT_BITS, count_rows
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.protocol import Answers, Order, StateField
from innet.aggregates.rounding import round_quotients
from innet.aggregates.state import AggregateState, CellType, StateAggregate

SUM_BITS = 64


class SumAggregate(StateAggregate):
    """The base of the aggregates over exact sums. A count tells an empty group from one with the sum zero."""

    can_undo = True
    sums: tuple[str, ...] = ("sum",)
    cells: ClassVar[Mapping[str, CellType]] = {"count": (np.int64, 0)}
    folds: ClassVar[Mapping[str, np.ufunc] | None] = {"count": np.add}

    def layout(self) -> tuple[StateField, ...] | None:
        return (StateField("count", COUNT_BITS), StateField("sum", SUM_BITS)) if self.on_motes else None

    def aggregate_rows(
        self,
        counts: IntArray,
        groups: IntArray | None,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
        memo: IdentityMemo | None = None,
    ) -> AggregateState:
        if values is None or not len(values) or not (valid is None or valid.all()):
            return super().aggregate_rows(counts, groups, values, valid, order, memo)
        state = AggregateState(len(counts), {"count": counts}, self._no_sums(len(counts)))
        self._add(state, groups, values, None)
        return state

    def _fold(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None,
        weights: IntArray | None,
        order: Order | None,
    ) -> None:
        if values is None:
            raise TypeError(f"{self.name} needs values")
        count_rows(state.cells["count"], groups, weights)
        self._add(state, groups, values, weights)

    def _add(self, state: AggregateState, groups: IntArray | None, values: AnyArray, weights: IntArray | None) -> None:
        """Add the values to the sums; without `groups`, value i belongs to group i."""
        add = state.sums["sum"].add_floats if self.type == "float" else state.sums["sum"].add_integers
        add(groups, values, weights)

    def merge(self, state: AggregateState, other: AggregateState, into: IntArray) -> None:
        np.add.at(state.cells["count"], into, other.cells["count"])
        for name, sums in state.sums.items():
            sums.merge(other.sums[name], into)


class Sum(SumAggregate):
    """The sum: an integer of integers, null outside 64 bits; a float of floats and of scaled values (semantics 1.8, 13)."""

    name = "SUM"

    @property
    def result(self) -> str:
        return "integer" if self.type == "integer" else "float"

    def finalize(self, state: AggregateState) -> Answers:
        there: BoolArray = state.cells["count"] > 0
        if self.type == "integer":
            totals, fits = state.sums["sum"].to_int64()
            return totals, there if fits is None else there & fits
        return round_quotients(state.sums["sum"], np.ones(state.n_groups, np.int64), there, self.scale)


class Avg(SumAggregate):
    """The exact sum divided by the count, a float."""

    name = "AVG"
    result = "float"

    def finalize(self, state: AggregateState) -> Answers:
        count = state.cells["count"]
        return round_quotients(state.sums["sum"], count, count > 0, self.scale)

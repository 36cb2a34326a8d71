"""COUNT: the number of values, or of tuples for COUNT(*)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.group_ranges import RangeCounter
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.protocol import Answers, Order, StateField
from innet.aggregates.state import AggregateState, CellType, StateAggregate

COUNT_BITS = 32


def count_rows(counts: IntArray, groups: IntArray, weights: IntArray | None) -> None:
    """Add the number of rows of each group to `counts`; a retracted row subtracts one."""
    if len(groups) * 8 < len(counts):
        np.add.at(counts, groups, 1 if weights is None else weights)
    elif weights is None:
        counts += np.bincount(groups, minlength=len(counts))
    else:
        counts += np.bincount(groups, weights, len(counts)).astype(np.int64)


class Count(StateAggregate):
    """The number of values of each group; 0 for an empty group (semantics 5.6)."""

    name = "COUNT"
    result = "integer"
    can_undo = True
    can_evaluate_ranges = True
    cells: ClassVar[Mapping[str, CellType]] = {"count": (np.int64, 0)}
    folds: ClassVar[Mapping[str, np.ufunc] | None] = {"count": np.add}

    def aggregate_rows(
        self,
        counts: IntArray,
        groups: IntArray | None,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
        memo: IdentityMemo | None = None,
    ) -> AggregateState:
        if valid is None or valid.all():
            return AggregateState(len(counts), {"count": counts}, {})
        return super().aggregate_rows(counts, groups, values, valid, order, memo)

    def evaluate_ranges(
        self,
        n_groups: int,
        first: IntArray,
        last: IntArray,
        values: AnyArray | None,
        valid: BoolArray | None,
        memo: IdentityMemo,
    ) -> Answers:
        if valid is not None:
            first, last = first[valid], last[valid]
        return memo(RangeCounter(n_groups), first, last), np.ones(n_groups, bool)

    def layout(self) -> tuple[StateField, ...] | None:
        return (StateField("count", COUNT_BITS),)

    def _fold(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None,
        weights: IntArray | None,
        order: Order | None,
    ) -> None:
        count_rows(state.cells["count"], groups, weights)

    def merge(self, state: AggregateState, other: AggregateState, into: IntArray) -> None:
        np.add.at(state.cells["count"], into, other.cells["count"])

    def finalize(self, state: AggregateState) -> Answers:
        return state.cells["count"].copy(), np.ones(state.n_groups, bool)

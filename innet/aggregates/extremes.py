"""MIN and MAX, of numbers by value and of strings by code point.

A retraction is impossible: the state does not hold the next best value.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.group_ranges import RangeCounter, cover_with_blocks, find_extremes
from innet.aggregates.grouping import order_by_group
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.protocol import Answers, Order, StateField
from innet.aggregates.state import AggregateState, CellType, StateAggregate

VALUE_BITS = 32
"""The width of a value on a mote."""
INTEGERS = np.iinfo(np.int64)
DTYPES: dict[str, type] = {"float": np.float64, "string": object}
"""The numpy type of values that are no integers, by their type in the language."""


class MinOrMax(StateAggregate):
    """The base of MIN and MAX: per group, whether there is a value, and the extreme."""

    pick: np.ufunc
    """Chooses between two values: minimum or maximum."""

    worst: ClassVar[Mapping[str, object]]
    """By type, a value that every other replaces."""

    @property
    def cells(self) -> Mapping[str, CellType]:
        empty = self.worst.get(self.type, self.worst["integer"])
        return {"seen": (bool, False), "value": (DTYPES.get(self.type, np.int64), empty)}

    @property
    def folds(self) -> Mapping[str, np.ufunc] | None:
        """A group without values holds the worst value. Strings have none, so their cells do not merge on their own."""
        return None if self.type == "string" else {"seen": np.logical_or, "value": self.pick}

    @property
    def can_evaluate_ranges(self) -> bool:
        return self.type != "string"

    def aggregate_rows(
        self,
        counts: IntArray,
        groups: IntArray | None,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
        memo: IdentityMemo | None = None,
    ) -> AggregateState:
        if values is None or self.type == "string" or not (valid is None or valid.all()):
            return super().aggregate_rows(counts, groups, values, valid, order, memo)
        memo = memo or IdentityMemo()
        value: AnyArray
        if groups is None:
            value = memo(_with_one_zero, values)
        else:
            dtype, empty = self.cells["value"]
            value = np.full(len(counts), empty, dtype)
            self._pick(value, groups, values)
        return AggregateState(len(counts), {"seen": memo(_some, counts), "value": value}, {})

    def evaluate_ranges(
        self,
        n_groups: int,
        first: IntArray,
        last: IntArray,
        values: AnyArray | None,
        valid: BoolArray | None,
        memo: IdentityMemo,
    ) -> Answers:
        if values is None:
            raise TypeError(f"{self.name} needs values")
        if valid is not None:
            first, last, values = first[valid], last[valid], values[valid]
        seen = memo(_some, memo(RangeCounter(n_groups), first, last))
        covered = memo(cover_with_blocks, first, last)
        dtype, empty = self.cells["value"]
        worst: AnyArray = np.full(n_groups, empty, dtype)
        found = find_extremes(self.pick, worst, covered, _with_one_zero(values))
        return found if np.count_nonzero(seen) == n_groups else np.where(seen, found, dtype(0)), seen

    def layout(self) -> tuple[StateField, ...] | None:
        return (StateField("seen", 1), StateField("value", VALUE_BITS)) if self.on_motes else None

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
        value, seen = state.cells["value"], state.cells["seen"]
        if self.type == "string":
            self._fold_strings(value, seen, groups, values)
        else:
            self._pick(value, groups, values)
        seen[groups] = True

    def _pick(self, value: AnyArray, groups: IntArray, values: AnyArray) -> None:
        self.pick.at(value, groups, _with_one_zero(values))

    def _fold_strings(self, value: AnyArray, seen: BoolArray, groups: IntArray, strings: AnyArray) -> None:
        """Fold strings, sorted by group. A held value competes only where its group has one."""
        rows = order_by_group(groups)
        groups = groups[rows]
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        targets, best = groups[starts], self.pick.reduceat(strings[rows], starts)
        held = seen[targets]
        best[held] = self.pick(best[held], value[targets[held]])
        value[targets] = best

    def merge(self, state: AggregateState, other: AggregateState, into: IntArray) -> None:
        self.update(state, into, other.cells["value"], other.cells["seen"])

    def finalize(self, state: AggregateState) -> Answers:
        value, seen = state.cells["value"], state.cells["seen"]
        if self.type == "string":
            return value.copy(), seen.copy()
        return value.copy() if np.count_nonzero(seen) == len(seen) else np.where(seen, value, 0), seen.copy()


def _some(counts: IntArray) -> BoolArray:
    return counts > 0


def _with_one_zero(values: AnyArray) -> AnyArray:
    """Return the values with 0.0 for -0.0, which is equal (semantics 1.8)."""
    return values + 0.0 if values.dtype == np.float64 and np.count_nonzero(values == 0) else values


class Min(MinOrMax):
    """The least value."""

    name = "MIN"
    pick = np.minimum
    worst: ClassVar[Mapping[str, object]] = {"integer": INTEGERS.max, "float": np.inf, "string": ""}


class Max(MinOrMax):
    """The greatest value."""

    name = "MAX"
    pick = np.maximum
    worst: ClassVar[Mapping[str, object]] = {"integer": INTEGERS.min, "float": -np.inf, "string": ""}

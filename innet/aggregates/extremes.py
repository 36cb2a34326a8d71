"""MIN and MAX, of numbers by value and of strings by code point.

They cannot be undone: which value was the next best is not kept.
"""

from typing import ClassVar

import numpy as np

from innet.aggregates.group_ranges import RangeCounter, cover_with_blocks, find_extremes
from innet.aggregates.grouping import order_by_group
from innet.aggregates.protocol import StateField
from innet.aggregates.state import AggregateState, IdentityMemo, StateAggregate

VALUE_BITS = 32
"""What a mote computes with."""
INTEGERS = np.iinfo(np.int64)


class MinOrMax(StateAggregate):
    pick: np.ufunc
    worst: ClassVar[dict[str, object]]

    @property
    def cells(self):
        dtype = {"float": np.float64, "string": object}.get(self.type, np.int64)
        return {"seen": (bool, False), "value": (dtype, self.worst.get(self.type, self.worst["integer"]))}

    @property
    def folds(self):
        """What was not seen is the worst, but for strings, of which there is no worst."""
        return None if self.type == "string" else {"seen": np.logical_or, "value": self.pick}

    def folded(self, counts, groups, values=None, valid=None, order=None, once=None):
        if self.type == "string" or not (valid is None or valid.all()):
            return super().folded(counts, groups, values, valid, order, once)
        once = once or IdentityMemo()
        if groups is None:
            value = once(_with_one_zero, values)
        else:
            dtype, blank = self.cells["value"]
            value = np.full(len(counts), blank, dtype)
            self._pick(value, groups, values)
        return AggregateState(len(counts), {"seen": once(_some, counts), "value": value}, {})

    @property
    def stretches(self):
        return self.type != "string"

    def over(self, n_groups, first, last, values, valid, once):
        if valid is not None:
            first, last, values = first[valid], last[valid], values[valid]
        dtype, worst = self.cells["value"]
        seen = once(_some, once(RangeCounter(n_groups), first, last))
        covered = once(cover_with_blocks, first, last)
        values = find_extremes(self.pick, np.full(n_groups, worst, dtype), covered, _with_one_zero(values))
        return values if np.count_nonzero(seen) == n_groups else np.where(seen, values, dtype(0)), seen

    def layout(self):
        return (StateField("seen", 1), StateField("value", VALUE_BITS)) if self.on_motes else None

    def _fold(self, state, groups, values, weights, order):
        value, seen = state.cells["value"], state.cells["seen"]
        if self.type == "string":
            self._fold_strings(value, seen, groups, values)
        else:
            self._pick(value, groups, values)
        seen[groups] = True

    def _pick(self, value, groups, values):
        self.pick.at(value, groups, _with_one_zero(values))

    def _fold_strings(self, value, seen, groups, strings):
        """Rows are brought together by group; no string is the worst, so what is held counts where something is."""
        rows = order_by_group(groups)
        groups = groups[rows]
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        targets, best = groups[starts], self.pick.reduceat(strings[rows], starts)
        held = seen[targets]
        best[held] = self.pick(best[held], value[targets[held]])
        value[targets] = best

    def merge(self, state, other, into):
        self.update(state, into, other.cells["value"], other.cells["seen"])

    def finalize(self, state):
        value, seen = state.cells["value"], state.cells["seen"]
        if self.type == "string":
            return value.copy(), seen.copy()
        return value.copy() if np.count_nonzero(seen) == len(seen) else np.where(seen, value, 0), seen.copy()


def _some(counts):
    return counts > 0


def _with_one_zero(values):
    """-0.0 equals 0.0 (1.8): one of them is kept."""
    return values + 0.0 if values.dtype == np.float64 and np.count_nonzero(values == 0) else values


class Min(MinOrMax):
    name = "MIN"
    pick = np.minimum
    worst: ClassVar = {"integer": INTEGERS.max, "float": np.inf, "string": ""}


class Max(MinOrMax):
    name = "MAX"
    pick = np.maximum
    worst: ClassVar = {"integer": INTEGERS.min, "float": -np.inf, "string": ""}

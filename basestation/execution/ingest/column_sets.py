"""Carried: with which columns readings came, by their numbers: those that are taken one after another mostly have the same."""

import numpy as np

from basestation.algebra.vector import constant
from basestation.execution.columns.growable_array import GrowableArray


class ColumnSets:
    def __init__(self):
        self._kinds = {}  # sets of columns, by their place among all that there were
        self._last = None
        self._first, self._kind = (
            GrowableArray(np.empty(0, np.int64)),
            GrowableArray(np.empty(0, np.int64)),
        )  # of each run of numbers

    def record(self, number, columns):
        """Readings from a number on came with these columns."""
        kind = self._kinds.setdefault(frozenset(columns), len(self._kinds))
        if kind != self._last:
            self._last = kind
            self._first.extend([number])
            self._kind.extend([kind])

    def all_of(self, columns, numbers):
        """Which numbers are those of readings that came with all of these columns."""
        whole = [columns <= each for each in self._kinds]
        if all(whole):
            return constant(True, len(numbers)) if numbers.ndim == 1 else np.ones(numbers.shape, bool)
        run = np.searchsorted(self._first.values, numbers, "right") - 1
        return np.array(whole)[self._kind.values[run]]

    def drop_before(self, number):
        """Nobody asks for earlier ones any more."""
        gone = max(0, int(np.searchsorted(self._first.values, number, "right")) - 1)
        self._first.drop(gone)
        self._kind.drop(gone)

"""ColumnSets: with which columns each reading came, by tuple number; consecutive readings mostly came with the same ones."""

from collections.abc import Iterable

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import constant
from basestation.execution.columns.growable_array import GrowableArray


class ColumnSets:
    """Run-length encoded: run i starts at number _first[i] and has set _set[i]."""

    def __init__(self) -> None:
        self._sets: dict[frozenset[str], int] = {}  # each set that occurred, with its position
        self._last: int | None = None
        self._first, self._set = GrowableArray(np.empty(0, np.int64)), GrowableArray(np.empty(0, np.int64))

    def record(self, number: int, columns: Iterable[str]) -> None:
        """Readings from this number on came with these columns."""
        position = self._sets.setdefault(frozenset(columns), len(self._sets))
        if position != self._last:
            self._last = position
            self._first.extend([number])
            self._set.extend([position])

    def all_of(self, columns: frozenset[str], numbers: IntArray) -> BoolArray:
        """Return a mask, in the shape of `numbers`, of the readings that came with all of these columns."""
        complete = [columns <= known for known in self._sets]
        if all(complete):
            return constant(True, len(numbers)) if numbers.ndim == 1 else np.ones(numbers.shape, bool)
        run = np.searchsorted(self._first.values, numbers, "right") - 1
        return np.array(complete)[self._set.values[run]]

    def drop_before(self, number: int) -> None:
        """Drop the sets of smaller numbers."""
        count = max(0, int(np.searchsorted(self._first.values, number, "right")) - 1)
        self._first.drop(count)
        self._set.drop(count)

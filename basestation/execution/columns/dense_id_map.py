"""Numbered: a value for each tuple, by its number; those of old numbers are let go of."""

import numpy as np

from basestation.execution.columns.integer_arrays import is_consecutive

_FEW = 16
_SPARSE = 4  # an array of so many times the places that were asked for is too long


class DenseIdMap:
    """Values that were never set are zero. Numbers below `base` were dropped and may not be asked for."""

    def __init__(self, dtype):
        self.base, self._behind = 0, 0  # so many places were asked for
        self._values = np.zeros(_FEW, dtype)

    def __getstate__(self):
        used = np.flatnonzero(self._values)
        behind = int(used[-1]) + 1 if len(used) else 0
        return {"base": self.base, "_behind": behind, "_values": self._values[:behind].copy()}

    def __getitem__(self, numbers):
        places = self._places(numbers)
        return self._values[places].copy() if isinstance(places, slice) else self._values[places]

    def __setitem__(self, numbers, values):
        places = self._places(numbers)  # before the array is looked at: it may be another then
        self._values[places] = values

    def _places(self, numbers):
        """Where numbers, or those in a slice, are."""
        if not isinstance(numbers, slice):
            numbers = np.asarray(numbers)
            if numbers.ndim and is_consecutive(numbers):
                numbers = slice(int(numbers[0]), int(numbers[-1]) + 1)
        if isinstance(numbers, slice):
            places = slice(numbers.start - self.base, numbers.stop - self.base)
            behind = places.stop
        else:
            places = numbers - self.base
            behind = int(places.max()) + 1 if places.size else 0
        if behind > len(self._values):
            more = np.zeros(2 * behind + _FEW, self._values.dtype)
            more[: len(self._values)] = self._values
            self._values = more
        self._behind = max(self._behind, behind)
        return places

    def find(self, values):
        """The numbers that have some values, which no other has; -1 where none has."""
        if not len(self._values):  # as it may be when a state was restored
            return np.full(len(values), -1)
        order = np.argsort(self._values, kind="stable")
        at = np.minimum(np.searchsorted(self._values, values, sorter=order), len(order) - 1)
        return np.where(self._values[order[at]] == values, order[at] + self.base, -1)

    def drop_before(self, number):
        if number > self.base:
            kept = self._values[number - self.base : self._behind]
            if not self._behind:  # nobody asked for any
                self.base = number
                return
            if _SPARSE * self._behind < len(self._values):
                self._values = np.concatenate([kept, np.zeros(len(kept) + _FEW, self._values.dtype)])
            else:  # as much will be asked for again: the array is used again
                self._values[: len(kept)] = kept
                self._values[len(kept) : self._behind] = 0
            self.base, self._behind = number, len(kept)

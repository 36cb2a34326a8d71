"""Numbered: a value for each tuple, by its number; those of old numbers are let go of."""

import numpy as np

from basestation.execution.distinct import consecutive


class Numbered:
    """Values that were never set are zero. Numbers below `base` were dropped and may not be asked for."""

    def __init__(self, dtype):
        self.base = 0
        self._values = np.zeros(16, dtype)

    def __getstate__(self):
        used = np.flatnonzero(self._values)
        return {"base": self.base, "_values": self._values[: int(used[-1]) + 1 if len(used) else 0].copy()}

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
            if numbers.ndim and consecutive(numbers):
                numbers = slice(int(numbers[0]), int(numbers[-1]) + 1)
        if isinstance(numbers, slice):
            places = slice(numbers.start - self.base, numbers.stop - self.base)
            behind = places.stop
        else:
            places = numbers - self.base
            behind = int(places.max()) + 1 if places.size else 0
        if behind > len(self._values):
            more = np.zeros(2 * behind + 16, self._values.dtype)
            more[: len(self._values)] = self._values
            self._values = more
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
            kept = self._values[number - self.base :]
            self._values = np.concatenate([kept, np.zeros(max(0, 16 - len(kept)), self._values.dtype)])
            self.base = number

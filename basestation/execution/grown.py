"""Grown: an array that grows at its end and is let go of from its beginning, without a copy each time."""

import numpy as np


class Grown:
    def __init__(self, values):
        self._array, self._first, self._size = values.copy(), 0, len(values)

    def __len__(self):
        return self._size - self._first

    def extend(self, values):
        size = self._size + len(values)
        if size > len(self._array):
            held = self._array[self._first : self._size]
            room = len(held) + len(values)
            self._array = np.empty((room + room // 2 + 8, *held.shape[1:]), held.dtype)
            self._array[: len(held)] = held
            self._first, self._size, size = 0, len(held), len(held) + len(values)
        self._array[self._size : size] = values
        self._size = size

    def drop(self, count):
        """Let go of the first ones."""
        self._first += count
        if 2 * self._first > len(self._array) > 64:
            self._array = self._array[self._first : self._size].copy()
            self._first, self._size = 0, len(self._array)

    def __getstate__(self):
        return {"_array": self.values.copy(), "_first": 0, "_size": len(self)}

    @property
    def values(self):
        return self._array[self._first : self._size]

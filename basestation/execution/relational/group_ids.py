"""Groups: the keys that tuples are grouped by, each known by a number for as long as some state refers to it."""

import numpy as np

from basestation.algebra.vector import Vector, dtype_of
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import factorize


class GroupIds:
    """Of `columns`: (column, expression) pairs of an aggregation; none where all is one group."""

    def __init__(self, columns):
        self._numbers = {}  # key -> number
        self._keys = [_empty(column) for column, _ in columns]
        self._low, self._table = 0, np.empty(0, np.int64)  # the numbers of whole keys from `low` on, by key; -1: none

    def __len__(self):
        return max(1, len(self._numbers)) if not self._keys else len(self._numbers)

    def of(self, keys, length):
        """The number of each of so many tuples' groups, new ones included."""
        if not self._keys:
            return np.zeros(length, np.int64)
        known = self._looked_up(keys)
        return self._found(keys, length) if known is None else known

    def _looked_up(self, keys):
        """The numbers of single whole keys that are all known; None of others."""
        values = keys[0].values
        if len(keys) > 1 or keys[0].valid is not None or values.dtype != np.int64 or not len(values):
            return None
        if int(values.min()) < self._low or int(values.max()) >= self._low + len(self._table):
            return None
        numbers = self._table[values - self._low]
        return None if numbers.min() < 0 else numbers

    def _tabled(self):
        """Note the numbers of whole keys that lie close together."""
        self._table = np.empty(0, np.int64)
        key = self._keys[0]
        if len(self._keys) == 1 and key.valid is None and key.values.dtype == np.int64 and len(key):
            self._low, high = int(key.values.min()), int(key.values.max())
            if high - self._low < _LOOSE * len(key) + _SMALL:
                self._table = np.full(high - self._low + 1, -1)
                self._table[key.values - self._low] = np.arange(len(key))

    def _found(self, keys, length):
        """The same by looking up each key that is there by itself."""
        code, count = factorize(keys, length)
        first = np.full(count, length)
        first[code[::-1]] = np.arange(length)[::-1]
        there = np.flatnonzero(first < length)
        told = [key.take(first[there]) for key in keys]
        known, new = len(self._numbers), []
        numbers = np.empty(len(there), np.int64)
        for at, key in enumerate(zip(*(vector.to_list() for vector in told), strict=True)):
            numbers[at] = number = self._numbers.setdefault(key, len(self._numbers))
            if number >= known + len(new):
                new.append(at)
        if new:
            self._keys = [
                concatenate_vectors([held, key.take(new)]) for held, key in zip(self._keys, told, strict=True)
            ]
            self._tabled()
        table = np.empty(count, np.int64)
        table[there] = numbers
        return table[code]

    def keys(self, numbers):
        """The Vectors of the keys of groups."""
        return [key.take(numbers) for key in self._keys]

    def keep(self, numbers):
        """Let go of all but these, in ascending order; their new numbers by the old ones."""
        renumbered = np.full(len(self._numbers), -1)
        renumbered[numbers] = np.arange(len(numbers))
        self._keys = self.keys(numbers)
        self._tabled()
        listed = renumbered.tolist()
        self._numbers = {key: listed[number] for key, number in self._numbers.items() if listed[number] >= 0}
        return renumbered


_LOOSE, _SMALL = 4, 1024
"""Keys lie close together where there is room for no more than so many around each, and some more."""


def _empty(column):
    return Vector(np.empty(0, np.int64 if column.scale is not None else dtype_of(column.type)))

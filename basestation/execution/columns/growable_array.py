"""Grown: an array that grows at its end and is let go of from its beginning, without a copy each time; of one with columns,
each is in one piece.

The array that it begins with is not copied, nor written to.
"""

import numpy as np

from basestation.algebra.vector import constant

_SPARE = 8
"""A part of so many of what is held is room for more: less is copied more often, more is memory that waits."""


class GrowableArray:
    def __init__(self, values):
        self._array, self._first, self._size = values, 0, len(values)

    def __len__(self):
        return self._size - self._first

    def extend(self, values):
        size = self._size + len(values)
        if size > len(self._array):
            held = self._array[self._first : self._size]
            room = len(held) + len(values)
            self._array = np.empty((room + room // _SPARE + 8, *held.shape[1:]), held.dtype, order="F")
            self._array[: len(held)] = held
            self._first, self._size, size = 0, len(held), len(held) + len(values)
        self._array[self._size : size] = values
        self._size = size

    def drop(self, count):
        """Let go of the first ones."""
        self._first += count
        if 2 * self._first > len(self._array) > 64:
            self._array = self._array[self._first : self._size].copy(order="K")
            self._first, self._size = 0, len(self._array)

    def cut(self, size):
        """Let go of the last ones, down to so many: of those that were added, not of those it began with."""
        self._size = self._first + size

    def __getstate__(self):
        return {"_array": self.values.copy(), "_first": 0, "_size": len(self)}

    @property
    def values(self):
        return self._array[self._first : self._size]


class ConstantOrArray:
    """The same of values that mostly are all one: as long as they are, it is held once."""

    def __init__(self, values):
        self._none, self._value, self._count, self._grown = values[:0], None, 0, None
        self.extend(values)

    def __len__(self):
        return self._count if self._grown is None else len(self._grown)

    def extend(self, values):
        if self._grown is None:
            one = values[:1].tolist()
            if not one or (values.strides == (0,) and (not self._count or self._value == one[0])):
                self._value, self._count = (one[0] if one else self._value), self._count + len(values)
                return
            self._grown = GrowableArray(self.values)
        self._grown.extend(values)

    def drop(self, count):
        """Let go of the first ones."""
        self._count -= count
        if self._grown is not None:
            self._grown.drop(count)

    @property
    def values(self):
        if self._grown is not None:
            return self._grown.values
        return constant(self._value, self._count) if self._count else self._none

"""Arrays that grow at the end and shrink at the front, amortized: neither operation copies the whole array each time.

It may be two-dimensional; each of its columns is contiguous.
"""

from typing import Any

import numpy as np

from acquisition.arrays import AnyArray
from basestation.execution import thresholds


def spare_length(size: int) -> int:
    """Return how long to make an array that has to hold `size` entries now."""
    return size + size // thresholds.GROWTH_DIVISOR + thresholds.MIN_SPARE


class GrowableArray:
    """An array with spare room behind the last entry. The initial array is neither copied nor written to."""

    def __init__(self, values: AnyArray) -> None:
        self._array, self._first, self._size = values, 0, len(values)

    def __len__(self) -> int:
        return self._size - self._first

    def extend(self, values: Any) -> None:
        """Append entries: an array, or a sequence of numbers."""
        size = self._size + len(values)
        if size > len(self._array):
            held = self._array[self._first : self._size]
            room = len(held) + len(values)
            self._array = np.empty((spare_length(room), *held.shape[1:]), held.dtype, order="F")
            self._array[: len(held)] = held
            self._first, self._size, size = 0, len(held), len(held) + len(values)
        self._array[self._size : size] = values
        self._size = size

    def drop(self, count: int) -> None:
        """Remove the first `count` entries."""
        self._first += count
        if 2 * self._first > len(self._array) > thresholds.MIN_COMPACTED:
            self._array = self._array[self._first : self._size].copy(order="K")
            self._first, self._size = 0, len(self._array)

    def cut(self, size: int) -> None:
        """Keep the first `size` entries. Only appended entries may be removed, not those of the initial array."""
        self._size = self._first + size

    def __getstate__(self) -> dict[str, Any]:
        return {"_array": self.values.copy(), "_first": 0, "_size": len(self)}

    @property
    def values(self) -> AnyArray:
        """The entries, as a view."""
        return self._array[self._first : self._size]

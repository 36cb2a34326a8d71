"""SparseFlags: a flag for each tuple number that is true for all but a few; only the exceptions are stored."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import constant

_NONE = np.empty(0, np.int64)


class SparseFlags:
    """Flags by tuple number. Every flag is true until `clear` is called for its number."""

    def __init__(self) -> None:
        self._cleared = _NONE  # ascending

    def __getitem__(self, numbers: IntArray) -> BoolArray:
        """Return the flags of an array of numbers, in its shape."""
        if not len(self._cleared):
            return constant(True, len(numbers)) if numbers.ndim == 1 else np.ones(numbers.shape, bool)
        at = np.minimum(np.searchsorted(self._cleared, numbers), len(self._cleared) - 1)
        return np.asarray(self._cleared[at] != numbers)

    def clear(self, numbers: IntArray) -> None:
        """Set the flags of these numbers to false for good."""
        if len(numbers):
            self._cleared = np.union1d(self._cleared, numbers)

    def drop_before(self, number: int) -> None:
        """Drop the flags of smaller numbers; they must not be read again."""
        if len(self._cleared) and self._cleared[0] < number:
            self._cleared = self._cleared[np.searchsorted(self._cleared, number) :].copy()

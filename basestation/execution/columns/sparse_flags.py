"""Excepted: a truth about tuples, by their numbers, that holds for all but a few: only those are noted."""

import numpy as np

from basestation.algebra.vector import constant

_NONE = np.empty(0, np.int64)


class SparseFlags:
    def __init__(self):
        self._numbers = _NONE  # ascending

    def __getitem__(self, numbers):
        if not len(self._numbers):
            return constant(True, len(numbers)) if numbers.ndim == 1 else np.ones(numbers.shape, bool)
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return self._numbers[at] != numbers

    def note(self, numbers):
        """From now on it does not hold for these."""
        if len(numbers):
            self._numbers = np.union1d(self._numbers, numbers)

    def drop_before(self, number):
        """Nobody asks for earlier ones any more."""
        if len(self._numbers) and self._numbers[0] < number:
            self._numbers = self._numbers[np.searchsorted(self._numbers, number) :].copy()

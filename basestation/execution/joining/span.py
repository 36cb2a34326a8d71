"""Span: the range of ticks in which each probe looks. Windows are fewer than probes, mostly: so their ranges are held once."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Span:
    """For each probe from left[first] to right[last]."""

    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def __len__(self):
        return len(self.first)

    def take(self, which):
        first = self.first[which]
        return Span(self.left, self.right, first, first if self.first is self.last else self.last[which])

    def holds(self, ticks):
        """Where a tick lies in its range."""
        return (self.left.take(self.first) <= ticks) & (ticks <= self.right.take(self.last))

    def hold_all(self, low, high):
        """Whether all ranges hold all ticks from one to another."""
        return bool(self.left.max() <= low and high <= self.right.min())

    def within(self, ticks):
        """Where the ticks in each range begin and end among some ascending ones."""
        if len(self.left) > len(self.first):
            left, right = self.left[self.first], self.right[self.last]
            return np.searchsorted(ticks, left), np.searchsorted(ticks, right, "right")
        return np.searchsorted(ticks, self.left)[self.first], np.searchsorted(ticks, self.right, "right")[self.last]

    @property
    def rises(self):
        """Whether the ranges that are held begin and end in their order."""
        return bool((self.left[1:] >= self.left[:-1]).all() and (self.right[1:] >= self.right[:-1]).all())


def spans(left, right):
    """A range of its own for each probe."""
    each = np.arange(len(left))
    return Span(left, right, each, each)

"""Span: the range of ticks in which each probe looks. Windows are fewer than probes, mostly: so their ranges are held once."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class ProbeSpan:
    """For each probe from left[first] to right[last]; or the ranges that stand `of` first and last.

    `later`: what was found is looked at once more, so that it need not lie in its range if that is not seen at once.
    """

    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    last: np.ndarray
    of: Callable | None = None
    later: bool = False

    @property
    def begin(self):
        """Of each probe the range with whose left end its own begins."""
        return self.first if self.of is None else self.of(self.first)

    @property
    def end(self):
        """Of each probe the range with whose right end its own ends."""
        return self.last if self.of is None else self.of(self.last)

    def __len__(self):
        return len(self.first)

    def take(self, which):
        first = self.first[which]
        return replace(self, first=first, last=first if self.first is self.last else self.last[which])

    def holds(self, ticks):
        """Where a tick lies in its range."""
        return (self.left.take(self.begin) <= ticks) & (ticks <= self.right.take(self.end))

    def hold_all(self, low, high):
        """Whether all ranges hold all ticks from one to another."""
        return bool(self.left.max() <= low and high <= self.right.min())

    def within(self, ticks):
        """Where the ticks in each range begin and end among some ascending ones."""
        if len(self.left) > len(self.first):
            left, right = self.left[self.begin], self.right[self.end]
            return np.searchsorted(ticks, left), np.searchsorted(ticks, right, "right")
        return np.searchsorted(ticks, self.left)[self.begin], np.searchsorted(ticks, self.right, "right")[self.end]

    @property
    def rises(self):
        """Whether the ranges that are held begin and end in their order."""
        return bool((self.left[1:] >= self.left[:-1]).all() and (self.right[1:] >= self.right[:-1]).all())


def make_probe_span(left, right):
    """A range of its own for each probe."""
    each = np.arange(len(left))
    return ProbeSpan(left, right, each, each)

"""Probe span: the range of ticks in which each probe searches. Windows are mostly fewer than probes, so ranges are shared."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class ProbeSpan:
    """Probe i searches the ticks left[first[i]] to right[last[i]].

    With `of`, first and last are positions of combinations, and `of` maps them to ranges. With `checked_later`, matches are
    checked once more, so a match outside of its range may be returned where excluding it would cost more.
    """

    left: IntArray
    right: IntArray
    first: IntArray
    last: IntArray
    of: Callable[[IntArray], IntArray] | None = None
    checked_later: bool = False

    @property
    def begin(self) -> IntArray:
        """For each probe, the range whose left end begins its own range."""
        return self.first if self.of is None else self.of(self.first)

    @property
    def end(self) -> IntArray:
        """For each probe, the range whose right end ends its own range."""
        return self.last if self.of is None else self.of(self.last)

    def __len__(self) -> int:
        return len(self.first)

    def take(self, which: IntArray) -> "ProbeSpan":
        """The ranges of some probes."""
        first = self.first[which]
        return replace(self, first=first, last=first if self.first is self.last else self.last[which])

    def contains(self, ticks: IntArray) -> BoolArray:
        """Whether ticks[i] is in the range of probe i."""
        return (self.left.take(self.begin) <= ticks) & (ticks <= self.right.take(self.end))

    def all_contain(self, low: int, high: int) -> bool:
        """Whether every range contains all ticks from `low` to `high`."""
        return bool(self.left.max() <= low and high <= self.right.min())

    def locate(self, ticks: IntArray) -> tuple[IntArray, IntArray]:
        """(first, end): where the ticks in each range begin and end among ascending ticks."""
        if len(self.left) > len(self.first):
            left, right = self.left[self.begin], self.right[self.end]
            return np.searchsorted(ticks, left), np.searchsorted(ticks, right, "right")
        return np.searchsorted(ticks, self.left)[self.begin], np.searchsorted(ticks, self.right, "right")[self.end]

    @property
    def rises(self) -> bool:
        """Whether the shared ranges begin and end in order."""
        return bool((self.left[1:] >= self.left[:-1]).all() and (self.right[1:] >= self.right[:-1]).all())


def make_probe_span(left: IntArray, right: IntArray) -> ProbeSpan:
    """A range of its own for each probe: left[i] to right[i]."""
    each = np.arange(len(left))
    return ProbeSpan(left, right, each, each)

"""Tick ranges: for each window of one join input, which ticks are in it."""

from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import Selection
from basestation.execution.columns.window_lookup import find_containing


@dataclass(frozen=True, slots=True)
class TickRanges:
    """Window i contains the ticks left[i] to right[i]; appended tuples only if they had arrived at made[i] (3.6).

    `made` is None where no tuples are appended. Where several combinations share a window, `at` has for each combination
    the number of its window, as in RepeatedWindows; `first` is the number of the first window.
    """

    left: IntArray
    right: IntArray
    made: IntArray | None = None
    at: IntArray | None = None
    first: int = 0

    def __len__(self) -> int:
        """The number of combinations."""
        return len(self.left if self.at is None else self.at)

    def take(self, which: Selection) -> "TickRanges":
        """The windows of combinations in a slice, or at positions, which need not ascend."""
        if self.at is None:
            return self._choose(which)
        if not isinstance(which, slice):
            return self._choose(self.at[which] - self.first)
        at = self.at[which]
        first, end = int(at[0]), int(at[-1]) + 1
        return replace(self._choose(slice(first - self.first, end - self.first)), at=at, first=first)

    def _choose(self, which: Selection) -> "TickRanges":
        return TickRanges(self.left[which], self.right[which], None if self.made is None else self.made[which])

    @property
    def each(self) -> "TickRanges":
        """The same with a window for each combination."""
        return self if self.at is None else self._choose(self.at - self.first)

    def intersect(self, other: "TickRanges") -> "TickRanges":
        """The ticks in both windows of each combination."""
        a, b = self.each, other.each
        left, right = np.maximum(a.left, b.left), np.minimum(a.right, b.right)
        return TickRanges(left, right, None if a.made is None or b.made is None else np.minimum(a.made, b.made))

    def only(self, mask: BoolArray) -> "TickRanges":
        """The windows under a mask; the others are empty."""
        each = self.each
        return TickRanges(np.where(mask, each.left, 1), np.where(mask, each.right, 0), each.made)

    def of(self, places: IntArray) -> IntArray:
        """The windows in the combinations at positions."""
        return places if self.at is None else self.at[places] - self.first

    def containing(self, ticks: IntArray) -> tuple[IntArray, IntArray]:
        """(the first, the last) combination that contains each tick, where windows begin and end in order."""
        first, last = find_containing(self.left, self.right, ticks)
        if self.at is None:
            return first, last
        begins = np.concatenate([[0], np.flatnonzero(self.at[1:] != self.at[:-1]) + 1, [len(self.at)]])
        last += 1
        last = begins.take(last)
        last -= 1
        return begins.take(first), last

    @property
    def falls(self) -> IntArray:
        """The combinations before which a window begins or ends earlier than the one before it."""
        falls = (self.left[1:] < self.left[:-1]) | (self.right[1:] < self.right[:-1])
        if self.made is not None:
            falls |= self.made[1:] < self.made[:-1]
        windows = np.flatnonzero(falls) + 1
        return windows if self.at is None else np.searchsorted(self.at, windows + self.first)

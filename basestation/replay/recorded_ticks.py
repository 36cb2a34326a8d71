"""Recorded ticks: where on the time axis a recording has something, as intervals with wide gaps between them."""

from collections.abc import Iterable

import numpy as np

from acquisition.arrays import IntArray

LEAST_GAP = 1 << 16
"""Narrower gaps are part of an interval."""
_MOST = 10_000
"""With more intervals than this, the narrower gaps are forgotten."""


class RecordedTicks:
    """Intervals that hold all ticks added so far. `least_gap` is the length from which on a gap between them is kept."""

    def __init__(self, least_gap: int = LEAST_GAP) -> None:
        self._least_gap = least_gap
        self._first = self._last = np.empty(0, np.int64)
        self._waiting: list[IntArray] = []
        self._waiting_count = 0

    def add(self, ticks: IntArray) -> None:
        """Add ticks, in any order."""
        if not len(ticks):
            return
        low, high = int(ticks.min()), int(ticks.max())
        ends = np.array([low, high])
        if high - low > self._least_gap:
            ordered = np.sort(ticks)
            # The two ends of each gap; a narrow distance between neighbours is none.
            wide = np.flatnonzero(np.diff(ordered) > self._least_gap)
            ends = np.concatenate([ends, ordered[wide], ordered[wide + 1]])
            ends.sort()
        self._waiting.append(ends)
        self._waiting_count += len(ends)
        if self._waiting_count > 4 * _MOST:
            self._merge()

    def _merge(self) -> None:
        """Unite the intervals that touch, or have no wide gap between them."""
        ends = np.concatenate([self._first, *(each[::2] for each in self._waiting)])
        lasts = np.concatenate([self._last, *(each[1::2] for each in self._waiting)])
        self._waiting, self._waiting_count = [], 0
        order = np.argsort(ends, kind="stable")
        first, last = ends[order], np.maximum.accumulate(lasts[order]) if len(order) else lasts
        gaps = first[1:] - last[:-1]
        if len(gaps) > _MOST:
            self._least_gap = max(self._least_gap, int(np.partition(gaps, len(gaps) - _MOST)[len(gaps) - _MOST]))
        wide = gaps > self._least_gap
        self._first = first[np.concatenate([[True], wide])] if len(first) else first
        self._last = last[np.concatenate([wide, [True]])] if len(last) else last

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals in order, each with its first and last tick."""
        self._merge()
        return list(zip(self._first.tolist(), self._last.tolist(), strict=True))


def find_gaps(intervals: Iterable[tuple[int, int]], begin: int, until: int) -> list[tuple[int, int]]:
    """Return (last tick before, first tick behind) of each gap that no interval touches, from a tick to another, in order."""
    gaps, last = [], begin
    for low, high in sorted(intervals):
        if low > until:
            break
        if low > last:
            gaps.append((last, low))
        last = max(last, high)
    if last < until:
        gaps.append((last, until))
    return gaps

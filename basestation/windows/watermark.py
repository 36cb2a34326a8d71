"""The watermark of a sensed extent: up to which tick nothing more is waited for (SEMANTICS 1.5).

It depends on the clock and the schedule, never on timestamps: a silent site cannot hold a window longer than `wait`,
and no clock that runs ahead can close one.
"""

import numpy as np

from acquisition.instants import grid_at_or_after


class SensedWatermark:
    """Counts, for each due tick, how many of the sites have reported."""

    def __init__(self, first_due: int, interval: int, sites: int, wait: int) -> None:
        self._first_due, self._interval, self._sites, self._wait = first_due, interval, sites, wait
        self._reported: dict[int, int] = {}

    def reported(self, ticks: np.ndarray) -> None:
        """One entry for each reading that was not here before. Each (site, tick) is told at most once."""
        for tick, count in zip(*(array.tolist() for array in np.unique(ticks, return_counts=True)), strict=True):
            self._reported[tick] = self._reported.get(tick, 0) + count

    def at(self, clock: int) -> int:
        """The watermark at the end of clock tick `clock`: the largest tick up to which all is here or waited for."""
        # Due ticks at or before clock - wait no longer block, so only those after it are looked at.
        due = grid_at_or_after(max(clock - self._wait + 1, self._first_due), self._interval)
        while due <= clock:
            if self._reported.get(due, 0) < self._sites:
                return due - 1
            due += self._interval
        return clock

    def forget(self, before: int) -> None:
        """Drop what was reported about ticks before one that the watermark has passed."""
        self._reported = {tick: count for tick, count in self._reported.items() if tick >= before}

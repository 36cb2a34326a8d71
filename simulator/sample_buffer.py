"""Waiting: the readings of a mote that are in no frame yet."""

from collections.abc import Collection

from acquisition.payload import Row, filter_report_interval
from acquisition.schedule import Sampling

CAPACITY = 500
"""A mote has room for so many readings of a sampling."""
Run = tuple[Sampling, int, list[Row | None]]
"""Readings of consecutive epochs from the first on; None is one that was filtered."""


class SampleBuffer:
    """By sampling, in runs of consecutive epochs. Where there is no room the oldest is dropped, and counted."""

    def __init__(self) -> None:
        self._runs: dict[int, list[Run]] = {}

    def keep(self, sampling: Sampling, epoch: int, row: Row | None) -> int:
        """How many had to be dropped for it."""
        runs = self._runs.setdefault(sampling.number, [])
        if not runs or runs[-1][1] + len(runs[-1][2]) != epoch:
            runs.append((sampling, epoch, []))
        runs[-1][2].append(row)
        if sum(len(rows) for _, _, rows in runs) <= CAPACITY:
            return 0
        _, first, rows = runs[0]
        runs[:1] = [(sampling, first + 1, rows[1:])] if len(rows) > 1 else []
        return 1

    def take(self, sampled: Collection[Sampling]) -> list[Run]:
        """What is to go into frames now; what was all filtered may wait for some epochs more, as long as it is sampled."""
        found: list[Run] = []
        for number, runs in sorted(self._runs.items()):
            sampling, _, rows = runs[-1]
            held = (
                sampling in sampled
                and len(rows) < filter_report_interval(sampling)
                and all(row is None for row in rows)
            )
            found += runs[:-1] if held else runs
            self._runs[number] = runs[-1:] if held else []
        self._runs = {number: runs for number, runs in self._runs.items() if runs}
        return found

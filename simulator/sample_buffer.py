"""The sample buffer of a mote: its readings that are in no frame yet."""

from collections.abc import Collection

from acquisition.payload import Row, filter_report_interval
from acquisition.schedule import Sampling

CAPACITY = 500
"""The readings of one sampling that a mote has room for."""
Run = tuple[Sampling, int, list[Row | None]]
"""(sampling, first epoch, readings of consecutive epochs); None stands for a reading that was filtered."""


class SampleBuffer:
    """Readings by sampling, in runs of consecutive epochs. A full buffer drops the oldest reading."""

    def __init__(self) -> None:
        self._runs: dict[int, list[Run]] = {}

    def keep(self, sampling: Sampling, epoch: int, row: Row | None) -> int:
        """Add the reading of an epoch; returns how many readings it dropped to make room (0 or 1)."""
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
        """Remove and return the runs that go into frames now.

        A run of filtered readings only stays until its report is due, as long as its sampling is among the `sampled`.
        """
        found: list[Run] = []
        for number, runs in sorted(self._runs.items()):
            sampling, _, rows = runs[-1]
            stays = (
                sampling in sampled
                and len(rows) < filter_report_interval(sampling)
                and all(row is None for row in rows)
            )
            found += runs[:-1] if stays else runs
            self._runs[number] = runs[-1:] if stays else []
        self._runs = {number: runs for number, runs in self._runs.items() if runs}
        return found

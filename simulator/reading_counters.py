"""The counters of a mote: how many of its readings it sampled, filtered, merged and dropped. It reports them to the station."""

from dataclasses import dataclass

from acquisition.schedule import Sampling
from gateway.payload import ReadingCounts
from innet.program.interpreter import ProgramOutcome

REPORT_EPOCHS = 60
"""The epochs of a sampling after which a mote reports its counts."""
LONGEST_SPAN = 0xFFFF
"""The epochs that one report can cover: the frame has 16 bits for them. A clock that jumps may leave out more."""


@dataclass(slots=True)
class _Counts:
    first: int
    last: int
    sampled: int = 0
    filtered: int = 0
    merged: int = 0
    dropped: int = 0


class ReadingCounters:
    """Counts by the number of a sampling, since its last report."""

    def __init__(self) -> None:
        self._counts: dict[int, _Counts] = {}
        self._full: list[ReadingCounts] = []

    def count(self, sampling: Sampling, epoch: int, outcome: ProgramOutcome, dropped: int) -> None:
        """Count the reading of one epoch, and the readings that were dropped to make room for it."""
        if sampling.number in self._counts and epoch - self._counts[sampling.number].first >= LONGEST_SPAN:
            self._full.append(self._report(sampling.number))
        counted = self._counts.setdefault(sampling.number, _Counts(epoch, epoch))
        counted.last = epoch
        counted.sampled += 1
        counted.filtered += outcome.filtered
        counted.merged += not outcome.is_due
        counted.dropped += dropped

    def due(self, samplings: tuple[Sampling, ...]) -> list[ReadingCounts]:
        """Remove and return the counts to report: those of enough epochs, and those of samplings that have ended."""
        now = {sampling.number for sampling in samplings}
        full, self._full = self._full, []
        return full + [
            self._report(number)
            for number, counted in sorted(self._counts.items())
            if number not in now or counted.last - counted.first + 1 >= REPORT_EPOCHS
        ]

    def _report(self, number: int) -> ReadingCounts:
        c = self._counts.pop(number)
        return ReadingCounts(number, c.first, c.last - c.first + 1, c.sampled, c.filtered, c.merged, c.dropped)

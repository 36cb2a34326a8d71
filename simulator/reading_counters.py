"""Counting: what became of a mote's readings, by its own counters; told to the base station every so many epochs."""

from dataclasses import dataclass

from acquisition.schedule import Sampling
from gateway.payload import ReadingCounts
from innet.program.interpreter import ProgramOutcome

REPORT_EPOCHS = 60
"""The epochs of a sampling after which its counts are told."""
LONGEST_SPAN = 0xFFFF
"""A Counts has 16 bits for how many epochs it is about; a clock that jumps leaves out more."""


@dataclass(slots=True)
class _Counts:
    first: int
    last: int
    sampled: int = 0
    filtered: int = 0
    merged: int = 0
    dropped: int = 0


class ReadingCounters:
    """By the number of a sampling, since its counts were told last."""

    def __init__(self) -> None:
        self._of: dict[int, _Counts] = {}
        self._full: list[ReadingCounts] = []

    def count(self, sampling: Sampling, epoch: int, outcome: ProgramOutcome, dropped: int) -> None:
        """One reading, and how many were dropped to make room for it."""
        if sampling.number in self._of and epoch - self._of[sampling.number].first >= LONGEST_SPAN:
            self._full.append(self._told(sampling.number))
        counted = self._of.setdefault(sampling.number, _Counts(epoch, epoch))
        counted.last = epoch
        counted.sampled += 1
        counted.filtered += outcome.filtered
        counted.merged += not outcome.wanted
        counted.dropped += dropped

    def due(self, samplings: tuple[Sampling, ...]) -> list[ReadingCounts]:
        """What is to be told: of whose epochs there are enough, or who is not among the samplings of now."""
        now = {sampling.number for sampling in samplings}
        full, self._full = self._full, []
        return full + [
            self._told(number)
            for number, counted in sorted(self._of.items())
            if number not in now or counted.last - counted.first + 1 >= REPORT_EPOCHS
        ]

    def _told(self, number: int) -> ReadingCounts:
        c = self._of.pop(number)
        return ReadingCounts(number, c.first, c.last - c.first + 1, c.sampled, c.filtered, c.merged, c.dropped)

"""Punctuation: opaque values between tuples, which keep their place through every operator.

A punctuation has an order of entry like a tuple (semantics 1.5) and enters where a tuple would. Streams pass it on. After a
converter, and among windows, it stands before everything that arrives at the same time or later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from basestation.execution.columns.tuples import Tuples


@dataclass(frozen=True, slots=True)
class Punctuation:
    """One value. `source`, the extent and a number, identifies it; the next four fields are its order of entry."""

    source: tuple[str, int]
    arrival: int
    part: int
    rank: int
    place: float
    value: object

    @property
    def key(self) -> tuple[int, int, int, float]:
        """The order of entry."""
        return self.arrival, self.part, self.rank, self.place

    def after_windows(self) -> "Punctuation":
        """Return the punctuation as it stands in the stream of a converter."""
        return replace(self, part=0, rank=-1, place=0)


def merge_punctuation(parts: Iterable[Iterable[Punctuation]]) -> tuple[Punctuation, ...]:
    """Return the punctuation of several streams, each once."""
    found: dict[tuple[str, int], Punctuation] = {}
    for marks in parts:
        for mark in marks:
            found.setdefault(mark.source, mark)
    return tuple(found.values())


class PendingPunctuation:
    """Punctuation that waits for the watermark to reach its arrival."""

    def __init__(self) -> None:
        self._waiting: list[Punctuation] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def sources(self) -> frozenset[tuple[str, int]]:
        """The sources of the punctuation that waits."""
        return frozenset(mark.source for mark in self._waiting)

    def ready(self, marks: Sequence[Punctuation], watermark: int) -> Sequence[Punctuation]:
        """Add punctuation, and remove and return all that enters now, in order."""
        if not marks and not self._waiting:
            return ()
        known = sorted((*self._waiting, *marks), key=lambda mark: mark.key)
        self._waiting = [mark for mark in known if mark.arrival > watermark]
        return [mark for mark in known if mark.arrival <= watermark]


def count_before(mark: Punctuation, tuples: Tuples) -> int:
    """Return how many of the ordered tuples enter before a punctuation."""
    same = np.ones(len(tuples), bool)
    columns = (tuples.arrival, tuples.part, tuples.rank, tuples.place)
    before = np.zeros(len(tuples), bool)
    for column, own in zip(columns, mark.key, strict=True):
        before |= same & (column < own)
        same &= column == own
    return int(before.sum())

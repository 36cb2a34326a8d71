"""Marks: what rides beside tuples at places between them, opaque, and keeps its place through every operator.

A mark has an order of entry like a tuple (SEMANTICS 1.5) and enters where a tuple would. Streams pass it on; beyond a
converter, and in windows, it stands before what is made of tuples that arrive as it does, or later.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Punctuation:
    """`source` tells it from all others: the extent, and a number."""

    source: tuple
    arrival: int
    part: int
    rank: int
    place: float
    value: object

    @property
    def key(self):
        return self.arrival, self.part, self.rank, self.place

    def after_windows(self):
        """The mark as it stands among what windows gave."""
        return replace(self, part=0, rank=-1, place=0)


def merge_punctuation(parts):
    """All marks of several streams, each once."""
    found = {}
    for marks in parts:
        for mark in marks:
            found.setdefault(mark.source, mark)
    return tuple(found.values())


class PendingPunctuation:
    """Marks that wait for the watermark to reach their arrival, and then come in order."""

    def __init__(self):
        self._waiting = []

    def __len__(self):
        return len(self._waiting)

    def ready(self, marks, watermark):
        """Take marks in; those that enter now."""
        if not marks and not self._waiting:
            return ()
        known = sorted((*self._waiting, *marks), key=lambda mark: mark.key)
        self._waiting = [mark for mark in known if mark.arrival > watermark]
        return [mark for mark in known if mark.arrival <= watermark]


def count_before(mark, tuples):
    """How many of the tuples, which are in order, enter before a mark."""
    same = np.ones(len(tuples), bool)
    columns = (tuples.arrival, tuples.part, tuples.rank, tuples.place)
    before = np.zeros(len(tuples), bool)
    for column, own in zip(columns, mark.key, strict=True):
        before |= same & (column < own)
        same &= column == own
    return int(before.sum())

"""AnsweredTicks: the windows that belong to a query, of windows that it shares with queries that begin or end at other ticks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.punctuation import Punctuation
from basestation.execution.columns.window_batch import NEVER


@dataclass(frozen=True, slots=True)
class AnsweredTicks:
    """The windows with ticks `first` to `last`, and the marks that came after the query.

    `first` is NEVER until the query has a window. `earlier` has the sources of the marks that came before the query.
    """

    first: int = -NEVER
    last: int = NEVER
    earlier: frozenset[tuple[str, int]] = frozenset()

    def range_of(self, ticks: IntArray) -> tuple[int, int]:
        """Return (first, end): the positions among ascending ticks of those of the query."""
        first, end = np.searchsorted(ticks, self.first), np.searchsorted(ticks, self.last, "right")
        return int(first), int(end)

    def hold(self, ticks: IntArray) -> bool:
        """Return whether all of some ascending ticks are those of the query."""
        return not len(ticks) or bool(self.first <= ticks[0] and ticks[-1] <= self.last)

    def mask(self, ticks: IntArray) -> BoolArray:
        """Return a mask of the ticks of the query."""
        return (ticks >= self.first) & (ticks <= self.last)

    def marks(self, marks: Sequence[Punctuation]) -> Sequence[Punctuation]:
        """Return the marks of the query."""
        return [mark for mark in marks if mark.source not in self.earlier] if self.earlier else marks


def intersect(parts: Iterable[AnsweredTicks]) -> AnsweredTicks:
    """Return the ticks that belong to all of some queries."""
    first, last = -NEVER, NEVER
    for part in parts:
        first, last = max(first, part.first), min(last, part.last)
    return AnsweredTicks(first, last)

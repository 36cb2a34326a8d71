"""Skipped tuples: those that a converter gives in a quiet stretch, where each window has the same rows.

They are left out and counted. The tuples behind the stretch get the indexes that they have if none is left out: in each period of the
stretch a converter gives as many.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.replay.quiet_stretches import QuietStretch
from basestation.replay.shortened_clock import ShortenedClock, SkippedAnswers
from basestation.updates.update import TupleUpdates


class SkippedTuples:
    """The tuples of all queries in quiet stretches. Stretches end one after another."""

    def __init__(self, clock: ShortenedClock) -> None:
        self._clock = clock
        self._ended = 0  # stretches whose tuples are all there
        self._noted: dict[
            int, list[tuple[IntArray, IntArray]]
        ] = {}  # (ticks, indexes) in the current stretch, by query
        self._removed: dict[int, list[tuple[int, int]]] = {}  # (last index, removed tuples) of earlier ones, by query

    def restore(self, query: int, update: TupleUpdates) -> tuple[TupleUpdates, BoolArray]:
        """Return tuples of the engine with the ticks and indexes of the recording, without those in stretches; a mask of the others."""
        shown = ~self._clock.is_in_stretch(update.tick)
        if not shown.all():
            self._noted.setdefault(query, []).append((update.tick[~shown], update.index[~shown]))
            update = update.take(shown)
        index = update.index
        for last, removed in [*self._removed.get(query, ()), *self._current(query)]:
            index = np.where(update.index > last, index + removed, index)
        return replace(update, tick=self._clock.restore(update.tick), index=index), shown

    def _current(self, query: int) -> Iterator[tuple[int, int]]:
        """The same of the current stretch; its tuples precede those behind it, so they are noted by then."""
        if query in self._noted:
            stretch = self._clock.stretches[self._ended]
            ticks, indexes = (np.concatenate(each) for each in zip(*self._noted[query], strict=True))
            yield int(indexes.max()), self._count_removed(stretch, ticks)

    def _count_removed(self, stretch: QuietStretch, ticks: IntArray) -> int:
        first = self._clock.shorten_one(stretch.last_shown)
        return stretch.removed // stretch.period * int(np.count_nonzero(ticks <= first + stretch.period))

    def end(self, stretch: QuietStretch) -> list[SkippedAnswers]:
        """Return what was left out of a quiet stretch, after the engine has ended it; and begin the next one."""
        found, before = [], stretch.last_shown - self._clock.shorten_one(stretch.last_shown)
        for query, parts in sorted(self._noted.items()):
            ticks = np.concatenate([tick for tick, _ in parts])
            first, last = int(ticks.min()) + before, int(ticks.max()) + before + stretch.removed
            count = len(ticks) + self._count_removed(stretch, ticks)
            found.append(SkippedAnswers(query, first, last, count, tuples=True))
            self._removed.setdefault(query, []).extend(self._current(query))
        self._noted = {}
        self._ended += 1
        return found

"""WatermarkBuffer: tuples that wait for the watermark to reach their arrival, and then enter in order (semantics 1.5).

`IndexAssigner` gives the tuples of a stream their indexes as they enter (semantics 6.3, 10.6).
"""

from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import all_true
from basestation.execution import thresholds
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.integer_arrays import is_consecutive
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import Tuples, concatenate_tuples


class WatermarkBuffer:
    """Waiting tuples, in parts each of which is in the order of entry."""

    def __init__(self) -> None:
        self._parts: list[Tuples] = []

    def apply(self, inserted: Tuples, is_new: BoolArray, removed: Tuples, ordered: bool = False) -> None:
        """Take in a change: removed tuples no longer wait, corrected ones wait with their new values.

        `ordered` says that the inserted tuples are known to be in the order of entry.
        """
        if len(removed) and self._parts:
            waiting = concatenate_tuples(self._parts)
            kept = np.isin(inserted.ident, waiting.ident) & ~is_new
            left = [part.take(~np.isin(part.ident, removed.ident)) for part in self._parts]
            self._parts = [part for part in left if len(part)]
            self._wait(_keep_order_of(inserted.take(kept), waiting))
        self._wait(inserted.take(is_new), ordered)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def idents(self) -> IntArray:
        """The numbers of the waiting tuples."""
        return np.concatenate([NO_TICKS, *(part.ident for part in self._parts)])

    def _wait(self, tuples: Tuples, ordered: bool = False) -> None:
        if len(tuples):
            self._parts.append(tuples if ordered else tuples.in_order())
            if len(self._parts) > thresholds.PENDING_PARTS:
                self._parts = [concatenate_tuples(self._parts).in_order()]

    def ready(self, watermark: int) -> Tuples | None:
        """Remove and return the tuples that enter now, in order; None if there are none."""
        found, waiting = [], []
        for part in self._parts:
            if part.arrival[-1] <= watermark:
                found.append(part)
            elif part.arrival[0] > watermark:
                waiting.append(part)
            else:
                at = int(np.searchsorted(part.arrival, watermark, "right"))
                found.append(part.take(slice(0, at)))
                waiting.append(part.take(slice(at, None)))
        if not found:
            return None
        self._parts = waiting
        return found[0] if len(found) == 1 else concatenate_tuples(found).in_order()

    @property
    def first(self) -> int | None:
        """The earliest arrival of a waiting tuple; None if none waits."""
        return min((int(part.arrival[0]) for part in self._parts), default=None)


def _keep_order_of(tuples: Tuples, waiting: Tuples) -> Tuples:
    """Return corrected tuples with the order of entry that they had before.

    A tuple that a correction lets pass a selection arrives later there than below, and keeps that arrival.
    """
    by_ident = np.argsort(waiting.ident)
    at = by_ident[np.searchsorted(waiting.ident, tuples.ident, sorter=by_ident)]
    return replace(
        tuples, arrival=waiting.arrival[at], part=waiting.part[at], rank=waiting.rank[at], place=waiting.place[at]
    )


class IndexAssigner:
    """Indexes of a stream's tuples. `entering` are the tuples that entered in this step, `entered` their numbers."""

    def __init__(self) -> None:
        self._arrivals = WatermarkBuffer()
        self._index = TupleIndexes()
        self.entered: IntArray = NO_TICKS
        self.entering: Tuples | None = None

    def take(self, inserted: Tuples, is_new: BoolArray, removed: Tuples, watermark: int) -> None:
        """Take in the change of a step and give indexes to the tuples that enter."""
        self._index.leave(inserted.ident if all_true(is_new) else inserted.ident[is_new])
        self._arrivals.apply(inserted, is_new, removed)
        self.entering = self._arrivals.ready(watermark)
        self.entered = NO_TICKS if self.entering is None else self.entering.ident
        if len(self.entered):
            self._index.enter(self.entered, is_consecutive(self.entered))

    @property
    def first_waiting(self) -> int | None:
        """The earliest arrival of a tuple that has not entered; None if there is none."""
        return self._arrivals.first

    def forget(self, first: int) -> None:
        """Drop the indexes of tuple numbers below `first`."""
        self._index.drop_before(first)

    def of(self, idents: IntArray) -> IntArray:
        """Return the index of each tuple number; 0 if the tuple has not entered."""
        return self._index.of(idents)

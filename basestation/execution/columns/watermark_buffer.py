"""Indexing: gives the tuples of a stream their indexes as they enter it (SEMANTICS 1.5, 6.3, 10.6)."""

from dataclasses import replace

import numpy as np

from basestation.algebra.vector import all_true
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.integer_arrays import is_consecutive
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import concatenate_tuples

_MANY = 64
"""Parts that wait are put together where there are more."""


class WatermarkBuffer:
    """Tuples that wait for the watermark to reach their arrival, and then come in order."""

    def __init__(self):
        self._parts = []  # each in order

    def apply(self, inserted, is_new, removed, ordered=False):
        """Take in a change: what is gone waits no longer, what was corrected waits with its new values.

        `ordered`: it is known that what comes is in the order of entry.
        """
        if len(removed) and self._parts:
            waiting = concatenate_tuples(self._parts)
            kept = np.isin(inserted.ident, waiting.ident) & ~is_new
            left = [part.take(~np.isin(part.ident, removed.ident)) for part in self._parts]
            self._parts = [part for part in left if len(part)]
            self._wait(_in_the_place_of(inserted.take(kept), waiting))
        self._wait(inserted.take(is_new), ordered)

    def __len__(self):
        return sum(map(len, self._parts))

    def _wait(self, tuples, ordered=False):
        if len(tuples):
            self._parts.append(tuples if ordered else tuples.in_order())
            if len(self._parts) > _MANY:
                self._parts = [concatenate_tuples(self._parts).in_order()]

    def ready(self, watermark):
        """Those that enter now, in order; None where there are none."""
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
    def first(self):
        """The first arrival that is waited for; None where there is none."""
        return min((int(part.arrival[0]) for part in self._parts), default=None)


def _in_the_place_of(tuples, waiting):
    """Tuples in the order of entry that they had with their old values: one that was let pass arrived later than below."""
    by_ident = np.argsort(waiting.ident)
    at = by_ident[np.searchsorted(waiting.ident, tuples.ident, sorter=by_ident)]
    order = {name: getattr(waiting, name)[at] for name in ("arrival", "part", "rank", "place")}
    return replace(tuples, **order)


class IndexAssigner:
    def __init__(self):
        self._arrivals = WatermarkBuffer()
        self._index = TupleIndexes()
        self.entered, self.entering = NO_TICKS, None  # who entered in this step

    def take(self, inserted, is_new, removed, watermark):
        self._index.leave(inserted.ident if all_true(is_new) else inserted.ident[is_new])
        self._arrivals.apply(inserted, is_new, removed)
        self.entering = self._arrivals.ready(watermark)
        self.entered = NO_TICKS if self.entering is None else self.entering.ident
        if len(self.entered):
            self._index.enter(self.entered, is_consecutive(self.entered))

    def forget(self, first):
        """No tuple with a number below `first` is spoken of again."""
        self._index.drop_before(first)

    def of(self, idents):
        return self._index.of(idents)

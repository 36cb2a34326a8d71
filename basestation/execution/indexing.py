"""Indexing: gives the tuples of a stream their indexes as they enter it (SEMANTICS 1.5, 6.3, 10.6)."""

import numpy as np

from basestation.execution.change import NO_TICKS
from basestation.execution.numbered import Numbered
from basestation.execution.tuples import Growing


class Arrivals:
    """Tuples that wait for the watermark to reach their arrival, and then come in order."""

    def __init__(self):
        self._waiting = Growing()

    def apply(self, come, fresh, gone):
        """Take in a change: what is gone waits no longer, what was corrected waits with its new values."""
        waiting = self._waiting.all()
        if len(gone) and waiting is not None:
            kept = np.isin(come.ident, waiting.ident) & ~fresh
            self._waiting.keep(~np.isin(waiting.ident, gone.ident))
            self._waiting.add(come.take(kept | fresh))
        else:
            self._waiting.add(come.take(fresh))

    def ready(self, watermark):
        """Those that enter now, in order; None where there are none."""
        waiting = self._waiting.all()
        if waiting is None or not len(waiting):
            return None
        enter = waiting.arrival <= watermark
        if not enter.any():
            return None
        found = waiting.take(enter).in_order()
        self._waiting.keep(~enter)
        return found


class Indexing:
    def __init__(self):
        self._arrivals = Arrivals()
        self._index = Numbered(np.int64)
        self._last = 0
        self.entered, self.entering = NO_TICKS, None  # who entered in this step

    def take(self, come, fresh, gone, watermark):
        self._index[come.ident[fresh]] = 0
        self._arrivals.apply(come, fresh, gone)
        self.entering = self._arrivals.ready(watermark)
        self.entered = NO_TICKS if self.entering is None else self.entering.ident
        self._index[self.entered] = self._last + 1 + np.arange(len(self.entered))
        self._last += len(self.entered)

    def forget(self, first):
        """No tuple with a number below `first` is spoken of again."""
        self._index.drop_before(first)

    def of(self, idents):
        return self._index[idents]

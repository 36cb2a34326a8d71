"""Store: what windows over one stream hold, kept once; and the tuples that windows of time reach."""

import numpy as np

from basestation.execution.columns.tuples import TupleBuffer
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.graph import STORE, Operator


class WindowStore(Operator):
    """What windows over one stream hold, kept once for all that hold it alike. Its readers say what they need of it."""

    kind = STORE

    def __init__(self, stream, level):
        """`level` is that of the blocks that read it."""
        super().__init__(level)
        self.stream = stream
        self._needed = NEVER
        self._kept_from = -NEVER  # what is before that tick was let go of

    def begin(self, before):
        """A reader begins that asks for nothing before a tick: what others needed no more is taken in again."""
        if before < self._kept_from:
            self._kept_from = -NEVER
            self.fill()

    def need(self, before):
        """A reader asks for nothing before a tick."""
        self._needed = min(self._needed, before)

    def apply(self, clock):
        """Take the stream's change in."""
        change, held = self.stream.change, len(self)
        self.take(change)
        self.counts.rows_in += change.inserted_count + len(change.removed)
        self.counts.inserted += change.inserted_count
        self.counts.purged += max(0, held + change.inserted_count - len(self))

    def tidy(self):
        if self._needed < NEVER:
            held = len(self)
            self._kept_from = max(self._kept_from, self._needed)
            self.forget(self._needed)
            self.counts.purged += held - len(self)
        self._needed = NEVER


class TickOrderedStore(WindowStore):
    """The tuples that windows may still reach, by tick. Tuples of one tick stand in no particular order."""

    def __init__(self, stream, level):
        super().__init__(stream, level)
        self.fill()

    def fill(self):
        """Begin with all that is known of the stream."""
        self._growing, self._sorted = TupleBuffer(), None
        self._growing.add(self.stream.all().inserted)

    def __len__(self):
        return len(self._growing)

    def take(self, change):
        if len(change.removed):
            held = self._growing.all()
            self._growing.keep(~np.isin(held.ident, change.removed.ident))
            self._sorted = None
        if len(change.inserted):
            self._growing.add(change.inserted)
            self._sorted = None

    def by_tick(self):
        """All tuples sorted by tick; None where there never were any."""
        if self._sorted is None and self._growing.all() is not None:
            held = self._growing.all()
            if len(held) > 1 and (held.tick[1:] < held.tick[:-1]).any():
                held = held.take(np.argsort(held.tick, kind="stable"))
            self._sorted = held
        return self._sorted

    def forget(self, before):
        held = self.by_tick()
        if held is not None and len(held) and held.tick[0] < before:
            self._growing.keep(self._growing.all().tick >= before)
            self._sorted = None

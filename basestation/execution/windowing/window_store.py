"""Window stores: the tuples of one stream that windows may still reach, kept once for all windows over that stream."""

from abc import abstractmethod

import numpy as np

from basestation.execution.columns.change import Change
from basestation.execution.columns.tuple_state import describe_tuples
from basestation.execution.columns.tuples import TupleBuffer, Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription
from basestation.execution.graph import STORE, Operator
from basestation.execution.streams.stream import Stream


class WindowStore(Operator):
    """State over one stream, shared by readers that need the same of it; a TupleState (`interfaces.py`)."""

    kind = STORE

    def __init__(self, stream: Stream, level: int) -> None:
        """`level` is that of the blocks that read it."""
        super().__init__(level)
        self.stream = stream
        self._needed = NEVER
        self.reach: int | None = 0
        """The ticks behind the watermark that the widest window reaches back; None for landmark windows and loops."""
        self._kept_from = -NEVER  # tuples before that tick were dropped

    def begin(self, before: int) -> None:
        """Add a reader that asks for no tick before `before`; read dropped tuples in again if it needs them."""
        if before < self._kept_from:
            self._kept_from = -NEVER
            self.fill()

    def widen(self, reach: int | None) -> None:
        """A reader has windows that reach so many ticks back; None: without limit."""
        self.reach = None if reach is None or self.reach is None else max(self.reach, reach)

    def need(self, before: int) -> None:
        """Promise that a reader asks for no tick before `before`."""
        self._needed = min(self._needed, before)

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows held."""

    @abstractmethod
    def fill(self) -> None:
        """Start again from all tuples of the stream that are here."""

    @abstractmethod
    def take(self, change: Change) -> None:
        """Take in a change."""

    @abstractmethod
    def forget(self, before: int) -> None:
        """Drop what only ticks before `before` need."""

    def apply(self, clock: int) -> None:
        """Take in the change of the stream."""
        change, held = self.stream.change, len(self)
        self.take(change)
        self.counts.rows_in += change.inserted_count + len(change.removed)
        self.counts.inserted += change.inserted_count
        self.counts.purged += max(0, held + change.inserted_count - len(self))

    def tidy(self) -> None:
        """Drop what no reader needs."""
        if self._needed < NEVER:
            held = len(self)
            self._kept_from = max(self._kept_from, self._needed)
            self.forget(self._needed)
            self.counts.purged += held - len(self)
        self._needed = NEVER


class TickOrderedStore(WindowStore):
    """The tuples that time windows may still reach, sorted by tick. Tuples of one tick are in no particular order."""

    def __init__(self, stream: Stream, level: int) -> None:
        super().__init__(stream, level)
        self.fill()

    def fill(self) -> None:
        self._buffer = TupleBuffer()
        self._sorted: Tuples | None = None
        self._buffer.add(self.stream.all().inserted)

    def describe(self) -> OperatorDescription:
        reach = self.reach
        limit = None if reach is None else self.stream.max_tuples(reach + self.stream.horizon)
        return OperatorDescription(
            "window state", "tuples by tick", describe_tuples("tuples", limit, self._buffer.all())
        )

    def __len__(self) -> int:
        return len(self._buffer)

    def take(self, change: Change) -> None:
        if len(change.removed):
            held = self._buffer.all()
            if held is not None:
                self._buffer.keep(~np.isin(held.ident, change.removed.ident))
            self._sorted = None
        if len(change.inserted):
            self._buffer.add(change.inserted)
            self._sorted = None

    def by_tick(self) -> Tuples | None:
        """All tuples sorted by tick; None where there never were any."""
        if self._sorted is None:
            held = self._buffer.all()
            if held is not None and len(held) > 1 and (held.tick[1:] < held.tick[:-1]).any():
                held = held.take(np.argsort(held.tick, kind="stable"))
            self._sorted = held
        return self._sorted

    def forget(self, before: int) -> None:
        held = self.by_tick()
        if held is not None and len(held) and held.tick[0] < before:
            unsorted = self._buffer.all()
            if unsorted is not None:
                self._buffer.keep(unsorted.tick >= before)
            self._sorted = None

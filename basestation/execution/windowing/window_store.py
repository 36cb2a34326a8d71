"""Window stores: the tuples of one stream that open windows reach, kept once for all windows over that stream.

A window that was answered may be revised long after. A store does not keep its tuples for that: it recalls them from the stream,
which ends in the log that all queries share, and drops them again when it is tidied.

    ticks     ----------------[ window that is revised ]--------------------[ last answered window ][ open windows
    held                      [ recalled ]                                  [ kept
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution import thresholds
from basestation.execution.columns.change import Change
from basestation.execution.columns.tick_spans import TickSpans
from basestation.execution.columns.tuple_state import describe_tuples
from basestation.execution.columns.tuples import TupleBuffer, Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription
from basestation.execution.graph import STORE, Operator
from basestation.execution.streams.stream import Stream


class WindowReader(Protocol):
    """Windows that read a store."""

    @property
    def open_from(self) -> int:
        """The first tick that it reads, but for windows that are revised."""


class StreamReader:
    """Reads a stream for one of its readers: as it was before its last step until the reader has taken in the change of that step."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.taken: Change | None = getattr(stream, "change", None)
        """The change that the reader took in last."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the change that was taken in last: streams are saved without it, too."""
        return vars(self) | {"taken": None}

    @property
    def is_behind(self) -> bool:
        """Whether the stream took its step and the reader did not yet."""
        return self.taken is not getattr(self.stream, "change", None)

    def read(self, stream: Stream, low: int, high: int) -> Tuples:
        """The tuples from tick low to tick high of a stream that takes its step together with the one of the reader."""
        found = stream.between(low, high)
        return stream.change.undo(found, low, high) if self.is_behind else found


class WindowStore(Operator):
    """State over one stream, shared by readers that need the same of it; a TupleState (`interfaces.py`)."""

    kind = STORE

    def __init__(self, stream: Stream, level: int) -> None:
        """`level` is that of the blocks that read it."""
        super().__init__(level)
        self.stream = stream
        self.recalls = True
        """Whether what was dropped can be read from the stream again."""
        self._readers: list[WindowReader] = []
        self._needed = NEVER
        self.reach: int | None = 0
        """The ticks behind the watermark that the widest window reaches back; None for landmark windows and loops."""
        self._kept_from = NEVER  # all tuples from that tick on are held
        self._recalled = TickSpans()  # and those in these ranges
        self._past = StreamReader(stream)

    def begin(self, reader: WindowReader) -> None:
        """Add a reader."""
        self._readers.append(reader)
        self.reach_back(reader.open_from)

    def end(self, reader: WindowReader) -> None:
        """Remove a reader."""
        self._readers.remove(reader)

    def reach_back(self, before: int) -> None:
        """Hold all tuples from a tick on."""
        if before < self._kept_from:
            self._recall(TickSpans([(before, self._kept_from - 1)]))
            self._kept_from = before

    def recall(self, left: IntArray, right: IntArray) -> None:
        """Make sure that the tuples with ticks left[i] to right[i] are held until the store is tidied."""
        if len(left) and int(left.min()) < self._kept_from:
            self._recall(TickSpans.of(left, np.minimum(right, self._kept_from - 1)))

    def _recall(self, spans: TickSpans) -> None:
        for low, high in spans.without(self._recalled):
            for tuples in self.read_parts(low, high):
                self.load(tuples)
        self._recalled = self._recalled.with_spans(spans)

    @property
    def is_behind(self) -> bool:
        """Whether the stream took its step and the store did not yet."""
        return self._past.is_behind

    def read_parts(self, low: int, high: int) -> Iterable[Tuples]:
        """The tuples of the stream from tick low to tick high; before `apply` as they were before the step."""
        yield self.read(self.stream, low, high)

    def read(self, stream: Stream, low: int, high: int) -> Tuples:
        """The same of another stream that takes its step together with this one."""
        return self._past.read(stream, low, high)

    def refill(self) -> None:
        """Read all that is kept anew: the stream has other tuples now."""
        self.clear()
        self._recalled = TickSpans()
        for tuples in self.read_parts(self._kept_from, NEVER):
            self.load(tuples)

    def held(self, tuples: Tuples) -> Tuples:
        """Those of new tuples that belong to what is held."""
        if not len(tuples) or int(tuples.tick.min()) >= self._kept_from:
            return tuples
        return tuples.take((tuples.tick >= self._kept_from) | self._recalled.contains(tuples.tick))

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
    def clear(self) -> None:
        """Drop all tuples."""

    @abstractmethod
    def load(self, tuples: Tuples) -> None:
        """Hold more tuples of the stream."""

    @abstractmethod
    def take(self, change: Change) -> None:
        """Take in a change, as far as it belongs to what is held."""

    @abstractmethod
    def forget(self, before: int) -> None:
        """Drop what only ticks before `before` need."""

    def apply(self, clock: int) -> None:
        """Take in the change of the stream."""
        self._trim()
        change, held = self.stream.change, len(self)
        self.take(change)
        self._past.taken = change
        self.counts.rows_in += change.inserted_count + len(change.removed)
        self.counts.inserted += change.inserted_count
        self.counts.purged += max(0, held + change.inserted_count - len(self))

    def _trim(self) -> None:
        """Drop what open windows have left behind once that is half as long as what they reach."""
        if not self.recalls or self._recalled or len(self) <= thresholds.UNTRIMMED_ROWS:
            return
        open_from = min(reader.open_from for reader in self._readers)
        if 2 * (open_from - self._kept_from) > self.stream.watermark - open_from:
            self._drop_before(open_from)

    def _drop_before(self, tick: int) -> None:
        held = len(self)
        self._kept_from, self._recalled = max(self._kept_from, tick), TickSpans()
        self.forget(self._kept_from)
        self.counts.purged += held - len(self)

    def tidy(self) -> None:
        """Drop what no reader needs."""
        if self._needed < NEVER:
            self._drop_before(self._needed)
        self._needed = NEVER


class TickOrderedStore(WindowStore):
    """The tuples that open time windows reach, sorted by tick. Tuples of one tick are in no particular order."""

    title = "window state"

    def __init__(self, stream: Stream, level: int) -> None:
        super().__init__(stream, level)
        self.clear()

    def clear(self) -> None:
        self._buffer = TupleBuffer()
        self._sorted: Tuples | None = None

    def load(self, tuples: Tuples) -> None:
        self._buffer.add(tuples)
        self._sorted = None

    def describe(self) -> OperatorDescription:
        limit = None if self.reach is None else self.stream.max_tuples(self.reach)
        return OperatorDescription(self.title, "tuples by tick", describe_tuples("tuples", limit, self._buffer.all()))

    def __len__(self) -> int:
        return len(self._buffer)

    def take(self, change: Change) -> None:
        if len(change.removed):
            held = self._buffer.all()
            if held is not None:
                self._buffer.keep(~np.isin(held.ident, change.removed.ident))
            self._sorted = None
        inserted = self.held(change.inserted)
        if len(inserted):
            self.load(inserted)

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

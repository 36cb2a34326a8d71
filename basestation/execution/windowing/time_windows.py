"""TimeWindows: windows of time over a stream, and their tuples in order of entry (semantics 3.6, 6.4)."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.ticks import grid_at_or_after
from basestation.algebra.expression import Column
from basestation.algebra.vector import constant
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import NextDue
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import (
    NEVER,
    NO_WINDOWS,
    WindowBatch,
    expand_ranges,
    make_windows,
)
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.stream_windows import StreamWindows, find_touched
from basestation.execution.windowing.window_store import TickOrderedStore, WindowStore


class TimeWindows(StreamWindows):
    """TimeWindow and the landmark window of time: at each multiple w of `slide`, ticks w+begin to w+end.

    Offsets are in ticks. A landmark window has no `begin`: it goes back to `start`. The store has the tuples; in a join it
    is the store that the join probes, and no contents are read here.
    """

    def __init__(
        self,
        stream: Stream,
        columns: tuple[Column, ...],
        begin: int | None,
        end: int,
        slide: int,
        start: int,
        store: WindowStore,
    ) -> None:
        super().__init__(stream, columns)
        self.store = store
        self.begin, self.end, self.slide, self.start = begin, end, slide, start
        self._next = grid_at_or_after(start, slide)
        store.begin(self)
        store.widen(None if begin is None else 1 - begin)

    def describe(self) -> OperatorDescription:
        begin = "START" if self.begin is None else f"NOW{self.begin:+}" if self.begin else "NOW"
        end = f"NOW{self.end:+}" if self.end else "NOW"
        return OperatorDescription("time windows", f"FROM {begin} TO {end} SLIDE {self.slide} (ticks)")

    @property
    def max_rows(self) -> int | None:
        return None if self.begin is None else self.stream.max_tuples(self.end - self.begin + 1)

    @property
    def tick_slide(self) -> int | None:
        return self.slide

    @property
    def next_due(self) -> NextDue:
        return NextDue(self._next + self.stream.lag)

    def recall(self, given: WindowBatch) -> None:
        self.store.recall(given.left, given.right)

    def _held(self) -> Tuples | None:
        """All held tuples by tick; None where there never were any."""
        store = self.store
        if not isinstance(store, TickOrderedStore):
            raise TypeError(f"expected a store by tick, found {type(store).__name__}")
        return store.by_tick()

    @property
    def has_late_appends(self) -> bool:
        held = self._held()
        return held is not None and bool(held.append.any())

    @property
    def in_order(self) -> bool:
        held = self._held()
        if held is None:
            return True
        index = self.stream.index_of(held.ident)
        return bool((index[1:] > index[:-1]).all()) and bool((index > 0).all())

    def due(self, upto: int) -> WindowBatch:
        if upto < self._next:
            return NO_WINDOWS
        ticks = np.arange(self._next, upto + 1, self.slide)
        self._next = int(ticks[-1]) + self.slide
        return make_windows(ticks, constant(1, len(ticks)), self._left(ticks), ticks + self.end)

    def _left(self, w: IntArray) -> IntArray:
        return np.full_like(w, self.start) if self.begin is None else w + self.begin

    @property
    def may_be_dirty(self) -> bool:
        return self.stream.change.first - self.end <= self._next - self.slide

    def dirty(self, given: WindowBatch) -> BoolArray:
        return find_touched(self.stream.change.ticks(int(given.right.max(initial=-NEVER))), given.left, given.right)

    def apply(self) -> None:
        """Nothing: the store takes changes in."""

    def ordered_tuples(self, first: int) -> tuple[Tuples, IntArray] | None:
        held = self._held()
        return None if held is None else (held, held.tick)

    def content(self, given: WindowBatch) -> WindowContents | None:
        self.recall(given)
        held = self._held()
        if held is None:
            return None
        first = np.searchsorted(held.tick, given.left)
        counts = np.maximum(np.searchsorted(held.tick, given.right, "right") - first, 0)
        window, at = np.repeat(np.arange(len(given)), counts), expand_ranges(first, counts)
        if held.append.any():  # appended tuples are in windows from their arrival on (3.6)
            arrived = ~held.append[at] | (held.arrival[at] <= given.tick[window])
            window, at = window[arrived], at[arrived]
        found = held.take(at)
        return order_frame(found.with_columns(self.untagged(found)), window, len(given), self.stream)

    def covers(self, given: WindowBatch) -> list[CoverageRanges]:
        return self.stream.covers(given.left, given.right, given.tick)

    def forget(self, before: int, kept: WindowBatch) -> None:
        self.store.need(self.open_from)
        self.stream.need(min(before, self._earliest(kept)))

    def close(self) -> None:
        self.store.end(self)

    @property
    def open_from(self) -> int:
        """The first tick in the windows to come, and in the one before them, from which a converter tells the next one apart."""
        return self.start if self.begin is None else self._next - self.slide + self.begin

    def _earliest(self, kept: WindowBatch) -> int:
        """The first tick in the kept windows and in those to come."""
        return min(self.open_from, int(kept.left.min(initial=NEVER)))


def find_entry_order(tuples: Tuples, window: IntArray, stream: Stream) -> tuple[IntArray, IntArray | None]:
    """(the index of each tuple, NEVER where it has none yet; the order of entry within each window).

    The order is None where the tuples are in order of entry already.
    """
    index = stream.index_of(tuples.ident)
    key = np.where(index > 0, index, NEVER)
    waiting = index == 0
    if not waiting.any() and bool(((key[1:] > key[:-1]) | (window[1:] != window[:-1])).all()):
        return key, None
    arrival = np.where(waiting, tuples.arrival, 0)
    return key, np.lexsort((tuples.place, tuples.rank, tuples.part, arrival, key, window))


def order_frame(tuples: Tuples, window: IntArray, count: int, stream: Stream) -> WindowContents:
    """The contents of windows: tuple i is in window[i], each window in the order of its stream (6.4)."""
    key, order = find_entry_order(tuples, window, stream)
    if order is not None:
        tuples, window, key = tuples.take(order), window[order], key[order]
    second = tuples.site if stream.by_site else np.where(key == NEVER, NEVER + np.arange(len(key)), key)
    return WindowContents(count, window, tuples.columns, tuples.tick, second)

"""RowWindows: windows over the rows of a stream, numbered in order of entry (semantics 3.7, 3.9)."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.change import Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.integer_arrays import find_in, locate_ranges
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.tuple_state import describe_tuples
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import (
    NEVER,
    NO_WINDOWS,
    WindowBatch,
    concatenate_windows,
    expand_ranges,
    make_windows,
    merge_ranges,
)
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.row_store import RowStore
from basestation.execution.windowing.stream_windows import StreamWindows, find_touched


class RowWindows(StreamWindows):
    """RowWindow and the landmark window of rows: at each slide-th row, rows k+begin (or row 1) to k+end (3.7)."""

    def __init__(self, stream: Stream, columns: tuple[Column, ...], begin: int | None, end: int, slide: int) -> None:
        """Offsets are in rows; a landmark window has no `begin`."""
        super().__init__(stream, columns)
        self._latest = -NEVER  # the greatest tick of a row
        self.begin, self.end, self.slide = begin, end, slide
        self._arrivals = WatermarkBuffer()
        self._rows = RowStore(stream, self._arrivals)  # tuples that entered; their numbers count earlier ones too
        self._made = NO_WINDOWS  # windows that rows have made and that were not given
        self._count = 0  # rows from 1 on
        self._since, self._earlier = -NEVER, 0  # so many rows arrived before tick `_since`: they are 0, -1, …
        self._was_certain = -NEVER
        self._at: dict[int, int] = {}  # how many windows there are of each tick that may get more

    def describe(self) -> OperatorDescription:
        begin = "START" if self.begin is None else f"NOW{self.begin:+}" if self.begin else "NOW"
        end = f"NOW{self.end:+}" if self.end else "NOW"
        limit = None if self.max_rows is None else self.max_rows + self.slide
        state = describe_tuples("rows", limit, self._rows.held(), len(self._ids))
        return OperatorDescription("row windows", f"FROM {begin} TO {end} SLIDE {self.slide} ROWS", state)

    @property
    def max_rows(self) -> int | None:
        return None if self.begin is None else max(0, self.end - self.begin + 1)

    @property
    def tick_slide(self) -> int | None:
        return None

    @property
    def has_late_appends(self) -> bool:
        """False: a row is in its windows whenever it arrived."""
        return False

    @property
    def in_order(self) -> bool:
        """True: the number of a row is its position."""
        return True

    @property
    def next_due(self) -> NextDue:
        """When a row makes the next window, where it is known how many tuples that takes."""
        extent, more = self.stream.sole_extent, self.slide - 1 - self._count % self.slide - len(self._arrivals)
        return DUE_NOW if extent is None or len(self._made) or more < 0 else NextDue(NEVER, {extent: more})

    @property
    def may_be_dirty(self) -> bool:
        change = self.stream.change
        return len(change.removed) > 0 or (len(change.dirty_ticks) > 0 and int(change.dirty_ticks[0]) <= self._latest)

    def dirty(self, given: WindowBatch) -> BoolArray:
        """Windows with a corrected row, and those with a dirty tick in their range: their coverage may differ."""
        change = self.stream.change
        rows = self._rows.find(change.removed)
        mask = find_touched(np.sort(rows[rows >= self._rows.first]) - self._earlier, given.left, given.right)
        if len(change.dirty_ticks):
            bounds = self._rows.tick_bounds(given.left + self._earlier, given.right + self._earlier)
            near = np.flatnonzero(find_touched(change.dirty_ticks, *bounds))
            mask[near] |= find_touched(change.dirty_ticks, *self._ticks_of(given.take(near)))
        return mask

    def _ticks_of(self, given: WindowBatch) -> tuple[IntArray, IntArray]:
        """The least and the greatest tick of the rows of each window; an empty range without rows."""
        self.recall(given)
        low, high = self._rows.ticks(given.left + self._earlier, given.right + self._earlier)
        return np.where(low <= high, low, 1), np.where(low <= high, high, 0)

    def recall(self, given: WindowBatch) -> None:
        """Make sure that the rows of given windows are held."""
        self._rows.recall(given.left + self._earlier, given.right + self._earlier)

    def ordered_tuples(self, first: int) -> tuple[Tuples, IntArray] | None:
        held = self._rows.ordered(first + self._earlier)
        return None if held is None else (held[0], held[1] - self._earlier)

    def apply(self) -> None:
        change = self.stream.change
        self._rows.apply(change)
        self._arrivals.apply(change.inserted, change.is_new, change.removed)
        entering = self._arrivals.ready(self.stream.watermark)
        if entering is not None:
            self._rows.enter(entering)
            self._count_rows(entering.tick, entering.arrival)
        self._rows.trim(self._open_left() + self._earlier)

    def load_rows(self, change: Change, since: int | None = None) -> None:
        """Number the rows that are here: they count from the start of the query (1.1), or from tick `since` on (10.7)."""
        waiting = change.inserted.arrival > change.watermark
        self._arrivals.apply(change.inserted, waiting, change.removed)
        entered = change.inserted.take(~waiting).in_order()
        self._since = NEVER if since is None else since
        history = self.stream.row_history()
        if history is None:
            arrivals = entered.arrival
            self._rows.enter(entered)
        else:
            idents, arrivals = history
            order = np.argsort(idents)
            at, known = find_in(idents[order], entered.ident)
            numbers = 1 + order[at[known]]
            by_number = np.argsort(numbers)
            self._rows.load(entered.take(known).take(by_number), numbers[by_number], 1 + len(idents))
        self._count_rows(entered.tick, arrivals)
        self._since = -NEVER if since is None else since
        self._rows.trim(self._open_left() + self._earlier)

    def _count_rows(self, ticks: IntArray, arrivals: IntArray) -> None:
        """Make the windows of the next rows, which are in order of arrival."""
        self._latest = max(self._latest, int(ticks.max(initial=-NEVER)))
        earlier = int(np.searchsorted(arrivals, self._since))
        self._earlier += earlier
        if len(arrivals) > earlier:
            first = self._count + 1
            self._count += len(arrivals) - earlier
            self._made_by(arrivals[earlier:], first)

    def _made_by(self, arrivals: IntArray, first: int) -> None:
        """Make the windows of rows that entered; `first` is the number of the first of them."""
        self._at = {tick: count for tick, count in self._at.items() if tick > self._was_certain}
        self._was_certain = self.certain
        k = np.arange(first + -first % self.slide, self._count + 1, self.slide)
        ticks = arrivals[-first % self.slide :: self.slide]  # 3.9: the arrival of row k
        n = constant(1, len(ticks)) if (ticks[1:] > ticks[:-1]).all() else number_occurrences(ticks) + 1
        if self._at:
            n = n + np.array([self._at.get(tick, 0) for tick in ticks.tolist()], np.int64)
        recent = slice(int(np.searchsorted(ticks, self._was_certain, "right")), None)
        self._at.update(zip(ticks[recent].tolist(), n[recent].tolist(), strict=True))
        left = np.ones_like(k) if self.begin is None else k + self.begin
        self._made = concatenate_windows([self._made, make_windows(ticks, n, left, k + self.end)])

    def due(self, upto: int) -> WindowBatch:
        count = int(np.searchsorted(self._made.tick, upto, "right"))
        if count == len(self._made):
            given, self._made = self._made, NO_WINDOWS
            return given
        given, self._made = self._made.take(slice(0, count)), self._made.take(slice(count, None))
        return given

    def numbered(self, given: WindowBatch) -> tuple[IntArray, dict[int, Vector]] | None:
        """(numbers, columns) of the rows of windows, each row once, in order; None where there are none."""
        self.recall(given)
        held = self.ordered_tuples(int(given.left.min(initial=NEVER)))
        if held is None:
            return None
        rows, numbers = held
        _, at = merge_ranges(*locate_ranges(numbers, given.left, given.right))
        return numbers[at], self.untagged(rows.take(at))

    def content(self, given: WindowBatch) -> WindowContents | None:
        self.recall(given)
        held = self.ordered_tuples(int(given.left.min(initial=NEVER)))
        if held is None:
            return None
        rows, numbers = held
        first = np.searchsorted(numbers, given.left)
        counts = np.maximum(np.searchsorted(numbers, given.right, "right") - first, 0)
        tuples = rows.take(expand_ranges(first, counts))
        second = tuples.site if self.stream.by_site else self.stream.index_of(tuples.ident)
        window = np.repeat(np.arange(len(given)), counts)
        return WindowContents(len(given), window, self.untagged(tuples), tuples.tick, second)

    def covers(self, given: WindowBatch) -> list[CoverageRanges]:
        empty = self.empty_covers()
        if not any(each.intake for each in empty):
            return empty
        return self.stream.covers(*self._ticks_of(given), given.tick)

    def final(self, before: int, given: WindowBatch) -> BoolArray:
        """Rows have ticks in any order: a tuple stamped ahead may still change when rows after it no longer do."""
        open_from = self.stream.open_from(before)
        return (given.right + self._earlier < self._rows.first_at(open_from)) & (given.tick < open_from)

    def _next_left(self) -> int:
        """The first row that windows to come can reach."""
        if self.begin is None:
            return 1
        return self._count - self._count % self.slide + self.slide + self.begin

    def _open_left(self) -> int:
        """The first row in windows that are not given yet, and in the one before them, from which a converter tells the next apart."""
        first = min(self._next_left(), int(self._made.left.min(initial=NEVER)))
        return first if self.begin is None else first - self.slide

    def forget(self, before: int, kept: WindowBatch) -> None:
        """Drop the rows that no window can reach, and those that only kept windows reach, which the stream has, too."""
        first = min(self._next_left(), *(int(of.left.min(initial=NEVER)) for of in (kept, self._made)))
        self._rows.forget(first + self._earlier, self._open_left() + self._earlier)
        self.stream.need(min(before, self._rows.least_tick))

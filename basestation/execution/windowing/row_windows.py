"""RowWindows: windows over the rows of a stream, numbered in order of entry (semantics 3.7, 3.9)."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.change import Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.integer_arrays import is_consecutive
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuple_state import describe_tuples
from basestation.execution.columns.tuples import TupleBuffer, Tuples
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import (
    NEVER,
    NO_WINDOWS,
    WindowBatch,
    concatenate_windows,
    expand_ranges,
    make_windows,
)
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.stream_windows import StreamWindows, find_touched


class RowWindows(StreamWindows):
    """RowWindow and the landmark window of rows: at each slide-th row, rows k+begin (or row 1) to k+end (3.7)."""

    def __init__(self, stream: Stream, columns: tuple[Column, ...], begin: int | None, end: int, slide: int) -> None:
        """Offsets are in rows; a landmark window has no `begin`."""
        super().__init__(stream, columns)
        self._latest = -NEVER  # the greatest tick of a row
        self.begin, self.end, self.slide = begin, end, slide
        self._arrivals = WatermarkBuffer()
        self._rows = TupleBuffer()  # tuples that entered
        self._numbered: tuple[Tuples, IntArray] | None = None  # the rows and their numbers, until these change
        self._numbers = TupleIndexes()  # by tuple number the row, counting earlier ones too; 0: it is no row
        self._first = 1  # rows before that one were dropped
        self._made = NO_WINDOWS  # windows that rows have made and that were not given
        self._count = 0  # rows from 1 on
        self._since, self._earlier = -NEVER, 0  # so many rows arrived before tick `_since`: they are 0, -1, …
        self._was_certain = -NEVER
        self._at: dict[int, int] = {}  # how many windows there are of each tick that may get more

    def describe(self) -> OperatorDescription:
        begin = "START" if self.begin is None else f"NOW{self.begin:+}" if self.begin else "NOW"
        end = f"NOW{self.end:+}" if self.end else "NOW"
        rows, revised = self.max_rows, self.stream.max_tuples(self.horizon) if self.horizon else 0
        limit = None if rows is None or revised is None else rows + revised
        state = describe_tuples("rows", limit, self._rows.all(), len(self._ids))
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
        rows = self._numbers.of(change.removed.ident)
        mask = find_touched(np.sort(rows[rows >= self._first]) - self._earlier, given.left, given.right)
        if len(change.dirty_ticks):
            mask |= find_touched(change.dirty_ticks, *self._ticks_of(given))
        return mask

    def _ticks_of(self, given: WindowBatch) -> tuple[IntArray, IntArray]:
        """The least and the greatest tick of the rows of each window; an empty range without rows."""
        low, high = np.ones(len(given), np.int64), np.zeros(len(given), np.int64)
        held = self.ordered_tuples()
        if held is None or not len(given):
            return low, high
        rows, numbers = held
        first = np.searchsorted(numbers, given.left)
        end = np.searchsorted(numbers, given.right, "right")
        nonempty = first < end
        edges = np.stack([first[nonempty], end[nonempty]], axis=1).ravel()
        ticks = np.append(rows.tick, 0)  # an edge may lie behind the last row
        low[nonempty] = np.minimum.reduceat(ticks, edges)[::2]
        high[nonempty] = np.maximum.reduceat(ticks, edges)[::2]
        return low, high

    def _held(self) -> tuple[Tuples, IntArray] | None:
        """(the rows as they came, their numbers); None where there never were any."""
        rows = self._rows.all()
        if rows is None:
            return None
        if self._numbered is None or rows is not self._numbered[0]:
            self._numbered = rows, self._numbers.of(rows.ident) - self._earlier
        return self._numbered

    def ordered_tuples(self) -> tuple[Tuples, IntArray] | None:
        held = self._held()
        if held is None:
            return None
        rows, numbers = held
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            rows, numbers = rows.take(order), numbers[order]
        return rows, numbers

    def apply(self) -> None:
        change = self.stream.change
        if len(change.removed) and (held := self._rows.all()) is not None:
            self._rows.keep(~np.isin(held.ident, change.removed.ident))
            was_row = self._numbers.of(change.inserted.ident) >= self._first
            self._rows.add(change.inserted.take(was_row & ~change.is_new))  # a replacement keeps its row (12.1)
        self._arrivals.apply(change.inserted, change.is_new, change.removed)
        entering = self._arrivals.ready(self.stream.watermark)
        if entering is not None:
            self._enter(entering)

    def load_rows(self, change: Change, since: int | None = None) -> None:
        """Number the rows that are here: they count from the start of the query (1.1), or from tick `since` on (10.7)."""
        waiting = change.inserted.arrival > change.watermark
        self._arrivals.apply(change.inserted, waiting, change.removed)
        entered = change.inserted.take(~waiting).in_order()
        self._hold(entered)
        self._since = NEVER if since is None else since
        self._number(*(self.stream.row_history() or (entered.ident, entered.arrival)))
        self._since = -NEVER if since is None else since

    def _enter(self, tuples: Tuples) -> None:
        self._hold(tuples)
        self._number(tuples.ident, tuples.arrival)

    def _hold(self, tuples: Tuples) -> None:
        self._latest = max(self._latest, int(tuples.tick.max(initial=-NEVER)))
        self._rows.add(tuples)

    def _number(self, idents: IntArray, arrivals: IntArray) -> None:
        """Give numbers to the next rows, in order."""
        self._numbered = None
        if len(idents):
            self._numbers.enter(idents, is_consecutive(idents))
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

    def numbered(self, low: int, high: int) -> tuple[IntArray, dict[int, Vector]] | None:
        """(numbers, columns) of the rows from one number to another; None where there never were any."""
        held = self.ordered_tuples()
        if held is None:
            return None
        rows, numbers = held
        there = slice(*np.searchsorted(numbers, (low, high + 1)).tolist())
        return numbers[there], self.untagged(rows.take(there))

    def content(self, given: WindowBatch) -> WindowContents | None:
        held = self.ordered_tuples()
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
        held = self._held()
        if held is not None:
            rows, numbers = held
            open_rows = rows.tick >= open_from
            if open_rows.any():
                return (given.right < int(numbers[open_rows].min())) & (given.tick < open_from)
        return given.tick < open_from

    def _next_left(self) -> int:
        """The first row that windows to come can reach."""
        if self.begin is None:
            return 1
        return self._count - self._count % self.slide + self.slide + self.begin

    def forget(self, before: int, kept: WindowBatch) -> None:
        """Keep the rows that the kept windows and those to come can reach; the stream keeps the ticks of these rows."""
        held = self._held()
        if held is None:
            self.stream.need(before)
            return
        first = min(self._next_left(), *(int(of.left.min(initial=NEVER)) for of in (kept, self._made)))
        self._first = max(self._first, first + self._earlier)
        rows, self._numbered = held[0].take(held[1] >= first), None
        self._rows.keep(held[1] >= first)
        self.stream.need(min(before, int(rows.tick.min(initial=NEVER))))
        self._numbers.drop_before(min(self.stream.first, int(rows.ident.min(initial=NEVER))))

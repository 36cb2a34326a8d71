"""Row store: the rows of a stream that open windows reach, by number.

A window that was answered may be revised long after. Rows that only such windows reach are not held: they are read from the stream
again, which ends in the log that all queries share. A segment stands for consecutive rows that were dropped. Its rows stand in the
stream in the order of their indexes, so the ranges of its ticks and indexes are enough to find them. Two kinds of rows of a segment
are exceptions: a row that entered out of that order, or far from its tick, stays held; the number of a row that was taken back is a gap.

    rows      --[ segment ][ segment ][ segment ][ segment ][ segment ][ held
    recalled               [ rows of a window that is revised ]
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution import thresholds
from basestation.execution.columns.change import NO_TICKS, Change
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.tuples import TupleBuffer, Tuples, concatenate_tuples
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.window_store import StreamReader

NO_ROW = 0
"""The number of a tuple that is no row: rows are numbered from 1."""
_FIRST, _END, _LOW, _HIGH, _LEAST, _GREATEST = range(6)
"""The columns of a segment: the numbers of its rows from _FIRST to before _END, and the ranges of their ticks and indexes."""

NumberedRows = tuple[Tuples, IntArray]
"""Rows, and their numbers, ascending."""


class RowStore:
    """Rows by number; tuples that wait to become rows are in `arrivals`. The column `place` of a held row is its number."""

    def __init__(self, stream: Stream, arrivals: WatermarkBuffer) -> None:
        self.stream = stream
        self.first = 1
        """Rows with smaller numbers were dropped for good."""
        self._arrivals = arrivals
        self._reader = StreamReader(stream)
        self._next = self._kept_from = 1  # rows from the second number on are all held
        self._held = TupleBuffer()  # those, in no particular order
        self._exceptions = TupleBuffer()  # rows of segments that stay held
        self._recalled = TupleBuffer()  # rows of segments that were read again
        self._segments = GrowableArray(np.empty((0, 6), np.int64))
        self._is_read = np.zeros(0, bool)  # which of the first segments were read again
        self._gaps = NO_TICKS  # the numbers of rows that were taken back, ascending
        self._index = 0  # the greatest index of a regular row in a segment
        self._ordered: dict[bool, NumberedRows | None] = {}  # by whether it has rows before `_kept_from`

    # --- rows ----------------------------------------------------------------------------------------------------------

    def held(self) -> Tuples | None:
        """All rows that are held, in no particular order; None if there are none."""
        return _concatenate((self._exceptions, self._recalled, self._held))

    def ordered(self, first: int) -> NumberedRows | None:
        """(rows, their numbers) with all that are held from number `first` on; None if there are none."""
        with_past = first < self._kept_from and bool(len(self._exceptions) or len(self._recalled))
        if with_past not in self._ordered:
            rows = self.held() if with_past else self._held.all()
            if rows is not None and (rows.place[1:] < rows.place[:-1]).any():
                rows = rows.take(np.argsort(rows.place))
            self._ordered[with_past] = None if rows is None else (rows, rows.place)
        return self._ordered[with_past]

    def enter(self, tuples: Tuples) -> None:
        """Give the next numbers to tuples, in this order."""
        following = self._next + len(tuples)
        self.load(tuples, np.arange(self._next, following), following)

    def load(self, tuples: Tuples, numbers: IntArray, following: int) -> None:
        """Add the rows with some of the next numbers. The other ones before the number `following` were taken back."""
        gone = np.ones(following - self._next, bool)
        gone[numbers - self._next] = False
        if gone.any():
            self._gaps = np.concatenate([self._gaps, self._next + np.flatnonzero(gone)])
        self._next = following
        self._held.add(replace(tuples, place=numbers))
        self._ordered.clear()

    def find(self, tuples: Tuples) -> IntArray:
        """The number of the row that each tuple of the stream is; NO_ROW if it is none."""
        self._read_segments(self._find_segments(self.stream.index_of(tuples.ident)))
        held, numbers = self.held(), np.full(len(tuples), NO_ROW)
        if held is not None:
            order = np.argsort(held.ident)
            at, known = find_in(held.ident[order], tuples.ident)
            numbers[known] = held.place[order[at[known]]]
        return numbers

    def apply(self, change: Change) -> None:
        """Take in a change: a row that was corrected keeps its number (12.1)."""
        if len(change.removed):
            numbers = self.find(change.removed)
            order = np.argsort(change.removed.ident)
            corrected = change.inserted.take(~change.is_new)
            at, known = find_in(change.removed.ident[order], corrected.ident)
            number = np.full(len(corrected), NO_ROW)
            number[known] = numbers[order[at[known]]]
            corrected = replace(corrected, place=number)
            for buffer in (self._held, self._exceptions, self._recalled):
                if (rows := buffer.all()) is not None:
                    stays = ~np.isin(rows.ident, change.removed.ident)
                    buffer.keep(stays)
                    buffer.add(corrected.take(np.isin(number, rows.place[~stays])))
            self._gaps = np.union1d(self._gaps, np.setdiff1d(numbers[numbers != NO_ROW], number))
            self._ordered.clear()
        self._reader.taken = change

    # --- segments ------------------------------------------------------------------------------------------------------

    def recall(self, left: IntArray, right: IntArray) -> None:
        """Make sure that the rows with numbers left[i] to right[i] are held until rows are dropped again."""
        if not len(self._segments) or int(left.min(initial=NEVER)) >= self._kept_from:
            return
        segments = self._segments.values
        first = np.searchsorted(segments[:, _END], left, "right")
        end = np.searchsorted(segments[:, _FIRST], right, "right")
        nonempty = (left <= right) & (first < end)
        begun = np.bincount(first[nonempty], minlength=len(segments) + 1)
        ended = np.bincount(end[nonempty], minlength=len(segments) + 1)
        self._read_segments(np.cumsum(begun - ended)[:-1] > 0)

    def _find_segments(self, indexes: IntArray) -> BoolArray:
        """A mask of the segments that may have rows with some indexes."""
        segments = self._segments.values
        mask = np.zeros(len(segments), bool)
        if len(segments):
            at = np.minimum(np.searchsorted(segments[:, _GREATEST], indexes), len(segments) - 1)
            mask[at[(segments[at, _LEAST] <= indexes) & (indexes <= segments[at, _GREATEST])]] = True
        return mask

    def _read_segments(self, which: BoolArray) -> None:
        """Read the regular rows of segments from the stream, of those that were not read again yet."""
        was_read = np.zeros(len(which), bool)
        was_read[: len(self._is_read)] = self._is_read
        which = which & ~was_read
        if not which.any():
            return
        self._is_read = was_read | which
        others = _concatenate((self._exceptions, self._held))
        idents, numbers = (NO_TICKS, NO_TICKS) if others is None else (others.ident, others.place)
        idents, numbers = np.append(idents, self._arrivals.idents), np.append(numbers, self._gaps)
        for first, end, low, high, least, greatest in self._segments.values[which].tolist():
            found = self._reader.read(self.stream, low, high)
            index = self.stream.index_of(found.ident)
            regular = np.flatnonzero((least <= index) & (index <= greatest) & ~np.isin(found.ident, idents))
            regular = regular[np.argsort(index[regular])]
            number = np.arange(first, end)
            number = number[~np.isin(number, numbers)]
            if len(number) != len(regular):
                raise AssertionError(f"expected {len(number)} rows from {first} to {end - 1}, found {len(regular)}")
            self._recalled.add(replace(found.take(regular), place=number))
        self._ordered.clear()

    def trim(self, first: int) -> None:
        """Drop the rows before a number once they are half as many as the others."""
        if self._is_read.any() or len(self._held) <= thresholds.UNTRIMMED_ROWS:
            return
        if 2 * (first - self._kept_from) > self._next - first:
            self._drop(first)

    def forget(self, first: int, open_from: int) -> None:
        """Drop the rows before `first` for good, and those before `open_from` until a window asks for them."""
        self._recalled, self._is_read = TupleBuffer(), np.zeros(0, bool)
        self.first = max(self.first, first)
        self._kept_from = max(self._kept_from, min(first, self._next))
        self._held.forget("place", first)
        self._segments.drop(int(np.searchsorted(self._segments.values[:, _END], first, "right")))
        # The first segment is counted from its start when it is read again, also before row `first`.
        counted = min(first, int(self._segments.values[:, _FIRST].min(initial=NEVER)))
        self._gaps = self._gaps[np.searchsorted(self._gaps, counted) :].copy()
        if len(self._exceptions):
            self._forget_exceptions(counted)
        self._ordered.clear()
        self._drop(open_from)

    def _forget_exceptions(self, first: int) -> None:
        """Drop those before a number, unless a segment that stays has rows with greater numbers and smaller indexes."""
        rows = _concatenate((self._exceptions,))
        least = int(self._segments.values[:, _LEAST].min(initial=NEVER))
        if rows is not None:
            self._exceptions.keep((rows.place >= first) | (self.stream.index_of(rows.ident) >= least))

    def _drop(self, upto: int) -> None:
        """Make segments of the rows before a number."""
        upto, held = min(upto, self._next), self.ordered(self._kept_from)
        if upto <= self._kept_from:
            return
        for begin in range(self._kept_from, upto, thresholds.SEGMENT_ROWS):
            end = min(begin + thresholds.SEGMENT_ROWS, upto)
            rows = held and held[0].take(slice(*np.searchsorted(held[1], (begin, end)).tolist()))
            self._add_segment(begin, end, rows)
        self._held.forget("place", upto)
        self._kept_from = upto
        self._ordered.clear()

    def _add_segment(self, begin: int, end: int, rows: Tuples | None) -> None:
        """Make a segment of consecutive rows, or add them to the last one; exceptions stay held."""
        made = [begin, end, NEVER, -NEVER, NEVER, self._index]
        if rows is not None and len(rows):
            index = self.stream.index_of(rows.ident)
            is_regular = (index > 0) & _is_near(rows)
            is_regular[is_regular] = _ascends(index[is_regular], self._index)
            self._exceptions.add(rows.take(~is_regular))
            if is_regular.any():
                ticks, index = rows.tick[is_regular], index[is_regular]
                self._index = int(index[-1])
                made[_LOW:] = int(ticks.min()), int(ticks.max()), int(index[0]), self._index
        if len(self._segments):
            last = self._segments.values[-1].tolist()
            if end - last[_FIRST] <= thresholds.SEGMENT_ROWS:
                self._segments.cut(len(self._segments) - 1)
                made = [(min, max)[at % 2](last[at], made[at]) for at in range(6)]
        self._segments.extend([made])

    # --- ticks ---------------------------------------------------------------------------------------------------------

    def tick_bounds(self, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        """Ticks before and after which no row left[i] to right[i] has one; an empty range without rows."""
        segments = self._segments.values
        first = np.searchsorted(segments[:, _END], left, "right")
        end = np.searchsorted(segments[:, _FIRST], right, "right")
        low, high = _find_extremes(first, end, segments[:, _LOW], segments[:, _HIGH])
        exact_low, exact_high = self.ticks(left, right)
        return np.minimum(low, exact_low), np.maximum(high, exact_high)

    def ticks(self, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        """The least and the greatest tick of the held rows left[i] to right[i]; an empty range without rows."""
        held = self.ordered(int(left.min(initial=NEVER)))
        if held is None:
            return np.full(len(left), NEVER), np.full(len(left), -NEVER)
        rows, numbers = held
        first, end = np.searchsorted(numbers, left), np.searchsorted(numbers, right, "right")
        return _find_extremes(first, end, rows.tick, rows.tick)

    def first_at(self, tick: int) -> int:
        """A number before which no row has a tick from `tick` on; NEVER if no row has."""
        segments = self._segments.values
        found = [int(segments[segments[:, _HIGH] >= tick, _FIRST].min(initial=NEVER))]
        for buffer in (self._exceptions, self._held):
            if (rows := buffer.all()) is not None:
                found.append(int(rows.place[rows.tick >= tick].min(initial=NEVER)))
        return min(found)

    @property
    def least_tick(self) -> int:
        """A tick before which no row has one; NEVER without rows."""
        held = min(buffer.least("tick", NEVER) for buffer in (self._exceptions, self._held))
        return min(held, int(self._segments.values[:, _LOW].min(initial=NEVER)))


def _concatenate(buffers: Sequence[TupleBuffer]) -> Tuples | None:
    parts = [part for buffer in buffers if (part := buffer.all()) is not None]
    return concatenate_tuples(parts) if parts else None


def _ascends(indexes: IntArray, after: int) -> BoolArray:
    """A mask of the indexes that are greater than all before them, and than `after`."""
    greatest = np.maximum.accumulate(np.append(after, indexes))
    return np.asarray(indexes > greatest[:-1])


def _is_near(rows: Tuples) -> BoolArray:
    """A mask of the rows whose ticks are near the arrivals of all rows; others would make the range of ticks long."""
    low, high = int(rows.arrival[0]), int(rows.arrival[-1])
    return np.asarray((2 * low - high <= rows.tick) & (rows.tick <= 2 * high - low))


def _find_extremes(first: IntArray, end: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """The least of low[first[i]:end[i]] and the greatest of high[first[i]:end[i]]; NEVER and -NEVER where these are empty."""
    least, greatest = np.full(len(first), NEVER), np.full(len(first), -NEVER)
    some = first < end
    if some.any():
        edges = np.stack([first[some], end[some]], axis=1).ravel()
        least[some] = np.minimum.reduceat(np.append(low, NEVER), edges)[::2]
        greatest[some] = np.maximum.reduceat(np.append(high, -NEVER), edges)[::2]
    return least, greatest

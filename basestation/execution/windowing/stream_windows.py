"""Windowing: the inputs of a product over streams: sequences of windows, and what is in them.

Every input answers the same questions, for many windows at once: which windows are there up to a tick (`due`), which of
those that were answered look different after a change (`dirty`), what is in them (`content`), and what they cover.
`apply` takes the change in.
"""

from collections import Counter

import numpy as np

from acquisition.ticks import grid_at_or_after
from basestation.algebra.vector import constant
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.integer_arrays import is_consecutive
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import TupleBuffer
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import (
    NEVER,
    NO_WINDOWS,
    concatenate_windows,
    expand_ranges,
    make_windows,
)
from basestation.execution.columns.window_contents import WindowContents


class StreamWindows:
    """What windows over a stream have in common. Tuples lose their tags when they enter a window (1.7)."""

    next_due = DUE_NOW  # for how long none is due

    def __init__(self, stream, columns):
        self.stream, self.level = stream, stream.level
        self._ids = Counter(column.id for column in columns)  # by how many ask for them

    def show(self, view):
        """A View of the windows: what it asks for is told until it is let go of. [(by whom, what)]"""
        self._ids.update(view.asked)
        return [(self, view.asked)]

    def release(self, asked):
        self._ids -= Counter(asked)

    def close(self):
        """Nobody asks for its windows any more."""

    def untagged(self, tuples):
        return {id: tuples.columns[id] for id in self._ids}

    @property
    def watermark(self):
        return self.stream.watermark

    @property
    def certain(self):
        """How far no other windows can come any more, whatever is answered early (11)."""
        return self.stream.certain

    def empty_covers(self):
        return self.stream.empty_covers()

    def final(self, before, given):
        """Of which windows no tuple can change where no tick from `before` on of the extents can."""
        return given.right < self.stream.open_from(before)

    def empty(self, count):
        """A Frame of so many windows without tuples."""
        change = self.stream.change or self.stream.all()
        tuples = change.inserted.take(slice(0, 0))
        none = np.empty(0, np.int64)
        return WindowContents(count, none, self.untagged(tuples), none, none)


class TimeWindows(StreamWindows):
    """TimeWindow and the landmark window of time: at each multiple of slide, ticks w+begin (or the start) to w+end.

    `store` has the tuples; in a join it is the one that the join probes, and nobody asks for contents.
    """

    def __init__(self, stream, columns, begin, end, slide, start, store):
        super().__init__(stream, columns)
        self.store = store
        self.begin, self.end, self.slide, self.start = begin, end, slide, start
        self._next = grid_at_or_after(start, slide)
        store.begin(self._earliest(NO_WINDOWS))

    @property
    def next_due(self):
        return NextDue(self._next + self.stream.lag)

    @property
    def has_late_appends(self):
        """Whether tuples are in windows from their arrival on (3.6)."""
        held = self.store.by_tick()
        return held is not None and bool(held.append.any())

    @property
    def in_order(self):
        """Whether the order of a window's tuples is that of their ticks (6.4)."""
        held = self.store.by_tick()
        index = self.stream.index_of(held.ident)
        return bool((index[1:] > index[:-1]).all()) and bool((index > 0).all())

    def due(self, upto):
        """The windows up to a tick that were not given before."""
        if upto < self._next:
            return NO_WINDOWS
        ticks = np.arange(self._next, upto + 1, self.slide)
        self._next = int(ticks[-1]) + self.slide
        return make_windows(ticks, constant(1, len(ticks)), self._left(ticks), ticks + self.end)

    def _left(self, w):
        return np.full_like(w, self.start) if self.begin is None else w + self.begin

    @property
    def may_be_dirty(self):
        """Whether the stream's change reaches back into a window that was given: seldom, and then `dirty` says which."""
        return self.stream.change.first - self.end <= self._next - self.slide

    def dirty(self, given):
        """A mask of the windows that hold a tick of the stream's change."""
        return find_touched(self.stream.change.ticks(int(given.right.max(initial=-NEVER))), given.left, given.right)

    def apply(self):
        """The store takes changes in."""

    def ordered_tuples(self):
        """(all tuples that are held, the places by which windows hold them, ascending): these are their ticks."""
        held = self.store.by_tick()
        return held, None if held is None else held.tick

    def content(self, given):
        """A Frame with the tuples of these windows, numbered as they are given."""
        held = self.store.by_tick()
        if held is None:
            return None
        first = np.searchsorted(held.tick, given.left)
        counts = np.maximum(np.searchsorted(held.tick, given.right, "right") - first, 0)
        window, at = np.repeat(np.arange(len(given)), counts), expand_ranges(first, counts)
        if held.append.any():  # those are in windows from their arrival on (3.6)
            arrived = ~held.append[at] | (held.arrival[at] <= given.tick[window])
            window, at = window[arrived], at[arrived]
        found = held.take(at)
        return order_frame(found.with_columns(self.untagged(found)), window, len(given), self.stream)

    def covers(self, given):
        return self.stream.covers(given.left, given.right, given.tick)

    def forget(self, before, kept):
        """Keep what the kept windows and those to come can reach."""
        earliest = self._earliest(kept)
        self.store.need(earliest)
        self.stream.need(min(before, earliest))

    def _earliest(self, kept):
        """The first tick that the kept windows and those to come can reach."""
        coming = self.start if self.begin is None else self._next + self.begin
        return min(coming, int(kept.left.min(initial=NEVER)))


def find_touched(ticks, left, right):
    """Which ranges hold one of some ascending ticks."""
    return np.searchsorted(ticks, left) < np.searchsorted(ticks, right, "right")


def find_entry_order(tuples, window, stream):
    """(the indexes of tuples, NEVER where they wait; the order in which they enter, in each window; None where that is theirs)."""
    index = stream.index_of(tuples.ident)
    key = np.where(index > 0, index, NEVER)
    waiting = index == 0
    if not waiting.any() and bool(((key[1:] > key[:-1]) | (window[1:] != window[:-1])).all()):
        return key, None
    arrival = np.where(waiting, tuples.arrival, 0)
    return key, np.lexsort((tuples.place, tuples.rank, tuples.part, arrival, key, window))


def order_frame(tuples, window, count, stream):
    """A Frame of tuples in their windows, each window in the order of its stream (6.4)."""
    key, order = find_entry_order(tuples, window, stream)
    if order is not None:
        tuples, window, key = tuples.take(order), window[order], key[order]
    second = tuples.site if stream.by_site else np.where(key == NEVER, NEVER + np.arange(len(key)), key)
    return WindowContents(count, window, tuples.columns, tuples.tick, second)


class RowWindows(StreamWindows):
    """RowWindow and the landmark window of rows: at each slide-th row, rows k+begin (or row 1) to k+end (3.7)."""

    has_late_appends, in_order = (
        False,
        True,
    )  # a row is in its windows whenever it arrived, and its number tells its place

    def __init__(self, stream, columns, begin, end, slide):
        super().__init__(stream, columns)
        self._latest = -NEVER  # the greatest tick of a row
        self.begin, self.end, self.slide = begin, end, slide
        self._arrivals = WatermarkBuffer()
        self._rows = TupleBuffer()  # tuples that entered
        self._numbered = None, None  # they, as they were when their numbers were last asked for, and these
        self._numbers = TupleIndexes()  # by ident the row, counting the earlier ones too; 0: it is none
        self._first = 1  # rows before that one were let go of
        self._made = NO_WINDOWS  # windows that rows have made and that were not given
        self._count = 0  # rows from 1 on
        self._since, self._earlier = -NEVER, 0  # how many rows arrived before it: they are 0, -1, …
        self._was_certain = -NEVER
        self._at = {}  # how many windows there are of each tick that may get more

    @property
    def next_due(self):
        """Until a row makes the next window, where it is known how many tuples that takes."""
        extent, more = self.stream.sole_extent, self.slide - 1 - self._count % self.slide - len(self._arrivals)
        return DUE_NOW if extent is None or len(self._made) or more < 0 else NextDue(NEVER, {extent: more})

    @property
    def may_be_dirty(self):
        change = self.stream.change
        return len(change.removed) > 0 or (len(change.dirty_ticks) > 0 and int(change.dirty_ticks[0]) <= self._latest)

    def dirty(self, given):
        """Windows with a row that was corrected; and those whose range of ticks was touched, for their coverage."""
        change = self.stream.change
        rows = self._numbers.of(change.removed.ident)
        mask = find_touched(np.sort(rows[rows >= self._first]) - self._earlier, given.left, given.right)
        if len(change.dirty_ticks):
            mask |= find_touched(change.dirty_ticks, *self._ticks_of(given))
        return mask

    def _ticks_of(self, given):
        """The least and the greatest tick of the rows of each window; an empty range without rows."""
        low, high = np.ones(len(given), np.int64), np.zeros(len(given), np.int64)
        rows, numbers = self.ordered_tuples()
        if rows is None or not len(given):
            return low, high
        first = np.searchsorted(numbers, given.left)
        behind = np.searchsorted(numbers, given.right, "right")
        some = first < behind
        edges = np.stack([first[some], behind[some]], axis=1).ravel()
        ticks = np.append(rows.tick, 0)  # an edge may lie behind the last row
        low[some] = np.minimum.reduceat(ticks, edges)[::2]
        high[some] = np.maximum.reduceat(ticks, edges)[::2]
        return low, high

    def _held(self):
        rows = self._rows.all()
        if rows is not self._numbered[0]:
            self._numbered = rows, self._numbers.of(rows.ident) - self._earlier
        return self._numbered

    def ordered_tuples(self):
        """(the rows in their order, their numbers)."""
        rows, numbers = self._held()
        if rows is not None and (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            rows, numbers = rows.take(order), numbers[order]
        return rows, numbers

    def apply(self):
        change = self.stream.change
        if len(change.removed) and self._rows.all() is not None:
            held = self._rows.all()
            self._rows.keep(~np.isin(held.ident, change.removed.ident))
            was_row = self._numbers.of(change.inserted.ident) >= self._first
            self._rows.add(change.inserted.take(was_row & ~change.is_new))  # a replacement keeps its row (12.1)
        self._arrivals.apply(change.inserted, change.is_new, change.removed)
        entering = self._arrivals.ready(self.stream.watermark)
        if entering is not None:
            self._enter(entering)

    def load_rows(self, change, since=None):
        """Rows count from the query's start (1.1); where that is `since`, not now, from the first arrival then (10.7)."""
        waiting = change.inserted.arrival > change.watermark
        self._arrivals.apply(change.inserted, waiting, change.removed)
        entered = change.inserted.take(~waiting).in_order()
        self._hold(entered)
        self._since = NEVER if since is None else since
        self._number(*(self.stream.row_history() or (entered.ident, entered.arrival)))
        self._since = -NEVER if since is None else since

    def _enter(self, tuples):
        self._hold(tuples)
        self._number(tuples.ident, tuples.arrival)

    def _hold(self, tuples):
        self._latest = max(self._latest, int(tuples.tick.max(initial=-NEVER)))
        self._rows.add(tuples)

    def _number(self, idents, arrivals):
        """The next rows, in order."""
        self._numbered = None, None
        if len(idents):
            self._numbers.enter(idents, is_consecutive(idents))
        early = int(np.searchsorted(arrivals, self._since))
        self._earlier += early
        if len(arrivals) > early:
            first = self._count + 1
            self._count += len(arrivals) - early
            self._made_by(arrivals[early:], first)

    def _made_by(self, arrivals, first):
        """Note the windows that rows make as they enter; `first` is the number of the first of them."""
        self._at = {tick: count for tick, count in self._at.items() if tick > self._was_certain}
        self._was_certain = self.certain
        k = np.arange(first + -first % self.slide, self._count + 1, self.slide)
        ticks = arrivals[-first % self.slide :: self.slide]  # 3.9: the arrival of row k
        n = constant(1, len(ticks)) if (ticks[1:] > ticks[:-1]).all() else number_occurrences(ticks) + 1
        if self._at:
            n = n + np.array([self._at.get(tick, 0) for tick in ticks.tolist()], np.int64)
        recent = slice(int(np.searchsorted(ticks, self._was_certain, "right")), None)
        self._at |= zip(ticks[recent].tolist(), n[recent].tolist(), strict=True)
        left = np.ones_like(k) if self.begin is None else k + self.begin
        self._made = concatenate_windows([self._made, make_windows(ticks, n, left, k + self.end)])

    def due(self, upto):
        count = int(np.searchsorted(self._made.tick, upto, "right"))
        if count == len(self._made):
            given, self._made = self._made, NO_WINDOWS
            return given
        given, self._made = self._made.take(slice(0, count)), self._made.take(slice(count, None))
        return given

    def numbered(self, low, high):
        """(numbers, columns) of the rows from one number to another; None where there never were any."""
        rows, numbers = self.ordered_tuples()
        if rows is None:
            return None
        there = slice(*np.searchsorted(numbers, (low, high + 1)).tolist())
        return numbers[there], self.untagged(rows.take(there))

    def content(self, given):
        rows, numbers = self.ordered_tuples()
        if rows is None:
            return None
        first = np.searchsorted(numbers, given.left)
        counts = np.maximum(np.searchsorted(numbers, given.right, "right") - first, 0)
        tuples = rows.take(expand_ranges(first, counts))
        second = tuples.site if self.stream.by_site else self.stream.index_of(tuples.ident)
        window = np.repeat(np.arange(len(given)), counts)
        return WindowContents(len(given), window, self.untagged(tuples), tuples.tick, second)

    def covers(self, given):
        nothing = self.empty_covers()
        if not any(each.intake for each in nothing):
            return nothing
        return self.stream.covers(*self._ticks_of(given), given.tick)

    def final(self, before, given):
        """Rows have their ticks in any order: a tuple stamped ahead may be corrected when later rows may not."""
        open_from = self.stream.open_from(before)
        rows, numbers = self._held()
        open = None if rows is None else rows.tick >= open_from
        if open is None or not open.any():
            return given.tick < open_from
        return (given.right < int(numbers[open].min())) & (given.tick < open_from)

    def _coming(self):
        """The first row that windows to come can reach."""
        if self.begin is None:
            return 1
        return self._count - self._count % self.slide + self.slide + self.begin

    def forget(self, before, kept):
        """Keep the rows that the kept windows and those to come can reach, and the ticks that these rows lie in."""
        rows, numbers = self._held()
        if rows is None:
            self.stream.need(before)
            return
        first = min(self._coming(), *(int(of.left.min(initial=NEVER)) for of in (kept, self._made)))
        self._first = max(self._first, first + self._earlier)
        self._rows.keep(numbers >= first)
        rows, self._numbered = self._rows.all(), (None, None)
        self.stream.need(min(before, int(rows.tick.min(initial=NEVER))))
        self._numbers.drop_before(min(self.stream.first, int(rows.ident.min(initial=NEVER))))

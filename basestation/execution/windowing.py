"""Windowing: the inputs of a product: sequences of windows over streams and tables, and what is in them.

Every input answers the same questions: which windows are there up to a tick (`due`), which of those that were answered
look different after a change (`dirty`), what is in them (`content`), and what they cover. `apply` takes the change in.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from acquisition.instants import grid_at_or_after
from basestation.execution.frame import Frame
from basestation.execution.indexing import Arrivals
from basestation.execution.tuples import Growing

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Win:
    """A window of one input: made at `tick`, the n-th of it; its range is left to right, of ticks or of rows."""

    tick: int
    n: int
    left: int
    right: int
    t: int | tuple | None = None


class Inside:
    """The tuples that windows may still reach, by tick. Tuples of one tick stand in no particular order."""

    def __init__(self):
        self._growing = Growing()
        self._sorted = None

    def apply(self, change):
        if len(change.gone):
            held = self._growing.all()
            self._growing.keep(~np.isin(held.ident, change.gone.ident))
            self._sorted = None
        if len(change.come):
            self._growing.add(change.come)
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


class OverStream:
    """What windows over a stream have in common. Tuples lose their tags when they enter a window (1.7)."""

    def __init__(self, stream, columns):
        self.stream = stream
        self._ids = [column.id for column in columns]

    def _untagged(self, tuples):
        return {id: tuples.columns[id] for id in self._ids}

    @property
    def watermark(self):
        return self.stream.watermark

    @property
    def certain(self):
        """How far no other windows can come any more, whatever is answered early (11)."""
        return self.stream.certain

    def nothing(self):
        return self.stream.nothing()

    def final(self, before):
        """A test of windows: whether none of their tuples can change where no tick from `before` on of the extents can."""
        open_from = self.stream.open_from(before)
        return lambda win: win.right < open_from

    def empty(self, count):
        """A Frame of so many windows without tuples."""
        change = self.stream.change or self.stream.all()
        tuples = change.come.take(slice(0, 0))
        none = np.empty(0, np.int64)
        return Frame(count, none, self._untagged(tuples), none, none)


class TimeWindows(OverStream):
    """TimeWindow and the landmark window of time: at each multiple of slide, ticks w+begin (or the start) to w+end."""

    def __init__(self, stream, columns, begin, end, slide, start):
        super().__init__(stream, columns)
        self.begin, self.end, self.slide, self.start = begin, end, slide, start
        self._next = grid_at_or_after(start, slide)
        self._inside = Inside()

    def due(self, upto):
        """The windows up to a tick that were not given before."""
        ticks = range(self._next, upto + 1, self.slide)
        if ticks:
            self._next = ticks[-1] + self.slide
        return [Win(w, 1, self._left(w), w + self.end) for w in ticks]

    def _left(self, w):
        return self.start if self.begin is None else w + self.begin

    @property
    def disturbed(self):
        """Whether the stream's change reaches back into a window that was given: seldom, and then `dirty` says which."""
        ticks = self.stream.change.ticks
        return len(ticks) > 0 and int(ticks[0]) - self.end <= self._next - self.slide

    def dirty(self, wins):
        """Which of the windows, sorted by tick, hold a tick of the stream's change."""
        ticks = self.stream.change.ticks
        if not len(ticks) or not wins:
            return []
        low, high = int(ticks[0]), int(ticks[-1])
        first = bisect_left(wins, low - self.end, key=lambda w: w.tick)
        last = len(wins) if self.begin is None else bisect_right(wins, high - self.begin, key=lambda w: w.tick)
        return [w for w in wins[first:last] if np.searchsorted(ticks, w.left) < np.searchsorted(ticks, w.right, "right")]

    def apply(self):
        self._inside.apply(self.stream.change)

    def begin_with(self, change, since=None):
        self._inside.apply(change)

    def hold_in(self, holder):
        """Somebody else holds the tuples from now on, and gives the content of windows: a join."""
        held = self._inside.by_tick()
        if held is not None:
            holder.begin_with(held)
        self._inside = holder

    def content(self, wins):
        """A Frame with the tuples of these windows, numbered as they are given."""
        held = self._inside.by_tick()
        if held is None:
            return None
        left = np.array([w.left for w in wins], np.int64)
        right = np.array([w.right for w in wins], np.int64)
        first = np.searchsorted(held.tick, left)
        counts = np.maximum(np.searchsorted(held.tick, right, "right") - first, 0)
        window = np.repeat(np.arange(len(wins)), counts)
        at = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        if held.append.any():  # those are in windows from their arrival on (3.6)
            made = np.array([w.tick for w in wins], np.int64)
            arrived = ~held.append[at] | (held.arrival[at] <= made[window])
            window, at = window[arrived], at[arrived]
        found = held.take(at)
        return ordered(found.with_columns(self._untagged(found)), window, len(wins), self.stream)

    def covers(self, win):
        return self.stream.covers(win.left, win.right, win.tick)

    def forget(self, before, kept):
        """Keep what the kept windows and those to come can reach."""
        earliest = min([self._left(self._next), *(w.left for w in kept)])
        self._inside.forget(earliest)
        self.stream.forget(min(before, earliest))


def ordered(tuples, window, count, stream):
    """A Frame of tuples in their windows, each window in the order of its stream (6.4)."""
    index = stream.index_of(tuples.ident)
    key = np.where(index > 0, index, NEVER)
    waiting = index == 0
    in_order = not waiting.any() and bool(((key[1:] > key[:-1]) | (window[1:] != window[:-1])).all())
    if not in_order:
        order = np.lexsort((tuples.place, tuples.rank, tuples.part, np.where(waiting, tuples.arrival, 0), key, window))
        tuples, window, key = tuples.take(order), window[order], key[order]
    second = tuples.site if stream.by_site else np.where(key == NEVER, NEVER + np.arange(len(key)), key)
    return Frame(count, window, tuples.columns, tuples.tick, second)


class RowWindows(OverStream):
    """RowWindow and the landmark window of rows: at each slide-th row, rows k+begin (or row 1) to k+end (3.7)."""

    def __init__(self, stream, columns, begin, end, slide):
        super().__init__(stream, columns)
        self._latest = -NEVER  # the greatest tick of a row
        self.begin, self.end, self.slide = begin, end, slide
        self._arrivals = Arrivals()
        self._rows = Growing()  # tuples that entered
        self._numbers = {}  # ident -> row, counting the earlier ones too; of those that are held
        self._made = []  # windows that rows have made and that were not given
        self._count = 0  # rows from 1 on
        self._since, self._earlier = -NEVER, 0  # how many rows arrived before it: they are 0, -1, …
        self._was_certain = -NEVER
        self._at = {}  # how many windows there are of each tick that may get more

    @property
    def disturbed(self):
        change = self.stream.change
        return len(change.gone) > 0 or (len(change.touched) > 0 and int(change.touched[0]) <= self._latest)

    def dirty(self, wins):
        """Windows with a row that was corrected; and those whose range of ticks was touched, for their coverage."""
        change = self.stream.change
        rows = sorted(self._numbers[i] - self._earlier for i in change.gone.ident.tolist() if i in self._numbers)
        dirty = [w for w in wins if bisect_left(rows, w.left) < bisect_right(rows, w.right)] if rows else []
        if len(change.touched):
            found = {id(w) for w in dirty}
            dirty = [w for w in wins if id(w) in found or self._touched(w, change.touched)]
        return dirty

    def _touched(self, win, touched):
        low, high = self._ticks_of(win)
        return np.searchsorted(touched, low) < np.searchsorted(touched, high, "right")

    def _ticks_of(self, win):
        """The least and the greatest tick of the rows of a window; an empty range without rows."""
        rows, numbers = self._held()
        if rows is None:
            return 1, 0
        ticks = rows.tick[(numbers >= win.left) & (numbers <= win.right)]
        return (int(ticks.min()), int(ticks.max())) if len(ticks) else (1, 0)

    def _held(self):
        rows = self._rows.all()
        if rows is None:
            return None, None
        return rows, np.fromiter((self._numbers[i] for i in rows.ident.tolist()), np.int64, len(rows)) - self._earlier

    def apply(self):
        change = self.stream.change
        if len(change.gone) and self._rows.all() is not None:
            held = self._rows.all()
            self._rows.keep(~np.isin(held.ident, change.gone.ident))
            was_row = np.fromiter((i in self._numbers for i in change.come.ident.tolist()), bool, len(change.come))
            self._rows.add(change.come.take(was_row & ~change.fresh))  # a replacement keeps its row (12.1)
        self._arrivals.apply(change.come, change.fresh, change.gone)
        entering = self._arrivals.ready(self.stream.watermark)
        if entering is not None:
            self._enter(entering)

    def begin_with(self, change, since=None):
        """Rows count from the query's start (1.1); where that is `since`, not now, from the first arrival then (10.7)."""
        waiting = change.come.arrival > change.watermark
        self._arrivals.apply(change.come, waiting, change.gone)
        entered = change.come.take(~waiting).in_order()
        self._hold(entered)
        self._since = NEVER if since is None else since
        self._number(*(self.stream.rows_ever() or (entered.ident, entered.arrival)))
        self._since = -NEVER if since is None else since

    def _enter(self, tuples):
        self._hold(tuples)
        self._number(tuples.ident, tuples.arrival)

    def _hold(self, tuples):
        self._latest = max(self._latest, int(tuples.tick.max(initial=-NEVER)))
        self._rows.add(tuples)

    def _number(self, idents, arrivals):
        """The next rows, in order."""
        first = self._earlier + self._count + 1
        self._numbers.update(zip(idents.tolist(), range(first, first + len(idents)), strict=True))
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
        k = first + -first % self.slide
        while k <= self._count:
            tick = int(arrivals[k - first])  # 3.9: the arrival of row k
            self._at[tick] = n = self._at.get(tick, 0) + 1
            self._made.append(Win(tick, n, 1 if self.begin is None else k + self.begin, k + self.end))
            k += self.slide

    def due(self, upto):
        count = bisect_right(self._made, upto, key=lambda w: w.tick)
        given, self._made = self._made[:count], self._made[count:]
        return given

    def content(self, wins):
        rows, numbers = self._held()
        if rows is None:
            return None
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows.take(order), numbers[order]
        first = np.searchsorted(numbers, [w.left for w in wins])
        counts = np.maximum(np.searchsorted(numbers, [w.right for w in wins], "right") - first, 0)
        window = np.repeat(np.arange(len(wins)), counts)
        at = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        tuples = rows.take(at)
        second = tuples.site if self.stream.by_site else self.stream.index_of(tuples.ident)
        return Frame(len(wins), window, self._untagged(tuples), tuples.tick, second)

    def covers(self, win):
        return self.stream.covers(*self._ticks_of(win), win.tick)

    def final(self, before):
        """Rows have their ticks in any order: a tuple stamped ahead may be corrected when later rows may not."""
        open_from = self.stream.open_from(before)
        rows, numbers = self._held()
        may_change = NEVER if rows is None else int(numbers[rows.tick >= open_from].min(initial=NEVER))
        return lambda win: win.right < may_change and win.tick < open_from

    def forget(self, before, kept):
        """Keep the rows that the kept windows and those to come can reach, and the ticks that these rows lie in."""
        rows, numbers = self._held()
        if rows is None:
            self.stream.forget(before)
            return
        last = self._count - self._count % self.slide + self.slide  # the row of the next window
        first = 1 if self.begin is None else last + self.begin
        first = min([first, *(w.left for w in kept), *(w.left for w in self._made)])
        keep = numbers >= first
        for ident in rows.ident[~keep].tolist():
            del self._numbers[ident]
        self._rows.keep(keep)
        self.stream.forget(min([before, *rows.tick[keep].tolist()]))


class ScanWindows:
    """Scan: at each multiple of the interval what a table holds then (1.6). `table` is a Table, or Archived."""

    def __init__(self, table, interval, columns, start):
        self.table, self.interval, self._columns = table, interval, columns
        self._next = self.needed = grid_at_or_after(start, interval)  # no tick before it is asked for again

    @property
    def watermark(self):
        return self.table.watermark

    certain = watermark

    def due(self, upto):
        ticks = range(self._next, upto + 1, self.interval)
        if ticks:
            self._next = ticks[-1] + self.interval
        return [Win(w, 1, w, w) for w in ticks]

    @property
    def disturbed(self):
        return self.table.changed_from < NEVER

    def dirty(self, wins):
        return [w for w in wins if w.tick >= self.table.changed_from]

    def apply(self):
        self.table.apply()

    def content(self, wins):
        return self.table.frame(self._columns, [w.tick for w in wins])

    def covers(self, win):
        return []

    def nothing(self):
        return []

    def empty(self, count):
        none = self.table.frame(self._columns, [-NEVER])
        return Frame(count, none.window, none.columns)

    def final(self, before):
        return lambda win: win.tick < before

    def forget(self, before, kept):
        self.needed = min([self._next, *(w.tick for w in kept)])


class OnceWindow(ScanWindows):
    """Once: one window at the query's start (2.6)."""

    def __init__(self, table, columns, start):
        self.table, self._columns = table, columns
        self._start = self._next = self.needed = start
        self._given = False

    def due(self, upto):
        if self._given or upto < self._start:
            return []
        self._given = True
        return [Win(self._start, 1, self._start, self._start)]

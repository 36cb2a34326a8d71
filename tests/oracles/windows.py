"""Windows: over streams (section 3), scans (1.6), products (section 4). All computed from scratch at every step."""

from dataclasses import dataclass
from itertools import product

from tests.oracles.errors import NotCoveredError
from tests.oracles.expressions import Member


@dataclass(frozen=True)
class Window:
    """A window: its tick, its number among those of that tick, the loop variable, its tuples, what it covers."""

    tick: int
    n: int
    t: object
    members: tuple
    covers: tuple

    @property
    def key(self):
        return self.tick, self.n, self.t if not isinstance(self.t, list) else tuple(self.t)


def stay(answered, windows):
    """A window once answered is revised and never goes away. Only answering before the watermark could change that."""
    if set(answered) - {w.key for w in windows}:
        raise NotCoveredError("11", "DELIVER WITHIN where the windows of a tick are not known in time")


def grid(slide, context, upto):
    """3.2: windows at 0, s, 2s, … by the clock. A query that starts later stays on the same grid (1.1, 10.7)."""
    return range(-(-context.start // slide) * slide, upto + 1, slide)


class TimeWindows:
    """TimeWindow (figure 4, 3.1, 3.2). `back` and `ahead` are offsets; back None: a landmark window (10.3)."""

    def __init__(self, stream, back, ahead, slide, excludes, context):
        self.stream, self.back, self.ahead, self.slide = stream, back, ahead, slide
        self.excludes, self.context = excludes, context

    def watermark(self, clock):
        return self.stream.watermark(clock)

    def windows(self, clock, upto):
        tuples = self.stream.view(clock).tuples
        found = []
        for w in grid(self.slide, self.context, upto):
            low = self.context.start if self.back is None else w + self.back
            high = w + self.ahead
            inside = time_members(tuples, low, high, w)
            covers = self.stream.covers(low, high, clock, w, self.excludes)
            found.append(Window(w, 1, None, inside, tuple(covers)))  # 3.5: also without tuples
        return found

    def nothing(self, clock):
        return self.stream.covers(1, 0, clock, None)


def time_members(tuples, low, high, w):
    """3.6: low <= tick <= high, each tuple tested on its own; of `late append` those that had arrived."""
    inside = [x for x in tuples if low <= x.tick <= high and (not x.append or x.arrival <= w)]
    # 6.4: by index; a tuple that was selected only since a revision has a later row, but keeps its index
    inside.sort(key=lambda x: (x.index is None, x.index or 0))
    return tuple(Member(x.values, x.key) for x in inside)


def row_members(tuples, low, high):
    """3.8: rows low to high, and nothing after; an empty row has no tuple (12.1)."""
    return [x for x in tuples if x.row is not None and low <= x.row <= high]


def row_covers(stream, rows, clock, at, excludes):
    """12.3: a row window ranges from the least to the greatest tick of its rows; without rows [0, 0]."""
    ticks = [x.tick for x in rows]
    low, high = (min(ticks), max(ticks)) if ticks else (1, 0)
    return tuple(stream.covers(low, high, clock, at, excludes))


class RowWindows:
    """RowWindow (figure 6) as 3.3, 3.7, 3.8 and 3.9 have it."""

    def __init__(self, stream, back, ahead, slide, excludes, context):
        self.stream, self.back, self.ahead, self.slide = stream, back, ahead, slide
        self.excludes, self.context = excludes, context

    def watermark(self, clock):
        return self.stream.watermark(clock)

    def windows(self, clock, upto):
        view = self.stream.view(clock)
        found = []
        for k in range(self.slide, max(view.arrivals, default=0) + 1, self.slide):  # 3.3: rows s, 2s, 3s, …
            tick = view.arrivals[k]  # 3.9: the arrival of row k
            if tick > upto:
                break  # windows are created in tick order
            low = 1 if self.back is None else k + self.back  # a landmark window begins at row 1
            rows = row_members(view.tuples, low, k + self.ahead)
            n = 1 + sum(w.tick == tick for w in found)  # 3.8, 3.10: windows of one tick in row order
            covers = row_covers(self.stream, rows, clock, tick, self.excludes)
            found.append(Window(tick, n, None, tuple(Member(x.values, x.key) for x in rows), covers))
        return found

    def nothing(self, clock):
        return self.stream.covers(1, 0, clock, None)


class TableSource:
    """A stored extent, or the history of a sensed or pushed one (10.7), as a table with columns."""

    def __init__(self, columns, scan, watermark):
        self.columns, self.scan, self.watermark = columns, scan, watermark


def history_rows(log, tick, clock):
    """10.7: all tuples with arrival <= t, and the revisions made by t, wherever they lie."""
    rows = []
    for r in sorted(log.readings, key=lambda r: (r.arrival, r.place)):
        if r.arrival > tick or r.delivered > clock:
            continue
        # On time, yet delivered after t (the extent waits): as it came.
        values = r.history(tick) if r.delivered <= tick else r.archived[0][1]
        if values is not None:
            rows.append((r.tick, r.index_at(clock), *values, r.site, r.arrival))
    return rows


class ScanWindows:
    """Scan (figure 5): windows at 0, i, 2i, …; changes between scans are not seen (1.6)."""

    def __init__(self, table, every, context):
        self.table, self.every, self.context = table, every, context

    def watermark(self, clock):
        return self.table.watermark(clock)

    def windows(self, clock, upto):
        return [
            Window(w, 1, None, tuple(Member(row) for row in self.table.scan(w, clock)), ())
            for w in grid(self.every, self.context, upto)
        ]

    def nothing(self, clock):
        return []


class WindowProduct:
    """WindowCrossProduct (figure 7, section 4) of any number of inputs; of one, its windows as they are (4.5)."""

    def __init__(self, sources):
        self.sources = sources

    def watermark(self, clock):
        return min(source.watermark(clock) for source in self.sources)

    def windows(self, clock, upto):
        lists = [source.windows(clock, upto) for source in self.sources]
        if len(lists) == 1:
            return lists[0]
        found = []
        for tick in sorted({w.tick for windows in lists for w in windows}):  # 4.1: every tick counts once, in order
            recent = [most_recent(windows, tick) for windows in lists]
            # 4.2: without a window in one input nothing; 4.4: the first entry varies slowest
            for n, combination in enumerate(product(*recent), start=1):
                found.append(combine(tick, n, combination))
        return found

    def nothing(self, clock):
        return [c for source in self.sources for c in source.nothing(clock)]


def most_recent(windows, tick):
    """4.3: all windows of the most recent tick at or before this one."""
    before = [w.tick for w in windows if w.tick <= tick]
    return [w for w in windows if w.tick == max(before)] if before else []


def combine(tick, n, windows):
    """windowCrossProduct (figure 7): every tuple with every tuple, the left one slowest (6.4)."""
    pairs = product(*(w.members for w in windows))
    members = tuple(Member(sum((m.row for m in pair), ())) for pair in pairs)
    return Window(tick, n, None, members, tuple(c for w in windows for c in w.covers))

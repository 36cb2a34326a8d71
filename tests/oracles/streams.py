"""Streams: sensed and pushed extents, plain stream queries over them, converters, unions.

Every stream answers `view(clock)`: what it holds at the end of a clock tick. Indexes and rows are given once and never
move (12.1), so a stream that gives rows of its own remembers them; it must be looked at in every step, in order.
Everything else is computed from scratch.
"""

from dataclasses import dataclass, replace

from tests.oracles.coverage import cover
from tests.oracles.expressions import Column, Env
from tests.oracles.windows import stay


@dataclass(frozen=True)
class Tuple:
    """A tagged tuple in a stream. `row` is None until it has entered, `index` may be."""

    ident: object  # who it is, from step to step
    tick: int
    arrival: int
    index: int | None
    row: int | None
    values: tuple
    key: tuple  # what FIRST and LAST go by (10.5)
    append: bool = False  # 3.6


@dataclass(frozen=True)
class View:
    """Tuples in stream order (those that wait for their entry last), and the arrival of every row, empty ones too."""

    tuples: list
    arrivals: dict


@dataclass(eq=False)
class Place:
    """A tuple's place in a stream that gives rows: kept from step to step."""

    arrival: int
    order: tuple  # among those with the same arrival
    row: int | None = None
    index: int | None = None


def give_rows(places, arrivals, mark):
    """1.5: those whose arrival the watermark has reached take the next rows, in the order of arrival."""
    waiting = [p for p in places if p.row is None and p.arrival <= mark]
    for place in sorted(waiting, key=lambda p: (p.arrival, p.order)):
        place.row = len(arrivals) + 1
        arrivals[place.row] = place.arrival


def from_start(tuples, arrivals, context):
    """1.1: rows count from the query's start; earlier ones are 0, -1, …"""
    earlier = sum(a < context.start for a in arrivals.values()) if context.from_the_past else 0
    shifted = [x if x.row is None else replace(x, row=x.row - earlier) for x in tuples]
    return View(shifted, {row - earlier: arrival for row, arrival in arrivals.items()})


def in_order(places):
    return sorted(places, key=lambda p: (p.row is None, p.row or 0, p.arrival, p.order))


def looked_before(stream):
    """1.1: a query is asked before what its clock tick brings; what is corrected in that tick is a revision to it."""
    if stream.at is None and stream.context.asked and not stream.converted:
        stream._look(stream.context.asked - 1)


class ExtentStream:
    """StreamAcquire and StreamReceive (figures 1 and 2, 2.9)."""

    converted = False  # whether it begins with its query

    def __init__(self, log, name, context):
        extent = log.extent
        self.log, self.context = log, context
        self.columns = tuple(Column(name, a.name, a.type, a.scale) for a in extent.attributes)
        self.interval = extent.interval and (context.acquire or extent.interval)  # 11: the one in force for this query
        self.site_places = {i for i, a in enumerate(extent.attributes) if a.name == extent.site_attribute}

    def watermark(self, clock):
        return self.log.watermark(clock)

    def view(self, clock):
        rows = self.log.rows(clock)
        numbers = {r: i + 1 for i, r in enumerate(rows)}  # an empty row keeps its number (12.1)
        tuples = []
        for position, r in enumerate(self.log.alive(clock)):
            # 10.5: by tick, then site for a sensed, index for a pushed extent (who waits comes after all indexes)
            key = (r.tick, r.site if self.log.extent.kind == "sensed" else position)
            tuples.append(
                Tuple(r, r.tick, r.arrival, r.index_at(clock), numbers.get(r), r.values(clock), key, r.append)
            )
        return from_start(tuples, {numbers[r]: r.arrival for r in rows}, self.context)

    def covers(self, low, high, clock, at, excludes=()):
        return [cover(self.log, low, high, clock, at, self.interval, excludes)]

    def epochs(self, clock, excludes=()):
        """12.3: an epoch is complete when the watermark has reached its tick."""
        if self.log.extent.kind == "pushed":
            return {}
        begin = max(0, self.context.start)
        ticks = range(begin + -begin % self.interval, self.watermark(clock) + 1, self.interval)
        return {(tick, 1): self.covers(tick, tick, clock, None, excludes) for tick in ticks}


class SelectStream:
    """StreamSelect and StreamProject (figures 1 and 3): index, tick and arrival are kept (7), and without a predicate rows
    too; the rows of a selection are its own (3.7)."""

    def __init__(self, child, columns, predicate, items, excludes, site_places, context):
        self.child, self.columns, self.predicate, self.items = child, columns, predicate, items
        self.excludes, self.site_places, self.context = excludes, site_places, context
        self.interval, self.converted = child.interval, child.converted
        self.limit = None  # 14, on 11: with FOR, the tuples with arrival up to start + n
        self.places, self.arrivals = {}, {}
        self.entered_below = set()
        self.at, self.seen = None, None

    def watermark(self, clock):
        return self.child.watermark(clock)

    def view(self, clock):
        if self.predicate is None:
            return self._project(self.child.view(clock))
        looked_before(self)
        if clock != self.at:
            self.at, self.seen = clock, self._look(clock)
        return self.seen

    def _project(self, below):
        tuples = [x for x in below.tuples if self.limit is None or x.arrival <= self.limit]
        if self.items is None:
            return View(tuples, below.arrivals)
        rows = [tuple(item(Env(x.values, x.tick, x.index)) for item in self.items) for x in tuples]
        return View([replace(x, values=row) for x, row in zip(tuples, rows, strict=True)], below.arrivals)

    def _look(self, clock):
        passing = {}
        for position, x in enumerate(self.child.view(clock).tuples):
            env = Env(x.values, x.tick, x.index)
            if self.predicate(env) is True:
                row = x.values if self.items is None else tuple(item(env) for item in self.items)
                passing[x.ident] = (position, x, row)
        # One that is taken back, or selected no longer, leaves its row empty (12.1).
        self.places = {ident: place for ident, place in self.places.items() if ident in passing}
        for ident, (position, x, _) in passing.items():
            if ident not in self.places:
                # Selected only since a revision: like any tuple a revision adds, it arrives now (12.1).
                added = ident in self.entered_below
                self.places[ident] = Place(clock if added else x.arrival, (added, position))
            elif self.places[ident].row is None:
                self.places[ident].order = (self.places[ident].order[0], position)
        self.entered_below |= {x.ident for x in self.child.view(clock).tuples if x.row is not None}
        give_rows(self.places.values(), self.arrivals, self.watermark(clock))
        by_place = {place: passing[ident] for ident, place in self.places.items()}
        tuples = []
        for place in in_order(self.places.values()):
            if self.limit is not None and place.arrival > self.limit:
                continue
            _, x, row = by_place[place]
            tuples.append(Tuple(place, x.tick, place.arrival, x.index, place.row, row, x.key, x.append))
        return from_start(tuples, self.arrivals, self.context)

    def covers(self, low, high, clock, at, excludes=()):
        return self.child.covers(low, high, clock, at, [*self.excludes, *excludes])

    def epochs(self, clock, excludes=()):
        return self.child.epochs(clock, [*self.excludes, *excludes])


class ConverterStream:
    """RStream, IStream and DStream (figure 8, section 6), and what revisions do to them (12.1)."""

    interval, converted = None, True
    site_places = frozenset()  # a conjunct follows `site` through plain projections only (14)

    def __init__(self, kind, inner, context):
        self.kind, self.inner, self.context = kind, inner, context
        self.columns = inner.columns
        self.answered = {}  # window -> its tuples still there: [Place, tick, values], in order
        self.arrivals = {}
        self.last_index = 0
        self.at, self.seen = None, None

    def watermark(self, clock):
        return self.inner.watermark(clock)

    def view(self, clock):
        if clock != self.at:
            self.at, self.seen = clock, self._look(clock)
        return self.seen

    def _look(self, clock):
        windows = self.inner.windows(clock)
        stay(self.answered, windows)
        previous = []  # 6.2: before the first window stands the empty bag
        for number, window in enumerate(windows):
            rows = [m.row for m in window.members]
            if self.kind == "RSTREAM":
                now = rows
            elif self.kind == "ISTREAM":
                now = difference(rows, previous)
            else:
                now = difference(previous, rows)
            previous = rows
            self._emit(window, number, now, clock)
        places = [place for answered in self.answered.values() for place, _, _ in answered]
        give_rows(places, self.arrivals, self.watermark(clock))
        for place in in_order(places):  # 6.3: index 1, 2, 3, … in the order of entry
            if place.row is not None and place.index is None:
                self.last_index += 1
                place.index = self.last_index
        found = {place: (tick, values) for answered in self.answered.values() for place, tick, values in answered}
        tuples = []
        for position, place in enumerate(in_order(found)):
            tick, values = found[place]
            tuples.append(Tuple(place, tick, place.arrival, place.index, place.row, values, (tick, position)))
        return from_start(tuples, self.arrivals, self.context)

    def _emit(self, window, number, now, clock):
        """Compare the tuples of a window with those answered before; only the difference changes."""
        first_time = window.key not in self.answered
        answered = self.answered.setdefault(window.key, [])
        for values in difference([v for _, _, v in answered], now):
            # 12.1: of equal tuples of one window the one with the highest index is taken back
            where = max((i for i, s in enumerate(answered) if s[2] == values), key=lambda i: highest(answered[i][0]))
            del answered[where]
        for position, values in enumerate(difference(now, [v for _, _, v in answered])):
            # 12.1: added by a revision, it has the window's tick and arrives now; 14: after the window of that tick
            arrival = window.tick if first_time else clock
            answered.append([Place(arrival, (not first_time, clock, number, position)), window.tick, values])

    def covers(self, low, high, clock, at, excludes=()):
        """14: what the inner windows cover whose tick lies in the range."""
        within = [w for w in self.inner.windows(clock) if low <= w.tick <= high]
        return [c for w in within for c in w.covers] + self.inner.nothing(clock)

    def epochs(self, clock, excludes=()):
        return {w.key[:2]: w.covers for w in self.inner.windows(clock)}


def highest(place):
    """Sorts by index; one without has none yet and would get the highest."""
    return (place.index is None, place.index or 0, place.arrival, place.order)


def difference(left, right):
    """Haskell's `\\\\`: each right tuple removes the first equal left one (6.1, 6.4)."""
    left = list(left)
    for row in right:
        if row in left:
            left.remove(row)
    return left


class UnionStream:
    """UNION ALL of stream queries (10.6)."""

    interval = None
    site_places = frozenset()

    def __init__(self, parts, columns, context):
        self.parts, self.columns, self.context = parts, columns, context
        self.converted = any(part.converted for part in parts)
        self.places, self.arrivals = {}, {}
        self.last_index = 0
        self.at, self.seen = None, None

    def watermark(self, clock):
        return min(part.watermark(clock) for part in self.parts)  # the watermark is the least

    def view(self, clock):
        looked_before(self)
        if clock != self.at:
            self.at, self.seen = clock, self._look(clock)
        return self.seen

    def _look(self, clock):
        below = {}
        for number, part in enumerate(self.parts):
            for position, x in enumerate(part.view(clock).tuples):
                below[number, x.ident] = x
                place = self.places.setdefault((number, x.ident), Place(x.arrival, ()))
                if place.row is None:
                    place.order = (number, position)  # the left one first at the same arrival
        self.places = {who: place for who, place in self.places.items() if who in below}
        give_rows(self.places.values(), self.arrivals, self.watermark(clock))
        for place in in_order(self.places.values()):
            if place.row is not None and place.index is None:  # indexes are counted anew
                self.last_index += 1
                place.index = self.last_index
        by_place = {place: below[who] for who, place in self.places.items()}
        tuples = []
        for position, place in enumerate(in_order(self.places.values())):
            x = by_place[place]
            row = tuple(_plain_if(c, v) for c, v in zip(self.columns, x.values, strict=True))
            key = (x.tick, position)
            tuples.append(Tuple(place, x.tick, place.arrival, place.index, place.row, row, key, x.append))
        return from_start(tuples, self.arrivals, self.context)

    def covers(self, low, high, clock, at, excludes=()):
        return [c for part in self.parts for c in part.covers(low, high, clock, at)]

    def epochs(self, clock, excludes=()):
        """Marks up to the least watermark; an epoch that several parts have is covered by all of them."""
        marks = {}
        for part in self.parts:
            for key, covers in part.epochs(clock).items():
                if key[0] <= self.watermark(clock):
                    marks.setdefault(key, []).extend(covers)
        return dict(sorted(marks.items()))


def _plain_if(column, value):
    """A column keeps its scale only where all parts have it."""
    return float(value) if column.scale is None and isinstance(value, float) else value

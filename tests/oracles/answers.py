"""Answers: the history of updates of a query (semantics 12.1), from the difference between the answers of two steps."""

from dataclasses import dataclass, field

from tests.oracles.coverage import coverage
from tests.oracles.streams import difference
from tests.oracles.values import plain
from tests.oracles.windows import stay


@dataclass(frozen=True)
class WindowUpdate:
    """One revision of one window; revision 0 adds its rows."""

    clock: int  # the clock tick at whose end it is given
    tick: int
    n: int  # counting the windows of one tick, from 1
    t: object  # of a loop, else None
    revision: int
    coverage: dict  # {extent: [used, due], or None for a pushed one}
    added: tuple
    removed: tuple = ()

    @property
    def key(self):
        return self.tick, self.n, tuple(self.t) if isinstance(self.t, list) else self.t


@dataclass(frozen=True)
class TupleUpdate:
    clock: int
    tick: int
    index: int
    weight: int
    row: tuple


@dataclass(frozen=True)
class EpochCoverage:
    """The coverage of an epoch, or of a window below a converter (12.3)."""

    clock: int
    tick: int
    n: int
    coverage: dict


@dataclass
class Answer:
    kind: str  # window or stream
    columns: list  # (name or None, type)
    updates: list = field(default_factory=list)
    error: object = None  # (clock tick, kind, message) where the query ended with an error (10.8)

    @property
    def windows(self):
        return [u for u in self.updates if isinstance(u, WindowUpdate)]

    @property
    def tuples(self):
        return [u for u in self.updates if isinstance(u, TupleUpdate)]

    @property
    def marks(self):
        return [u for u in self.updates if isinstance(u, EpochCoverage)]

    def current(self):
        """The sum of the updates: {window: rows}, or [(tick, index, row)] in the order of index."""
        if self.kind == "stream":
            there = []
            for u in self.tuples:
                entry = (u.tick, u.index, u.row)
                there.append(entry) if u.weight == 1 else there.remove(entry)
            return there
        there = {}
        for u in self.windows:
            there[u.key] = difference(there.get(u.key, []), u.removed) + list(u.added)
        return there

    def current_coverage(self):
        """{window or mark: coverage} as last said."""
        if self.kind == "stream":
            return {(m.tick, m.n): m.coverage for m in self.marks}
        return {u.key: u.coverage for u in self.windows}


class WindowAnswer:
    def __init__(self, query, answer):
        self.query, self.answer = query, answer
        self.answered = {}  # window -> (rows, coverage, revision)

    def step(self, clock):
        windows = self.query.windows(clock)
        stay(self.answered, windows)
        for w in windows:
            rows, covered = [format_row(m.row) for m in w.members], coverage(w.covers)
            if w.key not in self.answered:
                self.answered[w.key] = (rows, covered, 0)
                self.answer.updates.append(WindowUpdate(clock, w.tick, w.n, w.t, 0, covered, tuple(rows)))
                continue
            old, old_covered, revision = self.answered[w.key]
            removed, added = difference(old, rows), difference(rows, old)
            if removed or added or covered != old_covered:  # 12.1: else it is not given and uses no number
                self.answered[w.key] = (rows, covered, revision + 1)
                update = WindowUpdate(clock, w.tick, w.n, w.t, revision + 1, covered, tuple(added), tuple(removed))
                self.answer.updates.append(update)


class StreamAnswer:
    def __init__(self, query, answer, limit):
        self.query, self.answer, self.limit = query, answer, limit
        self.answered, self.marked = {}, {}

    def step(self, clock):
        out = self.answer.updates
        # Tuples that have entered since the query's start (10.7: rows count from there).
        entered = [x for x in self.query.view(clock).tuples if x.row is not None and x.row >= 1]
        now = {x.ident: (x.tick, x.index, format_row(x.values)) for x in entered}
        for ident, (tick, index, row) in list(self.answered.items()):
            if ident not in now:
                out.append(TupleUpdate(clock, tick, index, -1, row))  # 14: a weight -1 comes at once
                del self.answered[ident]
            elif now[ident][2] != row:  # 12.1: a replacement that stays keeps its index
                out.append(TupleUpdate(clock, tick, index, -1, row))
                out.append(TupleUpdate(clock, tick, index, 1, now[ident][2]))
                self.answered[ident] = now[ident]
        for ident, (tick, index, row) in now.items():
            if ident not in self.answered:
                out.append(TupleUpdate(clock, tick, index, 1, row))
                self.answered[ident] = (tick, index, row)
        for (tick, n), covers in self.query.epochs(clock).items():
            covered = coverage(covers)
            if (self.limit is None or tick <= self.limit) and self.marked.get((tick, n), ()) != covered:
                self.marked[tick, n] = covered
                out.append(EpochCoverage(clock, tick, n, covered))


def format_row(row):
    return tuple(plain(v) for v in row)

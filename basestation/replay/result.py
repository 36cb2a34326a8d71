"""Result: everything that was said during a replay, to be looked at from Python.

Updates stay columnar until somebody asks for rows.
"""

from dataclasses import dataclass

import pyarrow as pa

from acquisition.schema import Type
from basestation.results.view import current_tuples, current_windows
from basestation.results.wire import coverage_as_json
from basestation.updates.update import EpochMarks, QueryFailure, TupleUpdates, WindowUpdates, split_interleaved


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One update of one window; `added` and `removed` are tuples in the order of the SELECT list."""

    tick: int
    n: int
    t: object  # of a loop, else None
    revision: int
    coverage: dict
    added: list[tuple]
    removed: list[tuple]

    @property
    def key(self):
        return (self.tick, self.n) if self.t is None else (self.tick, self.n, self.t)


@dataclass(frozen=True, slots=True)
class TupleResult:
    """One update of a stream: a tuple that is given (weight 1) or taken back (-1)."""

    tick: int
    index: int
    weight: int
    row: tuple


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class EpochResult:
    """An epoch of a stream is complete, or its coverage has changed."""

    tick: int
    coverage: dict


class Result:
    """`columns` has the columns of each query by its number, `ledger` what became of the deliveries of each extent.

    `errors` has the queries that could not go on, with why: their answers end before the recording does.
    """

    def __init__(self, queries):
        self._queries = {query.number: query for query in queries}
        self._updates = {query.number: [] for query in queries}
        self.columns = {q.number: tuple(ResultColumn(c.label, str(c.type)) for c in q.columns) for q in queries}
        self.ledger, self.until, self.errors = {}, None, {}

    def add(self, updates):
        for update in updates:
            if isinstance(update, QueryFailure):
                self.errors[update.query] = update
            else:
                self._updates[update.query].append(update)

    def finish(self, until, ledger):
        self.until, self.ledger = until, ledger

    def updates(self, query=1):
        """What the engine said, columnar, in the order in which it was said."""
        return self._updates[query]

    def history(self, query=1):
        """The same in Python's values, in the order in which they were said: Windows, Tuples and Marks."""
        scales = self._queries[query].scales
        return [one for update in split_interleaved(self._updates[query]) for one in _told(update, scales)]

    def windows(self, query=1):
        return [told for told in self.history(query) if isinstance(told, WindowResult)]

    def tuples(self, query=1):
        return [told for told in self.history(query) if isinstance(told, TupleResult)]

    def epochs(self, query=1):
        return [told for told in self.history(query) if isinstance(told, EpochResult)]

    def current(self, query=1):
        """The sum of the updates: {(tick, n): rows} of windows, [(tick, index, row)] of a stream, in order."""
        scales = self._queries[query].scales
        if self._queries[query].kind == "stream":
            if not self.tuples(query):
                return []
            now = current_tuples(self._updates[query])
            return list(zip(now.tick.tolist(), now.index.tolist(), now.rows.to_lists(scales), strict=True))
        return {
            ((w.tick, w.n) if w.t is None else (w.tick, w.n, w.t)): w.rows.to_lists(scales)
            for w in current_windows(self._updates[query])
        }

    def to_arrow(self, query=1, history=False):
        """The current answer as an Arrow table, or with `history` every update with its `_revision` and `_weight`."""
        asked = self._queries[query]
        tags, rows = (self._all if history else self._now)(asked)
        fields = [pa.array(values, pa.int64()) for values in tags.values()]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(asked.columns)
        fields += [pa.array(values, _ARROW[c.type]) for values, c in zip(columns, asked.columns, strict=True)]
        return pa.Table.from_arrays(fields, names=[*tags, *(c.label for c in asked.columns)])

    def to_pandas(self, query=1, history=False):
        """The same as a data frame; needs pandas."""
        return self.to_arrow(query, history).to_pandas()

    def _now(self, asked):
        current = self.current(asked.number)
        if asked.kind == "stream":
            return {"_tick": [e[0] for e in current], "_index": [e[1] for e in current]}, [e[2] for e in current]
        keys = [key for key, rows in current.items() for _ in rows]
        rows = [row for rows in current.values() for row in rows]
        return {"_tick": [k[0] for k in keys], "_n": [k[1] for k in keys]}, rows

    def _all(self, asked):
        if asked.kind == "stream":
            found = self.tuples(asked.number)
            return {f"_{name}": [getattr(u, name) for u in found] for name in ("tick", "index", "weight")}, [
                u.row for u in found
            ]
        lines = [
            (w.tick, w.n, w.revision, weight, row)
            for w in self.windows(asked.number)
            for weight, rows in ((-1, w.removed), (1, w.added))
            for row in rows
        ]
        names = ("_tick", "_n", "_revision", "_weight")
        return {name: [line[i] for line in lines] for i, name in enumerate(names)}, [line[4] for line in lines]


_ARROW = {Type.INTEGER: pa.int64(), Type.TIME: pa.int64(), Type.FLOAT: pa.float64(), Type.STRING: pa.string()}


def _told(update, scales):
    match update:
        case WindowUpdates():
            return [_window(each, scales) for each in update]
        case TupleUpdates():
            tags = update.tick.tolist(), update.index.tolist(), update.weight.tolist()
            return map(TupleResult, *tags, update.rows.to_lists(scales))
        case EpochMarks():
            return [EpochResult(each.tick, coverage_as_json(each.coverage)) for each in update]
    raise TypeError(f"no update: {update!r}")


def _window(update, scales):
    added, removed = update.added.to_lists(scales), update.removed.to_lists(scales)
    return WindowResult(
        update.tick, update.n, update.t, update.revision, coverage_as_json(update.coverage), added, removed
    )

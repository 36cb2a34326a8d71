"""The result of a replay: all updates of all queries, for Python programs.

Updates stay columnar until the caller needs rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from acquisition.schema import Type
from basestation.replay.shortened_clock import SkippedAnswers
from basestation.results.schema import ResultSchema, make_unique
from basestation.results.view import current_tuples, current_windows
from basestation.results.wire import coverage_as_json
from basestation.updates.update import (
    EpochMarks,
    LoopVariable,
    PlainUpdate,
    QueryFailure,
    TupleUpdates,
    Update,
    Value,
    WindowUpdate,
    WindowUpdates,
    split_interleaved,
)

Row: TypeAlias = tuple[Value, ...]
CoverageLists: TypeAlias = dict[str, list[int] | None]
"""[used, due] of each sensed extent, None of a pushed one."""


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One update of one window; `added` and `removed` are tuples in the order of the SELECT list."""

    tick: int
    n: int
    t: LoopVariable
    revision: int
    coverage: CoverageLists
    added: list[Row]
    removed: list[Row]

    @property
    def key(self) -> tuple[LoopVariable, ...]:
        """(tick, n), and t in a loop."""
        return (self.tick, self.n) if self.t is None else (self.tick, self.n, self.t)


@dataclass(frozen=True, slots=True)
class TupleResult:
    """One update of a stream: an added tuple (weight 1) or a retracted one (-1)."""

    tick: int
    index: int
    weight: int
    row: Row


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """Name and type of a column."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class EpochResult:
    """An epoch of a stream is complete, or its coverage has changed."""

    tick: int
    coverage: CoverageLists


class Result:
    """All updates of a replay. `columns` has the columns of each query by its number.

    `ledger` counts the deliveries of each extent by fate. `errors` has the failure of each query that ended early. `notes` are
    lines about readings that were moved or left out. `skipped` counts the answers that were left out of long stretches without
    data; each window of them has the rows of the window before.
    """

    def __init__(self, queries: Sequence[ResultSchema], tick_ms: int | None = None) -> None:
        """With `tick_ms`, the milliseconds of a tick, tables have a column `_time`."""
        self._tick_ms = tick_ms
        self.notes: list[str] = []
        self._queries = {query.number: query for query in queries}
        self._updates: dict[int, list[Update]] = {query.number: [] for query in queries}
        self.columns = {q.number: tuple(ResultColumn(c.label, str(c.type)) for c in q.columns) for q in queries}
        self.ledger: Mapping[str, Mapping[str, int]] = {}
        self.until: int | None = None
        self.skipped: list[SkippedAnswers] = []
        self.errors: dict[int, QueryFailure] = {}

    def add(self, updates: Iterable[Update]) -> None:
        """Append updates of the engine."""
        for update in updates:
            if isinstance(update, QueryFailure):
                self.errors[update.query] = update
            else:
                self._updates[update.query].append(update)

    def finish(self, until: int, ledger: Mapping[str, Mapping[str, int]], notes: Sequence[str] = ()) -> None:
        """Note the last clock tick, the ledger, and lines about the input."""
        self.until, self.ledger, self.notes = until, ledger, list(notes)

    def updates(self, query: int = 1) -> list[Update]:
        """The columnar updates of a query, in order of emission."""
        return self._updates[query]

    def history(self, query: int = 1) -> list[WindowResult | TupleResult | EpochResult]:
        """The same as Python values: windows, tuples and epochs."""
        scales = self._queries[query].scales
        return [one for update in split_interleaved(self._updates[query]) for one in _results(update, scales)]

    def windows(self, query: int = 1) -> list[WindowResult]:
        """The updates of windows."""
        return [each for each in self.history(query) if isinstance(each, WindowResult)]

    def tuples(self, query: int = 1) -> list[TupleResult]:
        """The updates of tuples."""
        return [each for each in self.history(query) if isinstance(each, TupleResult)]

    def epochs(self, query: int = 1) -> list[EpochResult]:
        """The completed epochs, and later changes of their coverage."""
        return [each for each in self.history(query) if isinstance(each, EpochResult)]

    def current(self, query: int = 1) -> "dict[tuple[LoopVariable, ...], list[Row]] | list[tuple[int, int, Row]]":
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

    def to_arrow(self, query: int = 1, history: bool = False) -> pa.Table:
        """The current answer as an Arrow table, or with `history` every update with its `_revision` and `_weight`."""
        schema = self._queries[query]
        tags, rows = (self._all if history else self._now)(schema)
        fields = [pa.array(values, pa.int64()) for values in tags.values()]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.columns)
        fields += [pa.array(values, _ARROW[c.type]) for values, c in zip(columns, schema.columns, strict=True)]
        names = [*tags, *(c.label for c in schema.columns)]
        if self._tick_ms is not None:  # for data frames, of which some take no name twice
            names = [*tags, *make_unique([c.label for c in schema.columns])]
            moments = pc.multiply(fields[0], pa.scalar(self._tick_ms, pa.int64())).cast(pa.timestamp("ms", "UTC"))
            fields, names = [moments, *fields], ["_time", *names]
        return pa.Table.from_arrays(fields, names=names)

    def to_pandas(self, query: int = 1, history: bool = False) -> Any:
        """The same as a data frame; needs pandas."""
        return self.to_arrow(query, history).to_pandas()

    def to_polars(self, query: int = 1, history: bool = False) -> Any:
        """The same as a data frame of Polars, which has to be installed."""
        import polars

        return polars.from_arrow(self.to_arrow(query, history))

    def _now(self, schema: ResultSchema) -> tuple[dict[str, list[Any]], list[Row]]:
        current = self.current(schema.number)
        if isinstance(current, list):
            return {"_tick": [e[0] for e in current], "_index": [e[1] for e in current]}, [e[2] for e in current]
        keys = [key for key, rows in current.items() for _ in rows]
        rows = [row for rows in current.values() for row in rows]
        return {"_tick": [k[0] for k in keys], "_n": [k[1] for k in keys]}, rows

    def _all(self, schema: ResultSchema) -> tuple[dict[str, list[Any]], list[Row]]:
        if schema.kind == "stream":
            found = self.tuples(schema.number)
            return {f"_{name}": [getattr(u, name) for u in found] for name in ("tick", "index", "weight")}, [
                u.row for u in found
            ]
        lines = [
            (w.tick, w.n, w.revision, weight, row)
            for w in self.windows(schema.number)
            for weight, rows in ((-1, w.removed), (1, w.added))
            for row in rows
        ]
        names = ("_tick", "_n", "_revision", "_weight")
        return {name: [line[i] for line in lines] for i, name in enumerate(names)}, [line[4] for line in lines]


_ARROW = {Type.INTEGER: pa.int64(), Type.TIME: pa.int64(), Type.FLOAT: pa.float64(), Type.STRING: pa.string()}


def _results(update: PlainUpdate, scales: Sequence[int | None]) -> Sequence[WindowResult | TupleResult | EpochResult]:
    match update:
        case WindowUpdates():
            return [_window(each, scales) for each in update]
        case TupleUpdates():
            tags = update.tick.tolist(), update.index.tolist(), update.weight.tolist()
            return list(map(TupleResult, *tags, update.rows.to_lists(scales)))
        case EpochMarks():
            return [EpochResult(each.tick, coverage_as_json(each.coverage)) for each in update]
    raise TypeError(f"no update: {update!r}")


def _window(update: WindowUpdate, scales: Sequence[int | None]) -> WindowResult:
    added, removed = update.added.to_lists(scales), update.removed.to_lists(scales)
    return WindowResult(
        update.tick, update.n, update.t, update.revision, coverage_as_json(update.coverage), added, removed
    )

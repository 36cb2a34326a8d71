"""Answers as CSV: one header, then one line for each row that an update adds (`_weight` 1) or retracts (-1).

    _query,_tick,_n,_index,_revision,_weight,_used,_due,site,category
    1,600,1,,0,1,43,44,3,hot

`_n`, `_revision` and the coverage belong to windows, `_index` to streams; `_used` and `_due` add up the readings of all sensed
extents. `_t` exists if a query has a loop, and `_time` if times are shown. Several queries share one
header with the columns of all of them; a line leaves the columns of other queries empty. Repeated names of one query get
numbers. Null is an empty field and the empty string is `""`, as in inputs. Windows without rows, the ledger and answers that were
skipped have no place in a table of rows; `-o json` has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from acquisition.arrays import IntArray
from acquisition.sources.arrow_arrays import numbers_to_arrow, strings_to_arrow
from basestation.replay.column_text import (
    Lines,
    join_columns,
    lines_of,
    numbers,
    sequence_of,
    text_of,
    write_updates,
)
from basestation.replay.shortened_clock import SkippedAnswers
from basestation.replay.tick_times import TickTimes
from basestation.results.schema import ResultSchema, make_unique
from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    LoopVariable,
    Rows,
    TupleUpdates,
    Update,
    Value,
    WindowUpdates,
)

Ledger = Mapping[str, Mapping[str, int]]
"""Deliveries of each extent, counted by fate."""
_NO_LINES = strings_to_arrow([])


class CsvOutput:
    """The text of CSV for the updates of a replay."""

    def __init__(self, queries: Sequence[ResultSchema], times: TickTimes | None = None) -> None:
        """With `times`, a column has the time of each tick."""
        self._times = times
        self._queries = {query.number: query for query in queries}
        self._loops = any(query.has_loops for query in queries)
        self._header: list[str] = []
        self._places: dict[int, list[int]] = {}
        for query in queries:
            names = make_unique([column.label for column in query.columns])
            self._header += [name for name in names if name not in self._header]
            self._places[query.number] = [self._header.index(name) for name in names]

    def begin(self) -> str:
        """The header."""
        system = ["_query", "_tick", *(["_time"] if self._times else []), "_n", *(["_t"] if self._loops else [])]
        system += ["_index", "_revision", "_weight", "_used", "_due"]
        return ",".join(map(field, system + self._header)) + "\n"

    def updates(self, updates: Iterable[Update]) -> str:
        """The lines of updates, those of several queries in the order of ticks."""
        return write_updates(updates, self._lines)

    def skipped(self, stretches: Iterable[SkippedAnswers]) -> str:
        """Nothing: a line is a row of one answer. The command prints what was left out with the ledger."""
        return ""

    def end(self, until: int, ledger: Ledger) -> str:
        """Nothing: CSV has no place for the ledger."""
        return ""

    def _lines(self, update: Update) -> Lines | None:
        if not isinstance(update, WindowUpdates | TupleUpdates | EpochMarks | Interleaved) or not len(update):
            return None
        match update:
            case WindowUpdates():
                return self._windows(update)
            case TupleUpdates():
                return lines_of(update.tick, slice(None), self._tuples(update))
            case EpochMarks():
                return lines_of(update.tick, slice(0, 0), _NO_LINES)
            case Interleaved():
                ticks, at, _ = sequence_of(update)
                return lines_of(ticks, at, self._tuples(replace(update.tuples, query=update.query)))

    def _tuples(self, update: TupleUpdates) -> Any:
        t = [""] if self._loops else []
        tags = [*self._when(update.tick), "", *t, numbers(update.index), "", numbers(update.weight), "", ""]
        return self._line(update.query, tags, self._cells(update.query, update.rows))

    def _windows(self, update: WindowUpdates) -> Lines:
        """For each window the rows that it removes, then those that it adds."""
        removed, added = (
            np.repeat(np.arange(len(update)), np.diff(offsets))
            for offsets in (update.removed_offsets, update.added_offsets)
        )
        weight: IntArray = np.repeat([-1, 1], [len(removed), len(added)])
        window = np.concatenate([removed, added])
        cells = self._cells(update.query, update.removed, update.added)
        if len(removed):
            order = np.lexsort((weight, window))
            window, weight = window[order], weight[order]
            cells = [text.take(numbers_to_arrow(order)) for text in cells]
        t = []
        if self._loops:
            t = [strings_to_arrow([field(_t(of)) for of in update.t.tolist()]).take(numbers_to_arrow(window))]
        n, revision = (numbers(array[window]) for array in (update.n, update.revision))
        counted = [of for of in update.coverage.values() if of is not None]
        used, due = (numbers(np.sum([of[at] for of in counted], 0)[window]) if counted else "" for at in (0, 1))
        tags = [*self._when(update.tick[window]), n, *t, "", revision, numbers(weight), used, due]
        text = self._line(update.query, tags, cells)
        return lines_of(update.tick, window, text)

    def _when(self, tick: IntArray) -> list[Any]:
        return [numbers(tick), *([] if self._times is None else [self._times.column(tick)])]

    def _cells(self, query: int, *parts: Rows) -> list[Any]:
        """The columns of rows as text; with several parts, one after the other."""
        scales = self._queries[query].scales
        texts = [
            [text_of(column, scale, field) for column, scale in zip(rows.columns, scales, strict=True)]
            for rows in parts
        ]
        return list(map(pa.concat_arrays, zip(*texts, strict=True)))

    def _line(self, query: int, tags: Sequence[Any], cells: Sequence[Any]) -> Any:
        """The lines of rows: `tags` are the fields before those of the header."""
        values: list[Any] = [""] * len(self._header)
        for place, cell in zip(self._places[query], cells, strict=True):
            values[place] = cell
        pieces: list[Any] = [str(query)]
        for value in (*tags, *values):
            pieces += [",", value]
        return join_columns([*pieces, "\n"], "")


def field(value: Value) -> str:
    """A value as a CSV field: null is empty, text is quoted where necessary."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value) if isinstance(value, float) else str(value)
    if value == "" or any(c in value for c in '",\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _t(t: LoopVariable) -> Value:
    return " ".join(map(str, t)) if isinstance(t, tuple | list) else t

"""Answers as JSON, one object for each line: the lines of `results.wire`, and at the end

    {"type":"end","until":3600,"ledger":{"road":{"received":44, …}}}

Empty windows have lines too. Those of a long stretch without data are one line; each has the rows of the window before:

    {"type":"skipped","query":1,"from":1000,"to":9000000,"count":8999001}
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

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
from basestation.replay.csv_output import Ledger
from basestation.replay.shortened_clock import SkippedAnswers
from basestation.replay.tick_times import TickTimes
from basestation.results.schema import ResultSchema
from basestation.results.wire import Json, schema_as_json, update_as_json
from basestation.updates.update import EpochMarks, Interleaved, PunctuationUpdate, TupleUpdates, Update, WindowUpdates

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class JsonOutput:
    """The text of JSON for the updates of a replay."""

    def __init__(self, queries: Sequence[ResultSchema], times: TickTimes | None = None) -> None:
        """With `times`, each line has the time of its tick."""
        self._times = times
        self._scales = {query.number: query.scales for query in queries}
        self._queries = queries

    def begin(self) -> str:
        """The schema of each query."""
        return "".join(_encode(schema_as_json(query)) + "\n" for query in self._queries)

    def updates(self, updates: Iterable[Update]) -> str:
        """The lines of updates, those of several queries in the order of ticks."""
        return write_updates(updates, self._lines)

    def skipped(self, stretches: Iterable[SkippedAnswers]) -> str:
        """A line for the answers of each query that were left out."""
        lines = []
        for each in stretches:
            line: Json = {"type": "skipped", "query": each.query, "from": each.first, "to": each.last}
            if self._times is not None:
                line |= {"from_time": self._times.text(each.first), "to_time": self._times.text(each.last)}
            line["count"] = each.count
            lines.append(_encode(line | {"tuples": True} if each.tuples else line) + "\n")
        return "".join(lines)

    def end(self, until: int, ledger: Ledger) -> str:
        """The last clock tick and the ledger."""
        counts = {name: dict(counts) for name, counts in ledger.items()}
        return _encode({"type": "end", "until": until, "ledger": counts}) + "\n"

    def _lines(self, update: Update) -> Lines | None:
        match update:
            case TupleUpdates() if len(update):
                return lines_of(update.tick, slice(None), self._tuples(update))
            case Interleaved() if len(update):
                ticks, tuples, marks = sequence_of(update)
                text = pa.concat_arrays(
                    [
                        self._tuples(replace(update.tuples, query=update.query)),
                        self._encoded(replace(update.marks, query=update.query)),
                    ]
                )
                order = np.argsort(np.concatenate([tuples, marks]))
                return lines_of(ticks, slice(None), text.take(numbers_to_arrow(order)))
            case WindowUpdates() | EpochMarks() if len(update):
                return lines_of(update.tick, slice(None), self._encoded(update))
            case PunctuationUpdate():
                return lines_of(np.array([update.tick]), slice(None), self._encoded(update))
        return None

    def _encoded(self, update: Update) -> Any:
        """A line for each window or mark."""
        lines: Iterable[Json] = update_as_json(update, self._scales[update.query])
        if self._times is not None:
            lines = [line | {"time": self._times.text(line["tick"])} for line in lines]
        return strings_to_arrow([_encode(line) + "\n" for line in lines])

    def _tuples(self, update: TupleUpdates) -> Any:
        """The same lines as those of `update_as_json`, made by column."""
        pieces: list[Any] = [f'{{"type":"tuple","query":{update.query},"tick":', numbers(update.tick), ',"index":']
        pieces += [numbers(update.index), ',"weight":', numbers(update.weight), ',"row":[']
        for column, scale in zip(update.rows.columns, self._scales[update.query], strict=True):
            pieces += [text_of(column, scale, _encode), ","]
        time = [] if self._times is None else [',"time":"', self._times.column(update.tick), '"']
        return join_columns([*pieces[: -1 if update.rows.columns else None], "]", *time, "}\n"], "null")

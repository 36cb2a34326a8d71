"""Answers as CSV: one header, then one line for each row that an update adds (`_weight` 1) or retracts (-1).

    _query,_tick,_n,_index,_revision,_weight,site,category
    1,600,1,,0,1,3,hot

`_n` and `_revision` belong to windows, `_index` to streams; `_t` exists if a query has a loop. Several queries share one
header with the columns of all of them; a line leaves the columns of other queries empty. Repeated names of one query get
numbers. Null is an empty field and the empty string is `""`, as in inputs. Windows without rows, coverage and the ledger
have no place in a table of rows; `-o json` has them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from basestation.results.schema import ResultSchema
from basestation.updates.update import LoopVariable, PlainUpdate, TupleUpdates, Value, WindowUpdate, WindowUpdates

Ledger = Mapping[str, Mapping[str, int]]
"""Deliveries of each extent, counted by fate."""


class CsvLines:
    """The lines of CSV for the updates of a replay."""

    def __init__(self, queries: Sequence[ResultSchema]) -> None:
        self._queries = {query.number: query for query in queries}
        self._loops = any(query.has_loops for query in queries)
        self._header: list[str] = []
        self._places: dict[int, list[int]] = {}
        for query in queries:
            names = _make_unique([column.label for column in query.columns])
            self._header += [name for name in names if name not in self._header]
            self._places[query.number] = [self._header.index(name) for name in names]

    def begin(self) -> Iterator[str]:
        """The header."""
        system = ["_query", "_tick", "_n", *(["_t"] if self._loops else []), "_index", "_revision", "_weight"]
        yield ",".join(map(field, system + self._header))

    def update(self, update: PlainUpdate) -> Iterator[str]:
        """The lines of an update."""
        scales = self._queries[update.query].scales
        match update:
            case WindowUpdates():
                for each in update:
                    yield from self._window(each, scales)
            case TupleUpdates():
                blank = [None] * (2 if self._loops else 1)
                tags = zip(update.tick.tolist(), update.index.tolist(), update.weight.tolist(), strict=True)
                for (tick, index, weight), row in zip(tags, update.rows.to_lists(scales), strict=True):
                    yield self._line(update.query, [tick, *blank, index, None, weight], row)

    def end(self, until: int, ledger: Ledger) -> Iterable[str]:
        """Nothing: CSV has no place for the ledger."""
        return ()

    def _window(self, update: WindowUpdate, scales: Sequence[int | None]) -> Iterator[str]:
        t = [_t(update.t)] if self._loops else []
        for weight, rows in ((-1, update.removed), (1, update.added)):
            for row in rows.to_lists(scales):
                yield self._line(update.query, [update.tick, update.n, *t, None, update.revision, weight], row)

    def _line(self, query: int, tags: Sequence[Value], row: Sequence[Value]) -> str:
        values: list[Value] = [None] * len(self._header)
        for place, value in zip(self._places[query], row, strict=True):
            values[place] = value
        return ",".join(map(field, [query, *tags, *values]))


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


def _make_unique(names: Iterable[str]) -> list[str]:
    """The names, with a number after each repetition."""
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found

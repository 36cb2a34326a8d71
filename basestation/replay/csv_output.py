"""Answers as CSV: one header, one line for each row that is given (`_weight` 1) or taken back (-1).

    _query,_tick,_n,_index,_revision,_weight,site,category
    1,600,1,,0,1,3,hot

`_n` and `_revision` are of windows, `_index` is of streams, `_t` is there if a query has a loop. Several queries share the
header: it has the columns of all of them, and a line leaves empty what is not its query's. A column whose name stands
more than once in a query gets a number. Null is an empty field, the empty string is `""`, as inputs have it. Windows
without rows, coverage and the ledger do not fit into a table of rows; `-o json` has them.
"""

from basestation.updates.update import TupleUpdates, WindowUpdates


class CsvLines:
    def __init__(self, queries):
        self._queries = {query.number: query for query in queries}
        self._loops = any(query.has_loops for query in queries)
        self._header, self._places = [], {}
        for query in queries:
            names = _told_apart([column.label for column in query.columns])
            self._header += [name for name in names if name not in self._header]
            self._places[query.number] = [self._header.index(name) for name in names]

    def begin(self):
        system = ["_query", "_tick", "_n", *(["_t"] if self._loops else []), "_index", "_revision", "_weight"]
        yield ",".join(map(field, system + self._header))

    def update(self, update):
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

    def end(self, until, ledger):
        return ()

    def _window(self, update, scales):
        t = [_t(update.t)] if self._loops else []
        for weight, rows in ((-1, update.removed), (1, update.added)):
            for row in rows.to_lists(scales):
                yield self._line(update.query, [update.tick, update.n, *t, None, update.revision, weight], row)

    def _line(self, query, tags, row):
        values = [None] * len(self._header)
        for place, value in zip(self._places[query], row, strict=True):
            values[place] = value
        return ",".join(map(field, [query, *tags, *values]))


def field(value):
    """A value as a field: null is nothing, text is quoted where it has to be."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value) if isinstance(value, float) else str(value)
    if value == "" or any(c in value for c in '",\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _t(t):
    return " ".join(map(str, t)) if isinstance(t, tuple | list) else t


def _told_apart(names):
    """The names, a number behind those that stood before."""
    found = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found

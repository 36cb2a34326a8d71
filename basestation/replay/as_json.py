"""Answers as JSON, one object a line.

    {"type":"schema","query":1,"kind":"window","columns":[{"name":"site","type":"integer"}, …]}
    {"type":"window","query":1,"tick":600,"n":1,"revision":0,"coverage":{"road":[44,44]},"rows":[[3,"hot"], …]}
    {"type":"window","query":1,"tick":600,"n":1,"revision":1,"coverage":{…},"removed":[[…]],"added":[[…]]}
    {"type":"tuple","query":1,"tick":600,"index":7,"weight":1,"row":[3,"hot"]}
    {"type":"epoch","query":1,"tick":600,"coverage":{"road":[4,4]}}
    {"type":"end","until":3600,"ledger":{"road":{"received":44, …}}}

Every window is there, an empty one too; windows of a loop have "t". Coverage of a pushed extent is null.
"""

import json

from basestation.replay.result import coverage_of
from basestation.revisions.answers import EpochMark, TupleUpdates, WindowUpdate

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class JsonLines:
    """Lines of text for what happens in a replay."""

    def __init__(self, queries):
        self._scales = {query.number: query.scales for query in queries}
        self._queries = queries

    def begin(self):
        for query in self._queries:
            columns = [
                {"name": c.label, "type": str(c.type)}
                | {key: value for key, value in (("scale", c.scale), ("unit", c.unit)) if value is not None}
                for c in query.columns
            ]
            yield _encode({"type": "schema", "query": query.number, "kind": query.kind, "columns": columns})

    def update(self, update):
        scales = self._scales[update.query]
        match update:
            case WindowUpdate():
                yield _encode(_window(update, scales))
            case TupleUpdates():
                tags = zip(update.tick.tolist(), update.index.tolist(), update.weight.tolist(), strict=True)
                for (tick, index, weight), row in zip(tags, update.rows.to_lists(scales), strict=True):
                    yield _encode(
                        {
                            "type": "tuple",
                            "query": update.query,
                            "tick": tick,
                            "index": index,
                            "weight": weight,
                            "row": row,
                        }
                    )
            case EpochMark():
                yield _encode(
                    {
                        "type": "epoch",
                        "query": update.query,
                        "tick": int(update.tick),
                        "coverage": coverage_of(update.coverage),
                    }
                )

    def end(self, until, ledger):
        yield _encode(
            {"type": "end", "until": until, "ledger": {name: dict(counts) for name, counts in ledger.items()}}
        )


def _window(update, scales):
    line = {"type": "window", "query": update.query, "tick": int(update.tick), "n": int(update.n)}
    if update.t is not None:
        line["t"] = update.t
    line |= {"revision": update.revision, "coverage": coverage_of(update.coverage)}
    if update.revision == 0:
        return line | {"rows": update.added.to_lists(scales)}
    return line | {"removed": update.removed.to_lists(scales), "added": update.added.to_lists(scales)}

"""Answers as JSON, one object a line: those of `results.wire`, and at the end

    {"type":"end","until":3600,"ledger":{"road":{"received":44, …}}}

Every window is there, an empty one too.
"""

import json

from basestation.results.wire import schema_as_json, update_as_json

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class JsonLines:
    """Lines of text for what happens in a replay."""

    def __init__(self, queries):
        self._scales = {query.number: query.scales for query in queries}
        self._queries = queries

    def begin(self):
        return (_encode(schema_as_json(query)) for query in self._queries)

    def update(self, update):
        return map(_encode, update_as_json(update, self._scales[update.query]))

    def end(self, until, ledger):
        yield _encode(
            {"type": "end", "until": until, "ledger": {name: dict(counts) for name, counts in ledger.items()}}
        )

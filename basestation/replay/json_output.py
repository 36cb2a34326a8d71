"""Answers as JSON, one object for each line: the lines of `results.wire`, and at the end

    {"type":"end","until":3600,"ledger":{"road":{"received":44, …}}}

Empty windows have lines too.
"""

import json
from collections.abc import Iterator, Sequence

from basestation.replay.csv_output import Ledger
from basestation.results.schema import ResultSchema
from basestation.results.wire import schema_as_json, update_as_json
from basestation.updates.update import PlainUpdate

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class JsonLines:
    """The lines of JSON for the updates of a replay."""

    def __init__(self, queries: Sequence[ResultSchema]) -> None:
        self._scales = {query.number: query.scales for query in queries}
        self._queries = queries

    def begin(self) -> Iterator[str]:
        """The schema of each query."""
        return (_encode(schema_as_json(query)) for query in self._queries)

    def update(self, update: PlainUpdate) -> Iterator[str]:
        """The lines of an update."""
        return map(_encode, update_as_json(update, self._scales[update.query]))

    def end(self, until: int, ledger: Ledger) -> Iterator[str]:
        """The last clock tick and the ledger."""
        yield _encode(
            {"type": "end", "until": until, "ledger": {name: dict(counts) for name, counts in ledger.items()}}
        )

"""Domain values as JSON: pages of a feed, and errors as problem details (RFC 9457)."""

from collections.abc import Sequence
from typing import Any

from acquisition.ticks import rfc3339_of
from basestation.results.feed import NumberedUpdate
from basestation.results.schema import ResultSchema
from basestation.results.wire import schema_as_json, update_as_json
from gateway.errors import MoteloomError

PROBLEM = "application/problem+json"


class HttpProblemError(MoteloomError):
    """An error as a client sees it. `code` is stable, `remedy` says how to fix it."""

    def __init__(self, status: int, code: str, title: str, remedy: str | None = None) -> None:
        super().__init__(title)
        self.status, self.code, self.title, self.remedy = status, code, title, remedy

    def as_json(self) -> dict[str, Any]:
        found = {"type": "about:blank", "title": self.title, "status": self.status, "code": self.code}
        return found | ({"detail": self.remedy} if self.remedy else {})


def results_as_json(
    schema: ResultSchema, after: int, updates: Sequence[NumberedUpdate], tick_ms: int
) -> dict[str, Any]:
    """One page of a query's feed; the client passes `next` as `after` to get the following page."""
    lines = [line for numbered in updates for line in _lines(numbered, schema, tick_ms)]
    header = schema_as_json(schema)
    return {
        "query": schema.number,
        "kind": header["kind"],
        "columns": header["columns"],
        "updates": lines,
        "next": lines[-1]["number"] if lines else after,
    }


def _lines(numbered: NumberedUpdate, schema: ResultSchema, tick_ms: int) -> list[dict[str, Any]]:
    """The lines that a replay prints, each with its number in the feed and its tick as an RFC 3339 time."""
    return [
        {"number": number} | line | {"time": rfc3339_of(line["tick"], tick_ms)}
        for number, line in enumerate(update_as_json(numbered.update, schema.scales), numbered.number)
    ]

"""Domain values as JSON: pages of a feed, and problems as RFC 9457 wants them."""

from collections.abc import Sequence
from typing import Any

from acquisition.ticks import rfc3339_of
from basestation.results.feed import NumberedUpdate
from basestation.results.schema import ResultSchema
from basestation.results.wire import schema_as_json, update_as_json
from gateway.errors import MoteloomError

PROBLEM = "application/problem+json"


class HttpProblemError(MoteloomError):
    """An error as a client sees it. `code` is stable, `remedy` says what would help."""

    def __init__(self, status: int, code: str, title: str, remedy: str | None = None) -> None:
        super().__init__(title)
        self.status, self.code, self.title, self.remedy = status, code, title, remedy

    def as_json(self) -> dict[str, Any]:
        found = {"type": "about:blank", "title": self.title, "status": self.status, "code": self.code}
        return found | ({"detail": self.remedy} if self.remedy else {})


def results_as_json(shape: ResultSchema, after: int, updates: Sequence[NumberedUpdate], tick_ms: int) -> dict[str, Any]:
    """A stretch of a query's feed; `next` is what to ask for `after` next time."""
    lines = [line for numbered in updates for line in _lines(numbered, shape, tick_ms)]
    schema = schema_as_json(shape)
    return {
        "query": shape.number,
        "kind": schema["kind"],
        "columns": schema["columns"],
        "updates": lines,
        "next": lines[-1]["number"] if lines else after,
    }


def _lines(numbered: NumberedUpdate, shape: ResultSchema, tick_ms: int) -> list[dict[str, Any]]:
    """What replays print, with its number in the feed and its tick in the world's time."""
    return [
        {"number": number} | line | {"time": rfc3339_of(line["tick"], tick_ms)}
        for number, line in enumerate(update_as_json(numbered.update, shape.scales), numbered.number)
    ]

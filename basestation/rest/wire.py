"""Domain values as JSON: updates, and problems as RFC 9457 wants them."""

from collections.abc import Sequence
from typing import Any

from acquisition.instants import rfc3339_of
from basestation.results.feed import Numbered

PROBLEM = "application/problem+json"


class Problem(Exception):
    """An error as a client sees it. `code` is stable, `remedy` says what would help."""

    def __init__(self, status: int, code: str, title: str, remedy: str | None = None) -> None:
        super().__init__(title)
        self.status, self.code, self.title, self.remedy = status, code, title, remedy

    def as_json(self) -> dict[str, Any]:
        found = {"type": "about:blank", "title": self.title, "status": self.status, "code": self.code}
        return found | ({"detail": self.remedy} if self.remedy else {})


def results_as_json(query: int, after: int, updates: Sequence[Numbered], tick_ms: int) -> dict[str, Any]:
    """A stretch of a query's feed; `next` is what to ask for `after` next time."""
    return {
        "query": query,
        "updates": [update_as_json(numbered, tick_ms) for numbered in updates],
        "next": updates[-1].number if updates else after,
    }


def update_as_json(numbered: Numbered, tick_ms: int) -> dict[str, Any]:
    update = numbered.update
    return {
        "number": numbered.number,
        "tick": update.tick,
        "time": rfc3339_of(update.tick, tick_ms),
        "n": update.n,
        "revision": update.revision,
        "coverage": list(update.coverage) if update.coverage else None,
        "columns": list(update.columns),
        "rows": [list(row) for row in update.rows()],
        "weights": update.weight.tolist(),
    }

"""Errors as problem details (RFC 9457)."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import MoteloomError

LARGEST = 2**53
"""No number of an update, query or event is larger, so that every JSON reader has them exactly."""
LOOK_SECONDS = 0.2
"""How often a waiting request looks for something new."""
PROBLEM = "application/problem+json"


class HttpProblemError(MoteloomError):
    """An error as a client sees it. `code` is stable, `remedy` says how to fix it, `more` are further members."""

    def __init__(
        self, status: int, code: str, title: str, remedy: str | None = None, more: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(title)
        self.status, self.code, self.title, self.remedy, self.more = status, code, title, remedy, more or {}
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        found = {"type": "about:blank", "title": self.title, "status": self.status, "code": self.code}
        return found | ({"detail": self.remedy} if self.remedy else {}) | self.more

"""Errors as problem details (RFC 9457)."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header

from gateway.errors import MoteloomError

LARGEST = 2**53
"""No number of an update, query or event is larger, so that every JSON reader has them exactly."""
LOOK_SECONDS = 0.2
"""How often a waiting request looks for something new."""
PROBLEM = "application/problem+json"
EVENT_STREAM = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
"""How often a silent event stream sends a comment, so that proxies keep it open."""
LastEventId = Annotated[str | None, Header(pattern=r"^([0-9a-f]{8}-)?[0-9]{1,15}$")]
"""`epoch-number` of the last event that a client has of a stream, or only its number."""


def encode_json(value: object) -> bytes:
    """JSON as bytes. FastAPI would walk through every value before it encodes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


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


def read_last_event(given: str, epoch: str, newest: int) -> int:
    """The number of a Last-Event-ID. HttpProblemError where its numbers have begun anew since, or it is of no event yet."""
    of_epoch, _, number = given.rpartition("-")
    if of_epoch not in ("", epoch):
        raise HttpProblemError(
            410, "results-gone", "the station was restored from a backup since: its numbers begin anew",
            f"begin with after=0&epoch={epoch}",
        )  # fmt: skip
    if int(number) > newest:
        raise HttpProblemError(
            422, "from-the-future", f"Last-Event-ID is {int(number)}, and the newest event has the number {newest}",
            f"send the id of an event of this stream, or begin anew with after={newest}",
        )  # fmt: skip
    return int(number)

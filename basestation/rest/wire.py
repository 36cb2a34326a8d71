"""Errors as problem details (RFC 9457)."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header

from acquisition.ticks import tick_of_rfc3339
from gateway.errors import MoteloomError

LARGEST = 2**53
"""No number of an update, query or event is larger, so that every JSON reader has them exactly."""
LOOK_SECONDS = 0.2
"""How often a waiting request looks for something new."""
PROBLEM = "application/problem+json"
EVENT_STREAM = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
"""How often a silent event stream sends a comment, so that proxies keep it open."""
LastEventId = Annotated[
    str | None,
    Header(
        pattern=r"^([0-9a-f]{8}-([0-9]{1,15}-)?)?[0-9]{1,15}$",
        description="the id of the last event that you have of this stream, or only its number",
    ),
]
"""`epoch-query-number` of the last event that a client has of the results of a query, `epoch-number` of one of another stream."""


def encode_json(value: object) -> bytes:
    """JSON as bytes. FastAPI would walk through every value before it encodes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def restore_plus(moment: str | None) -> str | None:
    """A moment with the `+` of its offset or zone, which an URL turns into a space where it is not sent as `%2B`."""
    return None if moment is None else re.sub(r"^ |(?<=:\d\d) (?=\d\d:\d\d$)", "+", moment)


def read_moment(name: str, given: str | None) -> int | None:
    """The ms since 1970 of a parameter: RFC 3339, or so many ms, as dashboards send them. HttpProblemError where it is neither."""
    moment = restore_plus(given)
    if moment is None:
        return None
    if re.fullmatch(r"[0-9]{1,15}", moment):
        return int(moment)
    try:
        return tick_of_rfc3339(moment, 1)
    except (ValueError, OverflowError):
        raise HttpProblemError(
            422, "bad-request", f"`{name}` is no time: {moment}",
            "send RFC 3339 such as 2026-11-19T08:00:00Z, or ms since 1970 such as 1795075200000",
        ) from None  # fmt: skip


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


def read_last_event(given: str, epoch: str, newest: int, query: int | None = None) -> int:
    """The number of a Last-Event-ID, of the results of a query or of events of the station.

    HttpProblemError where its numbers have begun anew since, it is of another stream, or of no event yet.
    """
    *stream, number = given.split("-")
    if stream and stream[0] == epoch and stream[1:] != ([] if query is None else [str(query)]):
        of = f"the results of query {stream[1]}" if stream[1:] else "the events of the station"
        raise HttpProblemError(
            422, "other-stream", f"Last-Event-ID {given} is of {of}",
            f"send the id of an event of this stream, or begin anew with after={newest}",
        )  # fmt: skip
    if stream and stream[0] != epoch:
        raise HttpProblemError(
            410, "results-gone", "the station was restored from a backup since: its numbers begin anew",
            f"begin with after=0&epoch={epoch}",
        )  # fmt: skip
    check_begin("Last-Event-ID", int(number), newest)
    return int(number)


def check_begin(name: str, number: int, newest: int) -> None:
    """HttpProblemError where a stream would begin behind an event that does not exist yet; `name` is the parameter."""
    if number > newest:
        raise HttpProblemError(
            422, "from-the-future", f"{name} is {number}, and the newest event has the number {newest}",
            f"send the number of an event of this stream, or begin anew with after={newest}",
        )  # fmt: skip

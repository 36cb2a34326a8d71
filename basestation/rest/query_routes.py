"""The routes of queries: submit, list, show, stop."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.wire import HttpProblemError

LONGEST_TEXT = 100_000
"""Characters of a query text; the parser reads ten thousand in 0.02 s."""
_EXAMPLE = 'send SNEEql as text/plain, or JSON such as {"text": "SELECT temp FROM road [NOW]"}'


def query_routes(control: StationControl) -> APIRouter:
    """The routes below /v1/queries that are not about results."""
    router = APIRouter()

    @router.post("/v1/queries", status_code=201, summary="Submit a query")
    async def submit(
        request: Request, key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None
    ) -> Any:
        text = await _text_of(request)
        return await run_in_threadpool(control.submit, text, key)

    @router.get("/v1/queries", summary="All queries, the oldest first")
    def queries(
        after: Annotated[int, Query(ge=0, description="the number of the last query that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        state: Annotated[str | None, Query(description="deploying, running, finished, stopped or failed")] = None,
    ) -> dict[str, Any]:
        chosen = [each for each in control.queries() if each["number"] > after and state in (None, each["state"])][
            :limit
        ]
        return {"queries": chosen, "next": chosen[-1]["number"] if chosen else after}

    @router.get("/v1/queries/{number}", summary="One query")
    def query(number: int) -> Any:
        try:
            return control.query(number)
        except KeyError:
            raise no_such_query(number, control) from None

    @router.post("/v1/queries/{number}/stop", summary="Stop a query; its results stay")
    def stop(number: int) -> Any:
        try:
            return control.stop(number)
        except KeyError:
            raise no_such_query(number, control) from None

    return router


async def _text_of(request: Request) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > 4 * LONGEST_TEXT:
            raise HttpProblemError(413, "too-long", f"a text has at most {LONGEST_TEXT:,} characters")
    try:
        text = body.decode("utf-8")
        if request.headers.get("content-type", "text/plain").startswith("application/json"):
            found = json.loads(text)
            text = found["text"]
            _check_keys(found, ("text",))
        if not isinstance(text, str):
            raise TypeError
        text.encode("utf-8")  # JSON may hold halves of characters, which no file can
    except (UnicodeError, json.JSONDecodeError, KeyError, TypeError, RecursionError):
        raise HttpProblemError(422, "bad-request", "the body is no query", _EXAMPLE) from None
    if len(text) > LONGEST_TEXT:
        raise HttpProblemError(413, "too-long", f"a text has at most {LONGEST_TEXT:,} characters")
    return text


def _check_keys(given: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise HttpProblemError(422, "bad-request", f"there is no key `{unknown[0]}`", _EXAMPLE)


def no_such_query(number: int, control: StationControl) -> HttpProblemError:
    """The problem of a number that no query has."""
    known = [each["number"] for each in control.queries()]
    remedy = f"queries are {known[0]} to {known[-1]}" if known else "none has been submitted yet: POST /v1/queries"
    return HttpProblemError(404, "no-such-query", f"there is no query {number}", remedy)

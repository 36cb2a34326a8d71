"""The routes of queries: submit, list, show, pause, resume, replace, stop."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.access import NAME_PATTERN
from basestation.rest.control import JsonObject, StationControl
from basestation.rest.guarded_control import GuardedControl
from basestation.rest.prepared_answers import PreparedAnswers
from basestation.rest.wire import LARGEST, HttpProblemError, encode_json

LONGEST_TEXT = 100_000
"""Characters of a query text; the parser reads ten thousand in 0.02 s."""
_EXAMPLE = 'send SNEEql as text/plain, or JSON such as {"text": "SELECT temp FROM road [NOW]", "name": "road-temp"}'
_LIMITS_RULE = 'send {"text": "SELECT …", "limits": {"results": 1000}}: how many of its newest updates are kept'
_NAME_RULE = "a name begins with a letter and has up to 64 letters, digits, `-` and `_`"
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
Name = Annotated[str | None, Query(description=_NAME_RULE)]
Active = Annotated[
    str | None, Query(max_length=200, description="hours at which it runs: `06:00-18:00 mon-fri Europe/Berlin`")
]


class State(Enum):
    """The states of a query."""

    DEPLOYING = "deploying"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


def query_routes(control: GuardedControl) -> APIRouter:
    """The routes below /v1/queries that are not about results."""
    router, prepared = APIRouter(), PreparedAnswers()

    @router.post("/v1/queries", status_code=201, summary="Submit a query")
    async def submit(
        request: Request,
        response: Response,
        key: Key = None,
        name: Name = None,
        active: Active = None,
        dry_run: Annotated[bool, Query(description="plan it and say what it would cost; nothing runs")] = False,
    ) -> Any:
        given = await read_query(request, name)
        if dry_run:
            response.status_code = 200
            return await run_in_threadpool(control.dry_run, given.text, given.name, given.owner)
        return await run_in_threadpool(control.submit, given.text, key, given.name, given.owner, active, given.keep)

    @router.get("/v1/queries", summary="All queries, the oldest first")
    async def queries(
        after: Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last query that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        state: State | None = None,
        owner: Annotated[str | None, Query(max_length=200, description="only those of a user")] = None,
        extent: Annotated[str | None, Query(max_length=200, description="only those that read an extent")] = None,
    ) -> Response:
        asked, (version, _) = (control.visible_owner, after, limit, state, owner, extent), control.versions()
        body = prepared.find(asked, version)
        if body is None:
            chosen = await run_in_threadpool(
                control.queries, after, limit, None if state is None else state.value, owner, extent
            )
            answer = {"queries": chosen, "next": chosen[-1]["number"] if chosen else after}
            body = prepared.keep(asked, version, encode_json(answer))
        return Response(body, media_type="application/json")

    @router.get("/v1/queries/{query}", summary="One query, by number or name; its ETag is its number")
    def query(query: str, response: Response) -> Any:
        try:
            found = control.query(query)
            response.headers["etag"] = f'"{found["number"]}"'
            return found
        except KeyError:
            raise no_such_query(query, control) from None

    @router.get(
        "/v1/queries/{query}/plan",
        summary="The plan of a query: meaning, rewrites, operators, its work on motes; as text with Accept: text/plain",
    )
    def plan(request: Request, query: str) -> Any:
        try:
            found, rendered = control.plan(query)
        except KeyError:
            raise no_such_query(query, control) from None
        return PlainTextResponse(rendered) if "text/plain" in request.headers.get("accept", "") else found

    @router.get("/v1/queries/{query}/account", summary="The counts of a query, and its share of the cost")
    def account(query: str) -> Any:
        try:
            return control.account(query)
        except KeyError:
            raise no_such_query(query, control) from None

    def change(query: str, kind: str, key: str | None) -> Any:
        try:
            return control.change(query, kind, key)
        except KeyError:
            raise no_such_query(query, control) from None

    @router.post("/v1/queries/{query}/stop", summary="Stop a query; its results stay")
    def stop(
        query: str,
        drain: Annotated[
            bool, Query(description="first take the readings of windows up to now that are on their way")
        ] = False,
        key: Key = None,
    ) -> Any:
        return change(query, "drain" if drain else "stop", key)

    @router.post("/v1/queries/{query}/pause", summary="Let a query run no more until it is resumed")
    def pause(query: str, key: Key = None) -> Any:
        return change(query, "pause", key)

    @router.post(
        "/v1/queries/{query}/resume", summary="Run a paused or failed query again, for the windows from now on"
    )
    def resume(query: str, key: Key = None) -> Any:
        return change(query, "resume", key)

    @router.post("/v1/queries/{query}/replace", status_code=201, summary="Submit a query in the place of another")
    async def replace(
        request: Request,
        query: str,
        key: Key = None,
        name: Name = None,
        active: Active = None,
        if_match: Annotated[
            str | None,
            Header(pattern=r'^("[0-9]{1,15}"|\*)$', description="412 unless the name is still that of this number"),
        ] = None,
    ) -> Any:
        given = await read_query(request, name)
        if given.owner is not None:
            raise HttpProblemError(
                422, "bad-request", "a query keeps the owner of the one it replaces", "leave `owner` out"
            )
        try:
            if if_match is not None:
                query = await run_in_threadpool(_match, query, if_match)
            return await run_in_threadpool(
                control.replace, query, given.text, key, given.name, None, active, given.keep
            )
        except KeyError:
            raise no_such_query(query, control) from None

    def _match(query: str, if_match: str) -> str:
        """The number of a query, so that a name that moves on meanwhile replaces no other."""
        number = str(control.find(query))
        if if_match not in ("*", f'"{number}"'):
            raise HttpProblemError(
                412, "changed-meanwhile", f"expected query {if_match}, found query {number}", "look at it, then repeat"
            )
        return number

    return router


async def read_body(request: Request, example: str, most: int | None = 4 * LONGEST_TEXT) -> str | JsonObject:
    """The body of a request: a text, or the object of its JSON. It has at most so many bytes; None for those of every request."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if most is not None and len(body) > most:
            raise HttpProblemError(413, "too-long", f"this body has at most {most:,} bytes", example)
    try:
        text = body.decode("utf-8")
        if request.headers.get("content-type", "text/plain").startswith("application/json"):
            found = json.loads(text)
            if not isinstance(found, dict):
                raise TypeError
            json.dumps(found, ensure_ascii=False).encode(
                "utf-8"
            )  # JSON may hold halves of characters, which no file can
            return found
    except (ValueError, TypeError, RecursionError):  # of numbers with thousands of digits too
        raise HttpProblemError(422, "bad-request", "the body cannot be read", example) from None
    return text


@dataclass(frozen=True, slots=True)
class SubmittedQuery:
    """A query as a client sends it; `keep` is how many of its newest updates are kept, None for as many as of every other."""

    text: str
    name: str | None
    owner: str | None = None
    keep: int | None = None


async def read_query(request: Request, name: str | None) -> SubmittedQuery:
    """A query to submit: the body, or its JSON keys `text`, `name`, `owner` and `limits`."""
    given = await read_body(request, _EXAMPLE)
    if isinstance(given, str):
        return SubmittedQuery(*_check_text(given, name))
    _check_keys(given, ("text", "name", "owner", "limits"))
    text, name = _check_text(given.get("text"), given.get("name", name))
    owner, limits = given.get("owner"), given.get("limits", {})
    if owner is not None and not (isinstance(owner, str) and re.fullmatch(NAME_PATTERN, owner)):
        raise HttpProblemError(422, "bad-request", "`owner` is no name of a user", _NAME_RULE)
    if not isinstance(limits, dict) or limits.keys() - {"results"}:
        raise HttpProblemError(422, "bad-request", "`limits` are unknown", _LIMITS_RULE)
    keep = limits.get("results")
    if keep is not None and not (type(keep) is int and 1 <= keep <= LARGEST):
        raise HttpProblemError(422, "bad-request", "the limit `results` is no whole number from 1 on", _LIMITS_RULE)
    return SubmittedQuery(text, name, owner, keep)


async def read_text(request: Request) -> str:
    """A text: the body, or its JSON key `text`."""
    given = await read_body(request, _EXAMPLE)
    if isinstance(given, str):
        return _check_text(given, None)[0]
    _check_keys(given, ("text", "name"))
    return _check_text(given.get("text"), given.get("name"))[0]


def _check_text(text: Any, name: Any) -> tuple[str, str | None]:
    if not isinstance(text, str):
        raise HttpProblemError(422, "bad-request", "the body is no query", _EXAMPLE)
    if len(text) > LONGEST_TEXT:
        raise HttpProblemError(413, "too-long", f"a text has at most {LONGEST_TEXT:,} characters")
    if name is not None and not (isinstance(name, str) and re.fullmatch(NAME_PATTERN, name)):
        raise HttpProblemError(422, "bad-request", "this cannot be the name of a query", _NAME_RULE)
    return text, name


def _check_keys(given: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise HttpProblemError(422, "bad-request", f"there is no key `{unknown[0]}`", _EXAMPLE)


def no_such_query(query: str, control: StationControl) -> HttpProblemError:
    """The problem of a number or name that no query has."""
    known = control.query_numbers()
    remedy = f"queries are {known[0]} to {known[1]}" if known else "none has been submitted yet: POST /v1/queries"
    return HttpProblemError(404, "no-such-query", f"there is no query {query[:80]}", remedy)

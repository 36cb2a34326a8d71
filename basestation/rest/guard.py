"""Guard: the first code that sees a request. It finds the holder of its token, or answers why there is none.

It stands before the routes as plain ASGI, so a path without a route is refused like every other. It keeps the limits of a
token, and writes the result of each change into the audit.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from basestation.rest.access import (
    LOCAL,
    PUBLIC,
    AccessStore,
    Principal,
    RequestRecord,
    current,
    is_audited,
    needed_scope,
)
from basestation.rest.limits import BodyBudget, RateLimiter, RequestLimits
from basestation.rest.request_body import RequestBody, describe_too_long
from basestation.rest.result_streams import PIECE_BYTES
from basestation.rest.sessions import COOKIE, Sessions
from basestation.rest.wire import HttpProblemError
from gateway.cli.terminal import printable
from gateway.log import get_log
from gateway.source import did_you_mean

log = get_log(__name__)

THIS_MACHINE = "localhost", "127.0.0.1", "::1"
"""A page of another site reaches a local port under its own name, or names its origin."""
HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""On every answer; no proxy or browser keeps one."""
LONGEST_ACTION = 200
UNKNOWN = Principal("", frozenset())
"""The holder of a request without a valid token."""


class Guard:
    """The application behind the access rules. A `store` of None admits every request of this machine, and has no audit."""

    def __init__(
        self,
        app: ASGIApp,
        store: AccessStore | None,
        limits: RequestLimits,
        sessions: Sessions,
        respond: Callable[[HttpProblemError], Response],
    ) -> None:
        self._app, self._store, self._limits, self._respond = app, store, limits, respond
        self._sessions = sessions
        self._rates = RateLimiter(limits.requests_per_second, limits.burst)
        self._open: Counter[int | str] = Counter()
        self._bytes = BodyBudget(limits.token_bytes_open, limits.all_bytes_open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # there are none; without an answer each attempt is an error in the log
            await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return
        request = Request(scope)
        record = RequestRecord(UNKNOWN, _address(request), f"{request.method} {_printable(scope['path'])}")
        answer = _Answer(send)
        try:
            record.identify = partial(self._identify, request)
            record.holder = record.identify()
            key = record.holder.token or record.address
            self._check_rate(key)
        except HttpProblemError as problem:
            if self._store is not None:
                await run_in_threadpool(_keep_refusal, self._store, record, problem)
            await self._respond(problem)(scope, receive, answer.send)
            return
        reset = current.set(record)
        self._open[key] += 1
        body = RequestBody(scope, receive, self._limits, self._bytes, key)
        try:
            await self._app(scope, body.receive, answer.send)
        finally:
            body.close()
            self._open -= Counter({key: 1})
            current.reset(reset)
            if record.entry is not None and self._store is not None:  # a request that fails has a result too
                await run_in_threadpool(_keep_result, self._store, record, answer)

    def _identify(self, request: Request) -> Principal:
        check_origin(request, self._store is not None)
        if self._store is None:
            return LOCAL
        if (request.method, request.scope["path"]) in PUBLIC:
            return UNKNOWN
        if "authorization" in request.headers:
            token = _bearer(request.headers)
            holder = None if token is None else self._store.find(token)
        else:
            number = self._sessions.find(request.cookies.get(COOKIE, ""))
            holder = None if number is None else self._store.holder(number)
            if holder is not None:
                check_browser(request)
        if holder is None:
            raise HttpProblemError(
                401, "no-token", "this station asks for a token that is valid",
                "send `Authorization: Bearer <token>`; `moteloom token create` makes one",
            )  # fmt: skip
        return holder

    def _check_rate(self, key: int | str) -> None:
        limits = self._limits
        if self._open[key] >= limits.open_requests:
            raise HttpProblemError(
                429, "too-many-open", f"this token has {limits.open_requests} requests open",
                "close an event stream, or use another token", headers={"retry-after": "1"},
            )  # fmt: skip
        if wait := self._rates.take(key):
            raise HttpProblemError(
                429, "too-many-requests", f"a token may make {limits.requests_per_second:g} requests a second",
                f"repeat it in {wait:.3f} s; to wait for results, use `wait=` or an event stream",
                headers={"retry-after": str(math.ceil(wait))},
            )  # fmt: skip


class _Answer:
    """Sends an answer on, with the headers of security, and notes its status and the code of its problem."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.code = 500, None
        self._is_problem = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name: value for name, value in message["headers"]}
            self._is_problem = given.get(b"content-type", b"").startswith(b"application/problem+json")
            message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in given)]
        elif self._is_problem and self.code is None and message.get("body"):
            self.code = json.loads(message["body"]).get("code")
        for part in _cut(message):
            await self._send(part)


def _cut(message: Message) -> Iterator[Message]:
    """A message as several, none of which has more than a piece of the body.

    The server waits for its client between them. Once it has a whole answer it closes the idle connection after 5 s, and TLS then has
    30 s for all that the client has not read.
    """
    body = message.get("body", b"")
    if len(body) <= PIECE_BYTES:
        yield message
        return
    for at in range(0, len(body), PIECE_BYTES):
        has_more = message.get("more_body", False) or at + PIECE_BYTES < len(body)
        yield {**message, "body": body[at : at + PIECE_BYTES], "more_body": has_more}


async def check_access(request: Request) -> None:
    """Admit a request to its route, and begin its entry of the audit. HttpProblemError where its token lacks the scope."""
    store: AccessStore | None = request.app.state.access
    limits: RequestLimits = request.app.state.limits
    record, path = current.get(), request.scope["route"].path
    if (request.method, path) in PUBLIC:
        return
    needed = needed_scope(request.method, path)
    declared, most = request.headers.get("content-length", ""), limits.largest_body(needed)
    if declared.isascii() and declared.isdecimal() and int(declared[:19]) > most:
        raise describe_too_long(most)
    if not record.holder.may(needed):
        problem = HttpProblemError(
            403, "lesser-scope", f"this needs a token with the scope `{needed.value}`",
            f"moteloom token create --name NAME --scope {needed.value}",
        )  # fmt: skip
        if store is not None:
            await run_in_threadpool(_keep_refusal, store, record, problem)
        raise problem
    if store is not None and is_audited(request.method, path):
        try:
            record.entry = await run_in_threadpool(store.begin_action, record)
        except sqlite3.Error as why:
            raise HttpProblemError(
                503, "not-now", f"the audit cannot be written: {why}", "nothing was done: free space on the disk"
            ) from why


async def check_parameters(request: Request) -> None:
    """HttpProblemError where a route has no such parameter: `dryrun=true` would deploy the query."""
    if not request.query_params:
        return
    known = parameters_of(request.scope["route"])
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        remedy = did_you_mean(unknown, known) or (f"parameters are {', '.join(known)}" if known else "it takes none")
        raise HttpProblemError(422, "unknown-parameter", f"there is no parameter `{unknown[:80]}` here", remedy)


def parameters_of(route: APIRoute) -> tuple[str, ...]:
    """The names of the parameters in the query of a route."""
    return tuple(field.alias for field in route.dependant.query_params)


def check_browser(request: Request) -> None:
    """HttpProblemError where a request with a cookie may not come from a page of the station.

    A cookie is also sent for pages of other ports of this machine, so its request has to name the station's own origin. A browser
    names the origin of each request that changes something.
    """
    is_of_other_page = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if is_of_other_page or (request.method not in ("GET", "HEAD") and "origin" not in request.headers):
        raise HttpProblemError(
            403, "foreign-origin", "a page of another site may not ask this station",
            "ask from a page of the station's own, or with a token in Authorization",
        )  # fmt: skip


def check_origin(request: Request, has_tokens: bool) -> None:
    """HttpProblemError where a web page of another site makes a request, or tries to reach a station without tokens."""
    origin = request.headers.get("origin")
    if not has_tokens and (origin is not None or request.url.hostname not in THIS_MACHINE):
        raise HttpProblemError(
            403, "not-from-here", "a station without a token serves programs on its machine, not web pages",
            "start it with a token, or ask http://127.0.0.1",
        )  # fmt: skip
    host = request.headers.get("host", "")
    if origin is not None and origin not in (
        f"http://{host}",
        f"https://{host}",
    ):  # a proxy may speak TLS for the station
        raise HttpProblemError(
            403, "foreign-origin", "a page of another site may not ask this station",
            "ask from a program, or from a page of the station's own",
        )  # fmt: skip


def _keep_refusal(store: AccessStore, record: RequestRecord, problem: HttpProblemError) -> None:
    try:
        store.refuse_action(record, problem.status, problem.code)
    except sqlite3.Error as why:  # it is refused all the same
        log.warning("the audit fails", why=str(why))


def _keep_result(store: AccessStore, record: RequestRecord, answer: _Answer) -> None:
    try:
        store.end_action(record, answer.status, answer.code)
    except sqlite3.Error as why:  # the entry stays without a result
        log.warning("the audit fails", why=str(why))


def _bearer(headers: Headers) -> str | None:
    """The token of the only Authorization header; None where there is another number of them, or another kind."""
    given = headers.getlist("authorization")
    kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    return token if kind.lower() == "bearer" and token else None


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


def _printable(path: str) -> str:
    """A path without its parameters, in one line; control characters as escapes."""
    return printable(path[:LONGEST_ACTION], kept="")

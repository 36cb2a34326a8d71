"""Guard: the first code that sees a request. It finds the holder of its token, or answers why there is none.

It stands before the routes as plain ASGI, so a path without a route is refused like every other.
"""

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from basestation.rest.access import LOCAL, Principal, TokenStore, current, needed_scope
from basestation.rest.wire import HttpProblemError

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


class Guard:
    """The application behind the access rules. `tokens` of None admits every request of this machine."""

    def __init__(
        self, app: ASGIApp, tokens: TokenStore | None, respond: Callable[[HttpProblemError], Response]
    ) -> None:
        self._app, self._tokens, self._respond = app, tokens, respond

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no WebSockets
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in given)]
            await send(message)

        try:
            holder = self._identify(Request(scope))
        except HttpProblemError as problem:
            await self._respond(problem)(scope, receive, send_guarded)
            return
        reset = current.set(holder)
        try:
            await self._app(scope, receive, send_guarded)
        finally:
            current.reset(reset)

    def _identify(self, request: Request) -> Principal:
        check_origin(request, self._tokens is not None)
        if self._tokens is None:
            return LOCAL
        token = _bearer(request.headers)
        holder = None if token is None else self._tokens.find(token)
        if holder is None:
            raise HttpProblemError(
                401, "no-token", "this station asks for a token that is valid",
                "send `Authorization: Bearer <token>`; `moteloom token create` makes one",
            )  # fmt: skip
        return holder


def check_origin(request: Request, has_tokens: bool) -> None:
    """HttpProblemError where a web page of another site makes a request, or tries to reach a station without tokens."""
    origin = request.headers.get("origin")
    if not has_tokens and (origin is not None or request.url.hostname not in THIS_MACHINE):
        raise HttpProblemError(
            403, "not-from-here", "a station without a token serves programs on its machine, not web pages",
            "start it with a token, or ask http://127.0.0.1",
        )  # fmt: skip
    if origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host', '')}":
        raise HttpProblemError(
            403,
            "foreign-origin",
            "a page of another site may not ask this station",
            "ask from a program, or from a page of the station's own",
        )


def check_scope(request: Request) -> None:
    """HttpProblemError where the token of a request lacks the scope of its route."""
    needed = needed_scope(request.method, request.scope["route"].path)
    if not current.get().may(needed):
        raise HttpProblemError(
            403, "lesser-scope", f"this needs a token with the scope `{needed.value}`",
            f"moteloom token create --name NAME --scope {needed.value}",
        )  # fmt: skip


def _bearer(headers: Headers) -> str | None:
    """The token of the only Authorization header; None where there is another number of them, or another kind."""
    given = headers.getlist("authorization")
    kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    return token if kind.lower() == "bearer" and token else None

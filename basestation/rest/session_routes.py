"""The routes by which a browser is let in: a ticket, a page that trades it for a cookie, and the end of the session."""

import base64
import hashlib
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from basestation.rest.access import AccessStore, current
from basestation.rest.sessions import COOKIE, SESSION_SECONDS, TICKET_SECONDS, Sessions
from basestation.rest.wire import HttpProblemError

LONGEST_TICKET = 100
_SCRIPT = """
const ticket = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const show = text => { document.getElementById("state").textContent = text; };
fetch("/v1/session", { method: "POST", body: ticket, headers: { "content-type": "text/plain" } })
  .then(answer => show(answer.ok
    ? "This browser is signed in. It may now read this station, such as /v1/queries."
    : "This link has been used, or is older than a minute: `moteloom login` makes another."))
  .catch(() => show("The station does not answer."));
"""
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Moteloom</title>'
    f'<p id="state">Signing in …</p><p><a href="/v1/queries">/v1/queries</a></p><script>{_SCRIPT}</script></html>'
)
_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = f"default-src 'none'; script-src 'sha256-{_HASH}'; connect-src 'self'; frame-ancestors 'none'"


def session_routes(access: AccessStore | None, sessions: Sessions) -> APIRouter:
    """The routes of sessions; `/login` and the start of a session are for browsers without a token."""
    router = APIRouter()

    @router.post("/v1/tickets", status_code=201, summary="A ticket for one browser, which counts once and for a minute")
    def issue() -> dict[str, Any]:
        if access is None:
            raise HttpProblemError(409, "no-tokens", "a station without tokens has no sessions", "start it with tokens")
        ticket = sessions.issue_ticket(current.get().holder.token)
        return {"ticket": ticket, "path": f"/login#{ticket}", "seconds": TICKET_SECONDS}

    @router.get("/login", summary="The page that trades the ticket behind # for a cookie")
    def login() -> HTMLResponse:
        return HTMLResponse(_PAGE, headers={"content-security-policy": _POLICY})

    @router.post("/v1/session", status_code=204, summary="Trade a ticket, which is the body, for a cookie")
    async def begin(request: Request) -> Response:
        ticket = await request.body()
        found = sessions.redeem(ticket.decode("ascii", "replace")) if len(ticket) <= LONGEST_TICKET else None
        if found is None:
            raise HttpProblemError(
                403,
                "no-ticket",
                "this ticket has been used, is too old, or never was",
                "`moteloom login` makes another",
            )
        answer = Response(status_code=204)
        answer.set_cookie(
            COOKIE, found[0], max_age=int(SESSION_SECONDS), path="/", httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return answer

    @router.delete("/v1/session", status_code=204, summary="End the session of this browser")
    def end(request: Request) -> Response:
        sessions.end(request.cookies.get(COOKIE, ""))
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    return router

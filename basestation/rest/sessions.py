"""Sessions: a browser trades a ticket, which counts once and for a minute, for a cookie. It never has a token.

Tickets and sessions are in memory: after a restart a browser needs another ticket. A session has the rights of the token that
made its ticket, for as long as that token has them.
"""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable

COOKIE = "moteloom_session"
TICKET_SECONDS, SESSION_SECONDS = 60.0, 12 * 3_600.0
MOST, MOST_OF_TOKEN = 1_000, 50
"""Tickets, and sessions, of all tokens and of one, so that none pushes out those of others; the oldest ones end above that."""


class Sessions:
    """Any thread may call. A holder is known by the number of a token."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._lock = monotonic, threading.Lock()
        self._tickets: dict[bytes, tuple[int, float]] = {}  # by digest: (token, end)
        self._sessions: dict[bytes, tuple[int, float]] = {}

    def issue_ticket(self, token: int) -> str:
        """A ticket for the holder of a token."""
        return self._add(self._tickets, token, TICKET_SECONDS)

    def redeem(self, ticket: str) -> tuple[str, int] | None:
        """The secret of a new session for a ticket, and the number of its token; None where the ticket counts no more."""
        with self._lock:
            token, end = self._tickets.pop(_digest(ticket), (0, 0.0))
        if self._monotonic() >= end:
            return None
        return self._add(self._sessions, token, SESSION_SECONDS), token

    def find(self, secret: str) -> int | None:
        """The number of the token of a session."""
        with self._lock:
            token, end = self._sessions.get(_digest(secret), (0, 0.0))
        return token if self._monotonic() < end else None

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._lock:
            self._sessions.pop(_digest(secret), None)

    def _add(self, kept: dict[bytes, tuple[int, float]], token: int, seconds: float) -> str:
        secret = secrets.token_urlsafe(32)
        with self._lock:
            kept[_digest(secret)] = (token, self._monotonic() + seconds)
            own = [digest for digest, (holder, _) in kept.items() if holder == token]
            if len(own) > MOST_OF_TOKEN:
                del kept[own[0]]
            elif len(kept) > MOST:
                del kept[next(iter(kept))]
        return secret


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()

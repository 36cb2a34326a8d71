"""RequestBody: reads the body of a request within the limits of its length, of its time, and of the bytes that are open."""

import asyncio
import math
import time

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from basestation.rest.access import needed_scope
from basestation.rest.limits import BodyBudget, RequestLimits
from basestation.rest.wire import HttpProblemError
from gateway.errors import MoteloomError

RETRY_SECONDS = 1


class BodyRefusedError(HTTPException, MoteloomError):
    """A body that is not read to its end. A web framework passes this kind of exception through, and no other."""

    def __init__(self, problem: HttpProblemError) -> None:
        super().__init__(problem.status)
        self.problem = problem


def describe_too_long(most: int) -> HttpProblemError:
    """The problem of a body with more bytes than the limit of its route."""
    return HttpProblemError(413, "too-long", f"a body has at most {most:,} bytes", "send it in parts")


class RequestBody:
    """The messages of a request. `close` gives the bytes that it took back to the budget."""

    def __init__(
        self, scope: Scope, receive: Receive, limits: RequestLimits, budget: BodyBudget, key: int | str
    ) -> None:
        self._scope, self._receive, self._limits, self._budget, self._key = scope, receive, limits, budget, key
        self._read, self._taken, self._is_over, self._begun = 0, 0, False, time.monotonic()

    async def receive(self) -> Message:
        """The next message. BodyRefusedError where a limit is reached."""
        if self._is_over:  # from now on it waits for the end of the connection
            return await self._receive()
        if self._read == 0:
            self._reserve(_declared_length(self._scope))
        message = await self._receive_in_time()
        self._read += len(message.get("body", b""))
        self._is_over = not message.get("more_body", False)
        most = self._limits.largest_body(needed_scope(self._scope["method"], self._scope["route"].path))
        if self._read > most:
            raise BodyRefusedError(describe_too_long(most))
        self._reserve(self._read)
        return message

    def close(self) -> None:
        """Give the bytes back at the end of the request."""
        self._budget.give_back(self._key, self._taken)

    def _reserve(self, total: int) -> None:
        left = self._budget.take(self._key, total - self._taken) if total > self._taken else None
        if left is not None:
            raise BodyRefusedError(
                HttpProblemError(
                    429, "too-many-bytes", f"other bodies are being taken: {self._taken + left:,} bytes have room now",
                    "repeat it when one of them has its answer, or send fewer bytes at a time",
                    headers={"retry-after": str(RETRY_SECONDS)},
                )
            )  # fmt: skip
        self._taken = max(self._taken, total)

    async def _receive_in_time(self) -> Message:
        allowed = self._limits.body_seconds + self._read / self._limits.body_bytes_per_second
        try:
            return await asyncio.wait_for(self._receive(), max(0.0, self._begun + allowed - time.monotonic()))
        except TimeoutError:
            seconds = math.ceil(self._limits.body_seconds)
            raise BodyRefusedError(
                HttpProblemError(
                    408, "too-slow", f"{self._read:,} bytes of the body came in {allowed:.0f} s",
                    f"a body comes within {seconds} s and a second more for each {self._limits.body_bytes_per_second:,} bytes: send less at a time",
                    headers={"connection": "close"},
                )
            ) from None  # fmt: skip


def _declared_length(scope: Scope) -> int:
    declared = dict(scope["headers"]).get(b"content-length", b"").decode("latin-1")
    return int(declared[:19]) if declared.isascii() and declared.isdecimal() else 0

"""A protocol of HTTP connections that closes those on which the head of a request comes too slowly."""

import asyncio
from typing import Any

HEAD_SECONDS = 10.0
"""From the opening of a connection, or from the first byte of another request on it, to the end of the head."""


def make_timed_protocol(seconds: float = HEAD_SECONDS) -> type[asyncio.Protocol]:
    """The protocol of the web server with a limit of time for heads."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        """Bodies have limits of their own (`basestation.rest.request_body`); an idle connection has that of the server."""

        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start_timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waits_for_head():
                self._stop_timer()
            elif self._head_timer is None:
                self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _waits_for_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _start_timer(self) -> None:
            self._head_timer = self.loop.call_later(seconds, self._close_slow)

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _close_slow(self) -> None:
            self._head_timer = None
            if self._waits_for_head() and not self.transport.is_closing():
                self.transport.close()

    return TimedProtocol

"""A protocol of HTTP connections that closes those on which the head of a request comes too slowly, or whose client reads nothing."""

import asyncio
from typing import Any

HEAD_SECONDS = 10.0
"""From the opening of a connection, or from the first byte of another request on it, to the end of the head."""

READ_SECONDS = 30.0
"""For a client to read anything of an answer of which the buffer of its connection has more than its limit."""

BUFFER_BYTES = 65_536
"""Of an answer that the buffer of a connection has before the rest waits; with TLS it would be 512 KiB by itself."""


def make_timed_protocol(seconds: float = HEAD_SECONDS, read_seconds: float = READ_SECONDS) -> type[asyncio.Protocol]:
    """The protocol of the web server with a limit of time for heads, and for clients that do not read."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        """Bodies have limits of their own (`basestation.rest.request_body`); an idle connection has that of the server."""

        _head_timer: asyncio.TimerHandle | None = None
        _read_timer: asyncio.TimerHandle | None = None
        _unsent = 0
        """Bytes that the buffer had at the last look."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.set_write_buffer_limits(BUFFER_BYTES)
            self._start_timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waits_for_head():
                self._stop_timer()
            elif self._head_timer is None:
                self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            self._stop_read_timer()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._start_read_timer()

        def resume_writing(self) -> None:
            self._stop_read_timer()
            super().resume_writing()

        def _waits_for_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _start_timer(self) -> None:
            self._head_timer = self.loop.call_later(seconds, self._close_slow)

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _start_read_timer(self) -> None:
            self._unsent = self.transport.get_write_buffer_size()
            self._read_timer = self.loop.call_later(read_seconds, self._cut_idle)

        def _stop_read_timer(self) -> None:
            if self._read_timer is not None:
                self._read_timer.cancel()
                self._read_timer = None

        def _cut_idle(self) -> None:
            self._read_timer = None
            if self.transport.get_write_buffer_size() < self._unsent:  # it reads, however slowly
                self._start_read_timer()
                return
            self.transport.abort()  # what it has not read is dropped: the client goes on behind the last event that it has

        def _close_slow(self) -> None:
            self._head_timer = None
            if self._waits_for_head() and not self.transport.is_closing():
                self.transport.close()

    return TimedProtocol

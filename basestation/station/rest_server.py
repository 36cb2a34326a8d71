"""RestServer: the REST interface of a station, on a thread of its own."""

import socket
import threading
from typing import TYPE_CHECKING

from basestation.station.timed_protocol import HEAD_SECONDS, READ_SECONDS, make_timed_protocol
from gateway.errors import MoteloomError

if TYPE_CHECKING:
    from basestation.rest.access import AccessStore
    from basestation.rest.control import StationControl
    from basestation.rest.limits import RequestLimits
    from basestation.station.certificate import Certificate


GRACE_SECONDS = 2
"""Requests that have no answer so long after the station stopped are cut."""


SEND_BYTES = 131_072
"""Of an answer that the system buffers for a client that reads slowly; by itself it would take megabytes for each."""


class PortError(MoteloomError):
    """The server cannot listen where it should."""


class RestServer:
    """Port 0 takes a free one; `url` says which. It serves between `with` and its end."""

    def __init__(
        self,
        control: "StationControl",
        access: "AccessStore | None",
        host: str = "127.0.0.1",
        port: int = 0,
        certificate: "Certificate | None" = None,
        limits: "RequestLimits | None" = None,
        head_seconds: float = HEAD_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        """A connection whose request's head has not come in `head_seconds` is closed, one that reads nothing for `read_seconds` is cut."""
        import uvicorn

        from basestation.rest.api import make_api
        from basestation.rest.limits import RequestLimits

        try:
            self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
            # A connection inherits it. Without it the end of an answer waits 40 ms for an acknowledgement on a kept connection.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        except OSError as why:
            raise PortError(f"cannot listen on {host}:{port}: {why.strerror}; choose another with --port") from why
        name, number = self._socket.getsockname()[:2]
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://[{name}]:{number}" if ":" in name else f"{scheme}://{name}:{number}"
        config = uvicorn.Config(
            make_api(control, access, lambda: self._server.should_exit, limits or RequestLimits()),
            http=make_timed_protocol(head_seconds, read_seconds), log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="off", timeout_graceful_shutdown=GRACE_SECONDS,
        )  # fmt: skip
        if certificate is not None:
            config.load()
            config.ssl = certificate.context
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="rest", daemon=True)

    def __enter__(self) -> "RestServer":
        # The socket listens already: a connection made before uvicorn is up waits in its queue.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

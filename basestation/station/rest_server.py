"""REST server: serves a station's results over HTTP, on a thread of its own."""

import socket
import threading
from types import TracebackType

from basestation.station.service import Station


class RestServer:
    """A context manager. Port 0 takes a free port; `url` has it."""

    def __init__(self, station: Station, token: str | None, host: str = "127.0.0.1", port: int = 0) -> None:
        import uvicorn

        from basestation.rest.api import make_api

        api = make_api(station.feed, station.world.catalog.tick_ms, token)
        self._socket = socket.create_server((host, port))
        self.url = "http://{}:{}".format(*self._socket.getsockname()[:2])
        self._server = uvicorn.Server(uvicorn.Config(api, log_level="warning", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="rest", daemon=True)

    def __enter__(self) -> "RestServer":
        # The socket listens already: requests before uvicorn is up wait in its queue.
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

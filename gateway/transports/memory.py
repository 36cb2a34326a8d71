"""A byte stream inside one process, for tests and simulated motes."""

from collections.abc import Callable

from gateway.errors import TransportError
from gateway.log import get_log

log = get_log(__name__)


class MemoryTransport:
    """One end of the stream. `on_data`, if set, is called after bytes arrive, so that a peer in virtual time can react."""

    def __init__(self) -> None:
        self.peer: MemoryTransport | None = None
        self.on_data: Callable[[], None] | None = None
        self._arrived = bytearray()
        self._open = False

    def open(self) -> None:
        """Get ready to send and receive."""
        log.debug("transport opened", kind="memory")
        self._open = True

    def send(self, data: bytes) -> None:
        """Send bytes to the peer. Raises TransportError if one end is closed."""
        if not self._open or self.peer is None or not self.peer._open:
            raise TransportError("the memory transport is not open at both ends")
        self.peer._arrived += data
        if self.peer.on_data:
            self.peer.on_data()

    def receive(self) -> bytes:
        """Return the bytes that have arrived since the last call. Raises TransportError if this end is closed."""
        if not self._open:
            raise TransportError("the memory transport is not open")
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def close(self) -> None:
        """Close this end; closing twice is allowed."""
        if self._open:
            log.debug("transport closed", kind="memory")
        self._open = False


def connected_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected ends; both must be opened."""
    ours, theirs = MemoryTransport(), MemoryTransport()
    ours.peer, theirs.peer = theirs, ours
    return ours, theirs

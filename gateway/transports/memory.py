"""Two ends of a byte stream inside one process: the transport of tests and of simulated motes."""

from collections.abc import Callable

from gateway.errors import TransportError


class MemoryTransport:
    """One end. `on_data`, if given, is called after bytes have come, so that a peer in virtual time can react."""

    def __init__(self) -> None:
        self.peer: MemoryTransport | None = None
        self.on_data: Callable[[], None] | None = None
        self._arrived = bytearray()
        self._open = False

    def open(self) -> None:
        self._open = True

    def send(self, data: bytes) -> None:
        if not self._open or self.peer is None or not self.peer._open:
            raise TransportError("the memory link is not open at both ends")
        self.peer._arrived += data
        if self.peer.on_data:
            self.peer.on_data()

    def receive(self) -> bytes:
        if not self._open:
            raise TransportError("the memory link is not open")
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def close(self) -> None:
        self._open = False


def connected_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Two ends that are joined; both want `open()`."""
    ours, theirs = MemoryTransport(), MemoryTransport()
    ours.peer, theirs.peer = theirs, ours
    return ours, theirs

"""Held transport: what stands between a durable station and the wire, so that nothing leaves before the commit."""

from gateway.transports import Transport


class HeldTransport:
    """The transport that a station sees: it reads what the step was given, and what it sends waits for the commit."""

    def __init__(self) -> None:
        self.arrived = b""
        self.outgoing = bytearray()

    def open(self) -> None:
        """It is always open."""

    def close(self) -> None:
        """Nothing to release."""

    def send(self, data: bytes) -> None:
        self.outgoing += data

    def receive(self) -> bytes:
        found, self.arrived = self.arrived, b""
        return found


DISCONNECTED: Transport = HeldTransport()
"""Where nothing comes from and nothing goes to, until a station is connected."""

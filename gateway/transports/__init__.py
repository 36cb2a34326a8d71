"""Transports: four operations on bytes. Each real transport is a module beside this file, the only one with its library."""

from typing import Protocol


class Transport(Protocol):
    """Carries bytes between the base station and motes, in order, without interpreting them."""

    def open(self) -> None:
        """Get ready to send and receive. Raises TransportError."""

    def send(self, data: bytes) -> None:
        """Send bytes. Raises TransportError."""

    def receive(self) -> bytes:
        """Return the bytes that have arrived since the last call, possibly none. Never waits."""

    def close(self) -> None:
        """Release the transport. Closing twice is allowed."""

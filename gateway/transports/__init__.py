"""What a transport is: four verbs on bytes. Each real one is a module beside this file, with its library to itself."""

from typing import Protocol


class Transport(Protocol):
    """Carries bytes between the base station and motes, in order, and knows nothing about them."""

    def open(self) -> None:
        """Be ready to send and receive, or raise TransportError."""

    def send(self, data: bytes) -> None:
        """Hand bytes to the wire, or raise TransportError."""

    def receive(self) -> bytes:
        """What has come since the last call; empty if nothing has. Never waits."""

    def close(self) -> None:
        """Give the wire back. Closing twice is allowed."""

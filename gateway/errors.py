"""The errors of this package, told apart by whose fault they are.

GatewayError
 ├─ FrameError       bytes from outside that are no frame: their fault, counted, never fatal
 ├─ LinkError        a link was used in a way it cannot be: our fault
 └─ TransportError   the wire is gone or not there: nobody's fault, try again
"""


class GatewayError(Exception):
    """Everything this package raises on purpose."""


class FrameError(GatewayError):
    """Bytes that are no frame. `code` is one word to count by; `raw` keeps (the start of) the evidence."""

    def __init__(self, code: str, message: str, raw: bytes = b"") -> None:
        super().__init__(message)
        self.code = code
        self.raw = raw[:256]


class LinkError(GatewayError):
    """A link was asked for something impossible in its state."""


class TransportError(GatewayError):
    """A transport cannot carry bytes just now."""

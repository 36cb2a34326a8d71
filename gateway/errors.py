"""Exceptions of this package, and the base of every exception that Moteloom raises on purpose.

MoteloomError
 ├─ GatewayError
 │   ├─ FrameError      received bytes are not a frame: counted, never fatal
 │   ├─ LinkError       a caller used a link, frame or image in a way that is not allowed
 │   └─ TransportError  the transport is closed or unreachable: try again later
 ├─ DiagnosticError     a text has errors, each at its place (`gateway.diagnostics`)
 │   └─ ConfigError     a TOML file cannot be used (`gateway.toml`)
 └─ the bases of the packages above: AcquisitionError, InnetError, …
"""


class MoteloomError(Exception):
    """Base of all exceptions that Moteloom raises on purpose; everything else is a bug."""


class GatewayError(MoteloomError):
    """Base of the exceptions of this package."""


class FrameError(GatewayError):
    """Received bytes that are not a valid frame.

    `code` is one word under which the error is counted. `raw` keeps the first 256 of the bytes.
    """

    def __init__(self, code: str, message: str, raw: bytes = b"") -> None:
        super().__init__(message)
        self.code = code
        self.raw = raw[:256]


class LinkError(GatewayError):
    """A caller asked a link, a frame or an image for something that its state or its limits forbid."""


class TransportError(GatewayError):
    """A transport cannot carry bytes now."""

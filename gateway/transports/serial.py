"""A serial line, or a TCP socket that carries one: the transport to a radio. The only module that imports pyserial."""

import serial

from gateway.errors import TransportError
from gateway.log import get_log

BAUD = 115_200

log = get_log(__name__)


class SerialTransport:
    """A serial line that reopens after a failure.

    `url` is a device such as /dev/ttyUSB0, or any URL that pyserial accepts, such as socket://host:port.
    """

    def __init__(self, url: str, baud: int = BAUD) -> None:
        self._url, self._baud = url, baud
        self._line: serial.SerialBase | None = None

    def open(self) -> None:
        """Open the line. Raises TransportError."""
        try:
            self._line = serial.serial_for_url(self._url, baudrate=self._baud, timeout=0, write_timeout=1)
        except (serial.SerialException, ValueError, OSError) as error:
            raise TransportError(f"{self._url} cannot be opened: {error}") from error
        log.info("transport opened", kind="serial", url=self._url, baud=self._baud)

    def send(self, data: bytes) -> None:
        """Send bytes; opens the line if it is closed. Raises TransportError, and closes the line."""
        try:
            self._ready().write(data)
        except (serial.SerialException, OSError) as error:
            raise self._failed("send", error) from error

    def receive(self) -> bytes:
        """Return the bytes that have arrived; opens the line if it is closed. Raises TransportError, and closes it."""
        line = self._ready()
        try:
            found: bytes = line.read(max(line.in_waiting, 1))
        except (serial.SerialException, OSError) as error:
            raise self._failed("receive", error) from error
        return found

    def close(self) -> None:
        """Close the line; closing twice is allowed."""
        line, self._line = self._line, None
        if line is not None:
            line.close()
            log.info("transport closed", kind="serial", url=self._url)

    def _failed(self, action: str, error: Exception) -> TransportError:
        """Close the line and return the error of an action."""
        log.warning("transport failed", kind="serial", url=self._url, action=action, error=error)
        self.close()
        return TransportError(f"{self._url} cannot {action}: {error}")

    def _ready(self) -> serial.SerialBase:
        if self._line is None:
            self.open()
        assert self._line is not None
        return self._line

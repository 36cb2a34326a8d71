"""A serial line, or a TCP socket that carries one: the transport to a radio on a stick. The only module that imports pyserial."""

import serial

from gateway.errors import TransportError

BAUD = 115_200


class SerialTransport:
    """`url` is a device such as /dev/ttyUSB0, or what pyserial takes, such as socket://host:port. It opens again by itself."""

    def __init__(self, url: str, baud: int = BAUD) -> None:
        self._url, self._baud = url, baud
        self._line: serial.SerialBase | None = None

    def open(self) -> None:
        try:
            self._line = serial.serial_for_url(self._url, baudrate=self._baud, timeout=0, write_timeout=1)
        except (serial.SerialException, ValueError, OSError) as why:
            raise TransportError(f"{self._url} cannot be opened: {why}") from why

    def send(self, data: bytes) -> None:
        try:
            self._ready().write(data)
        except (serial.SerialException, OSError) as why:
            self.close()
            raise TransportError(f"{self._url} does not take bytes: {why}") from why

    def receive(self) -> bytes:
        line = self._ready()
        try:
            found: bytes = line.read(max(line.in_waiting, 1))
        except (serial.SerialException, OSError) as why:
            self.close()
            raise TransportError(f"{self._url} gives no bytes: {why}") from why
        return found

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _ready(self) -> serial.SerialBase:
        if self._line is None:
            self.open()
        assert self._line is not None
        return self._line

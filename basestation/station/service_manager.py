"""ServiceManager: notifies systemd that the station is ready, makes progress, reads its files again, or stops (sd_notify).

The runner calls `progress` after each round of its loop, so the watchdog of systemd follows the path of the data: a step or a
commit that hangs is a station that does not answer the watchdog.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping

from gateway.log import get_log

log = get_log(__name__)


class ServiceManager:
    """Without NOTIFY_SOCKET in the environment it does nothing."""

    def __init__(self, environment: Mapping[str, str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._monotonic, self._answered = monotonic, float("-inf")
        is_watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        text = environment.get("WATCHDOG_USEC", "") if is_watched else ""
        self._interval = int(text) / 1e6 / 4 if text.isdecimal() and int(text) else None
        """Seconds between two answers to the watchdog: a quarter of the time after which it ends the station."""

    def ready(self) -> None:
        """The station takes requests and looks at its motes."""
        self._send("READY=1")

    def progress(self) -> None:
        """The loop of the station has come round once more."""
        if self._interval is not None and self._monotonic() >= self._answered + self._interval:
            self._answered = self._monotonic()
            self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """The station reads its files again; `ready` follows."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000}")

    def stopping(self) -> None:
        """The station commits and ends."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as wire:
                wire.sendto(state.encode(), address)
        except OSError as why:
            log.warning("systemd cannot be notified", state=state.splitlines()[0], error=why.strerror)

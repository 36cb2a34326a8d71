"""The parts that commands with a simulation share: the argument for the simulated time, and a progress bar."""

import argparse
import sys
import time

from gateway.cli.terminal import write_control


def parse_span(text: str) -> int:
    """Milliseconds. Raises ArgumentTypeError for anything but a span of time."""
    from acquisition.units import milliseconds_of

    found = milliseconds_of(text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a span of time such as 90s, 30min or 24h, found `{text}`")
    return found


class ProgressBar:
    """A bar on standard error, if that is a terminal. `total` is the amount at which it is full."""

    WIDTH = 40

    def __init__(self, total: float) -> None:
        self._total, self._next = total, 0.0
        self._is_shown = sys.stderr.isatty()

    def show(self, done: float) -> None:
        """Show that the amount `done` is over, at most five times a second."""
        now = time.monotonic()
        if self._is_shown and now >= self._next:
            self._next = now + 0.2
            share = done / self._total
            full = round(share * self.WIDTH)
            write_control(sys.stderr, f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {share:4.0%}")
            sys.stderr.flush()

    def end(self) -> None:
        """Remove the bar."""
        if self._is_shown:
            write_control(sys.stderr, "\r" + " " * (self.WIDTH + 8) + "\r")
            sys.stderr.flush()

"""Simulating: what verbs that simulate have in common: for how long, and a bar that shows how much of it is over."""

import argparse
import sys
import time


def parse_span(text):
    """Milliseconds."""
    from acquisition.units import milliseconds_of

    if not (found := milliseconds_of(text)):
        raise argparse.ArgumentTypeError(f"`{text}` is no span of time, such as 90s, 30min or 24h")
    return found


class Progress:
    """A bar on standard error; nothing where nobody looks at it."""

    WIDTH = 40

    def __init__(self, whole):
        self._whole, self._next = whole, 0.0
        self._watched = sys.stderr.isatty()

    def at(self, done):
        now = time.monotonic()
        if self._watched and now >= self._next:
            self._next = now + 0.2
            share = done / self._whole
            full = round(share * self.WIDTH)
            print(f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self._watched:
            print("\r" + " " * (self.WIDTH + 8) + "\r", end="", file=sys.stderr, flush=True)

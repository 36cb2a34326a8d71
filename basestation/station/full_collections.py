"""FullCollections: the process of a station collects cycles between two looks, not inside one.

A full collection of Python's cyclic garbage collector visits all objects of all queries: 0.04 s of CPU at 1,000 of them. Python starts
one where an allocation makes it due, mostly inside a step. This is a policy of the whole process, so only its owner begins it.
"""

import ctypes
import gc
import time
from collections.abc import Callable
from types import TracebackType

DUE = 10
"""Collections of the middle generation since the last full one, after which the next is due; Python's own measure."""
OVERDUE = 5 * DUE
"""So many, and it no longer waits for a look that leaves enough time."""
BACKSTOP = 10 * DUE
"""So many within one look, and Python collects inside it after all: memory of cycles is bounded, however long a look takes."""
REST = 50
"""Between two of them at least so many times the seconds that the last one took, which is 2 % of a core at most."""


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""The C library's: it returns freed pages to the operating system. Only glibc has it, and keeps them without it."""


def collect_fully() -> None:
    """Free all cycles, and return freed memory to the operating system (0.1 to 0.6 ms at 190 MB)."""
    gc.collect()
    if _trim is not None:
        _trim(0)


class FullCollections:
    """`with` moves full collections to `tend`, which is called between looks. The younger generations are collected as before."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        """`timer` returns seconds."""
        self._timer, self._ended = timer, timer()
        self._thresholds = gc.get_threshold()
        self.count, self.longest, self._last = 0, 0.0, 0.0  # seconds

    def __enter__(self) -> "FullCollections":
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*self._thresholds[:2], BACKSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.set_threshold(*self._thresholds)

    def tend(self, idle_seconds: float) -> bool:
        """Collect if that is due and done within the seconds until the next look; return whether it was."""
        waiting = gc.get_count()[2]
        if waiting < DUE or (waiting < OVERDUE and self._last > idle_seconds):
            return False
        begun = self._timer()
        if begun - self._ended < REST * self._last:
            return False
        collect_fully()
        self._ended = self._timer()
        self._last = self._ended - begun
        self.count, self.longest = self.count + 1, max(self.longest, self._last)
        return True

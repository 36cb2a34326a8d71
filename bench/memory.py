"""How much memory this process holds and has held, by the system's own books."""

import ctypes
import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak():
    """The most that was held at once, in bytes."""
    if STATUS.exists():
        # Not `ru_maxrss`, which on Linux begins with what the process that started this one held.
        return _line("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held():
    """Return the bytes held now; where the system does not report them, the peak."""
    _give_back()
    return _line("VmRSS") if STATUS.exists() else peak()


def forget_peak():
    """The peak begins anew, where the system lets us; returns it."""
    _give_back()
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")
    return peak()


def _give_back():
    """Return freed memory to the system; otherwise later allocations may reuse it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _line(name):
    return next(int(line.split()[1]) << 10 for line in STATUS.open() if line.startswith(name))

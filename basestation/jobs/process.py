"""The process of jobs: it takes orders from standard input, one after the other, and writes lines of results to the file of each.

Standard error has a line of JSON for each step of progress, and one for the end of each job. The process has the lowest priority, a
limit of memory, of results and of processor time, and ends as soon as its standard input does.
"""

import errno
import json
import os
import pickle
import queue
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gateway.diagnostics import DiagnosticError
from gateway.errors import MoteloomError

NICE = 19
REPORT_SECONDS = 0.2
"""Between two reports of progress, at least."""
LENGTH_BYTES = 8
TOO_LONG = {"code": "results-too-long", "title": "the job has more results than it may have",
            "detail": "ask for a shorter time, or for an aggregate"}  # fmt: skip
_TOO_LARGE = {"code": "job-too-large", "title": "the job needs more memory than it may have",
              "detail": "ask for a shorter time, or for fewer rows"}  # fmt: skip


class JobReport:
    """Takes the share of the work that is done, and in words what the job does now."""

    def __init__(self, lines: TextIO) -> None:
        self._lines, self._due = lines, 0.0
        self._shown: str | None = None

    def __call__(self, share: float, doing: str | None = None) -> None:
        """Report progress, unless that was done a moment ago."""
        if time.monotonic() >= self._due or doing != self._shown:
            self._due, self._shown = time.monotonic() + REPORT_SECONDS, doing
            self._lines.flush()  # so that clients can read the results so far
            _say({"progress": round(min(1.0, share), 4), "doing": doing})

    def note(self, text: str) -> None:
        """Tell the client what its results leave out."""
        _say({"note": text})


@dataclass(frozen=True, slots=True)
class Order:
    """A job for a process: what the client ordered, the file for lines of results, and the limits.

    `limits` has `memory_bytes`, `result_bytes` and `cpu_seconds`.
    """

    limits: Mapping[str, int]
    body: Any
    results: Path

    def encode(self) -> bytes:
        """The order for the standard input of a process."""
        pickled = pickle.dumps(self)
        return len(pickled).to_bytes(LENGTH_BYTES, "big") + pickled


Work = Callable[[Order, TextIO, JobReport], None]


def run_jobs(work: Work) -> None:
    """Carry out the orders on standard input until it ends. `work` takes an order, its file for lines of results, and a JobReport.

    Returns after an order that cannot be read.
    """
    os.nice(NICE)
    orders: queue.SimpleQueue[Order | Exception] = queue.SimpleQueue()
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    while True:
        order = orders.get()
        if isinstance(order, Exception):  # the limit of memory of the job before holds for reading, too
            _say({"end": _TOO_LARGE if isinstance(order, MemoryError) else _fault(order), "usable": False})
            return
        _limit(order.limits)
        problem, is_usable = _carry_out(work, order)
        _say({"end": problem, "usable": is_usable})


def _limit(limits: Mapping[str, int]) -> None:
    """Limit this process; the processor time is that of one job."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + limits["cpu_seconds"]
    for what, most in (
        (resource.RLIMIT_DATA, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["result_bytes"]),
        (resource.RLIMIT_CPU, seconds),
    ):
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


@contextmanager
def without_limits() -> Iterator[None]:
    """Start programs inside that do not inherit the limits of a job, as they have limits of their own."""
    kinds = resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU
    before = {what: resource.getrlimit(what) for what in kinds}
    for what, (_, hard) in before.items():
        resource.setrlimit(what, (hard, hard))
    try:
        yield
    finally:
        for what, limits in before.items():
            resource.setrlimit(what, limits)


def _carry_out(work: Work, order: Order) -> tuple[dict[str, Any] | None, bool]:
    """The problem that ended the work, or None; whether this process can take another order."""
    try:
        with order.results.open("w", encoding="utf-8") as lines:
            work(order, lines, JobReport(lines))
    except DiagnosticError as wrong:
        found = [each.as_json() | {"rendered": each.render()} for each in wrong.diagnostics]
        return {"code": found[0]["code"], "title": found[0]["message"], "diagnostics": found}, True
    except MoteloomError as wrong:
        return {"code": getattr(wrong, "code", "failed"), "title": str(wrong), "detail": getattr(wrong, "help", None)}, \
            not getattr(wrong, "ends_process", False)  # fmt: skip
    except MemoryError:
        return _TOO_LARGE, False
    except OSError as why:
        if why.errno == errno.ENOSPC:
            return {"code": "disk-full", "title": "the station's disk has no room for the results",
                    "detail": "make room, or delete jobs, and start it again"}, True  # fmt: skip
        if why.errno == errno.EFBIG:
            return TOO_LONG, True
        return _fault(why), False
    except Exception as error:
        if os.strerror(errno.EAGAIN) in str(error):  # of a library, where the stack of a thread has no memory
            return _TOO_LARGE, False
        return _fault(error), False
    return None, True


def _fault(error: Exception) -> dict[str, Any]:
    traceback.print_exception(error)
    return describe_fault(error)


def describe_fault(error: Exception) -> dict[str, Any]:
    """The problem of a job that a fault of the program ended; its stack belongs in the log."""
    return {"code": "internal-error", "title": f"the job failed: {type(error).__name__}",
            "detail": "this is a fault of the program: report it with the lines of the station's log"}  # fmt: skip


def _read_orders(orders: "queue.SimpleQueue[Order | Exception]") -> None:
    """Read orders until the end of standard input: the station has ended, cancels the job, or needs this process no more.

    An order that cannot be read is the last one: its exception comes instead.
    """
    try:
        while head := sys.stdin.buffer.read(LENGTH_BYTES):
            body = sys.stdin.buffer.read(int.from_bytes(head, "big"))
            orders.put(pickle.loads(body))  # of the station that started us
    except Exception as error:
        orders.put(error)
        return
    os._exit(1)


def _say(what: Mapping[str, Any]) -> None:
    print(json.dumps(what), file=sys.stderr, flush=True)

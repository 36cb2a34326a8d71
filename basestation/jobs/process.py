"""The process of a job: it takes an order from standard input, and writes lines of results to standard output.

Standard error has a line of JSON for each step of progress, and one for the problem that ended the work. The process has the
lowest priority, a limit of memory, of results and of processor time, and ends with the process that started it.
"""

import errno
import json
import os
import pickle
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from gateway.diagnostics import DiagnosticError
from gateway.errors import MoteloomError

NICE = 19
GRACE = 5
"""Between a soft and a hard limit: at the hard one of processor time the kernel kills without a reason."""
REPORT_SECONDS = 0.2
"""Between two reports of progress, at least."""
LENGTH_BYTES = 8
_TOO_LARGE = {"code": "job-too-large", "title": "the job needs more memory than it may have",
              "detail": "ask for a shorter time, or for fewer rows"}  # fmt: skip
Report = Callable[[float], None]
"""Takes the share of the work that is done."""


def encode_order(limits: Mapping[str, int], order: object) -> bytes:
    """An order for the standard input of a job's process, with its limits: `memory_bytes`, `result_bytes`, `cpu_seconds`."""
    body = pickle.dumps((dict(limits), order))
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def run_job(work: Callable[[Any, TextIO, Report], None]) -> None:
    """Carry out the order on standard input. `work` takes the order, the file for lines of results, and a Report."""
    limits, order = _read_order()
    os.nice(NICE)
    for what, most in (
        (resource.RLIMIT_DATA, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["result_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
    ):
        resource.setrlimit(what, (most, most + GRACE))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    problem = _carry_out(work, order)
    if problem is not None:
        _say({"problem": problem})
    sys.stderr.flush()
    os._exit(0 if problem is None else 1)  # results that do not fit would fail once more at the usual end


def _carry_out(work: Callable[[Any, TextIO, Report], None], order: Any) -> dict[str, Any] | None:
    """The problem that ended the work, or None."""
    try:
        work(order, sys.stdout, _make_report())
        sys.stdout.flush()
    except DiagnosticError as wrong:
        found = [each.as_json() | {"rendered": each.render()} for each in wrong.diagnostics]
        return {"code": found[0]["code"], "title": found[0]["message"], "diagnostics": found}
    except MoteloomError as wrong:
        return {"code": getattr(wrong, "code", "failed"), "title": str(wrong), "detail": getattr(wrong, "help", None)}
    except MemoryError:
        return _TOO_LARGE
    except OSError as why:
        if why.errno == errno.ENOSPC:
            return {"code": "disk-full", "title": "the station's disk has no room for the results",
                    "detail": "make room, or delete jobs, and start it again"}  # fmt: skip
        if why.errno != errno.EFBIG:
            raise
        return {"code": "results-too-long", "title": "the job has more results than it may have",
                "detail": "ask for a shorter time, or for an aggregate"}  # fmt: skip
    except Exception as error:
        if os.strerror(errno.EAGAIN) in str(error):  # of a library, where the stack of a thread has no memory
            return _TOO_LARGE
        traceback.print_exc()
        return {"code": "internal-error", "title": f"the job failed: {type(error).__name__}",
                "detail": "this is a fault of the program: report it with the lines of the station's log"}  # fmt: skip
    return None


def _read_order() -> tuple[dict[str, int], Any]:
    length = int.from_bytes(sys.stdin.buffer.read(LENGTH_BYTES), "big")
    found: tuple[dict[str, int], Any] = pickle.loads(sys.stdin.buffer.read(length))  # of the station that started us
    return found


def _end_with_parent() -> None:
    """Wait for the end of standard input: the station has ended, or it cancels the job."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def _make_report() -> Report:
    due = 0.0

    def report(share: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + REPORT_SECONDS
            sys.stdout.flush()  # so that clients can read the results so far
            _say({"progress": round(min(1.0, share), 4)})

    return report


def _say(what: Mapping[str, Any]) -> None:
    print(json.dumps(what), file=sys.stderr, flush=True)

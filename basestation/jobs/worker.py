"""JobWorker: a process that carries out jobs of one kind, as the station sees it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from basestation.jobs.process import Order

KEPT_ERROR_LINES = 20
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""One thread for each library; the usual allocator of Arrow reserves a gigabyte, which the limit of memory would count."""
_PASSED = "PATH", "HOME", "LANG", "TZ", "PYTHONPATH", "JAVA_HOME"
_KINDS = {"progress", "doing"}, {"note"}, {"end", "usable"}


class JobWorker:
    """Starts its process at once. OSError where none can be started."""

    def __init__(self, module: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=_environment(),
        )  # fmt: skip
        self.is_usable = True
        """Whether it can take another order."""
        self.output: list[str] = []
        """The last lines that the process printed beside its reports."""

    def carry_out(self, order: Order, report: Callable[[Mapping[str, Any]], None]) -> Mapping[str, Any] | None:
        """Carry out an order, and follow it to its end. The problem that ended it, or None.

        `report` takes `progress` and `doing`, or a `note`. ProcessLookupError, with its exit code, where the process ended before.
        """
        assert self.process.stdin is not None and self.process.stderr is not None
        self.is_usable, self.output = False, []
        try:
            self.process.stdin.write(order.encode())
            self.process.stdin.flush()  # it stays open: its end ends the process
        except BrokenPipeError:
            pass  # the process has ended, and says why
        for line in self.process.stderr:
            found = _parse(line)
            if "end" in found:
                self.is_usable = found["usable"]
                problem: Mapping[str, Any] | None = found["end"]
                return problem
            if found:
                report(found)
            else:
                self.output = [*self.output, line.decode(errors="replace").rstrip()][-KEPT_ERROR_LINES:]
        raise ProcessLookupError(self.process.wait())

    def close(self) -> None:
        """End the process, and wait for that."""
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass


def _environment() -> dict[str, str]:
    """No secrets that the environment of the station may have."""
    return {name: value for name, value in os.environ.items() if name in _PASSED} | ENVIRONMENT


def _parse(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.keys() in _KINDS else {}

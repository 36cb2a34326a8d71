"""JobWatch: reports how far Spark is with a job of a client, and cancels one that takes too much processor time."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.archive.spark.progress import watch_tasks

if TYPE_CHECKING:
    from basestation.archive.spark.session import SparkSession


class JobWatch:
    """Watches a session inside `with`. `is_cancelled` says whether the limit ended the job."""

    def __init__(self, session: "SparkSession", cpu_seconds: float, report: Callable[[float, str], None]) -> None:
        """`cpu_seconds` are those of the processor that Java on this machine may take; `report` takes a share and words."""
        self.is_cancelled = False
        self._session, self._report = session, report
        gateway = session.sparkContext._gateway
        self._java = Path("/proc") / str(None if gateway is None else gateway.proc.pid) / "stat"
        self._last = self._cpu_seconds() + cpu_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "JobWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        share = 0.0
        for done, tasks in watch_tasks(self._session, self._over):
            if self._cpu_seconds() > self._last:
                self.is_cancelled = True
                self._session.sparkContext.cancelAllJobs()
            if tasks:
                share = max(share, done / tasks)
                self._report(min(share, 0.99), f"{done} of {tasks} tasks of Spark")

    def _cpu_seconds(self) -> float:
        """The seconds of the processor that Java has taken; 0 where the system does not say."""
        try:
            fields = self._java.read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

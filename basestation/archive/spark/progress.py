"""Shows how far Spark is: the tasks of the stages that run."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from gateway.cli.terminal import write_control

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.2
WIDE = 30


class TaskBar:
    """Writes how many tasks are done: a bar on a terminal, else a line for each change."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._is_terminal, self._begun, self._shown = file, file.isatty(), time.monotonic(), ""

    def show(self, done: int, tasks: int) -> None:
        """Show the tasks of the stages that run, unless that is what the bar shows."""
        bar = draw_bar(done, tasks) if tasks else self._shown
        if bar != self._shown:
            self._shown = bar
            since = f" after {time.monotonic() - self._begun:.1f} s\n"
            write_control(self._file, f"\r{bar}" if self._is_terminal else bar + since)
            self._file.flush()

    def clear(self) -> None:
        """Take the bar from a terminal."""
        if self._shown and self._is_terminal:
            write_control(self._file, "\r" + " " * (len(self._shown) + 10) + "\r")
            self._file.flush()


@contextmanager
def show_progress(session: "SparkSession", file: TextIO) -> Iterator[None]:
    """Write the progress of the jobs that run meanwhile."""
    bar = TaskBar(file)
    if type(session).__module__.startswith("pyspark.sql.connect"):  # its server reports by itself

        def handle(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
            counts = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
            bar.show(sum(done for done, _ in counts), sum(tasks for _, tasks in counts))

        handler: Any = handle
        session.registerProgressHandler(handler)
        try:
            yield
        finally:
            session.removeProgressHandler(handler)
            bar.clear()
        return
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(session, bar, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        bar.clear()


def draw_bar(done: int, tasks: int) -> str:
    """Such as `[=====>    ] 12 of 24 tasks`."""
    full = WIDE * done // tasks
    return f"[{'=' * full}{'>' if full < WIDE else ''}".ljust(WIDE + 1) + f"] {done} of {tasks} tasks"


def watch_tasks(session: "SparkSession", over: threading.Event) -> Iterator[tuple[int, int]]:
    """Until `over`, again and again, the tasks of the stages that run: those that are done, and all."""
    from py4j.protocol import Py4JError

    tracker = session.sparkContext.statusTracker()
    while not over.wait(EVERY_S):
        try:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Py4JError:  # the session ends
            break
        found = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
        yield sum(done for done, _ in found), sum(tasks for _, tasks in found)


def _watch(session: "SparkSession", bar: TaskBar, over: threading.Event) -> None:
    for done, tasks in watch_tasks(session, over):
        bar.show(done, tasks)

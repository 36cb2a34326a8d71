"""Shows how far Spark is: the tasks of the stages that run."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gateway.cli.terminal import write_control

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.2
WIDE = 30


@contextmanager
def show_progress(session: "SparkSession", file: TextIO) -> Iterator[None]:
    """Write the progress of the jobs that run meanwhile: a bar on a terminal, else a line for each change."""
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(session, file, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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


def _watch(session: "SparkSession", file: TextIO, over: threading.Event) -> None:
    is_terminal, begun, shown = file.isatty(), time.monotonic(), ""
    for done, tasks in watch_tasks(session, over):
        bar = draw_bar(done, tasks) if tasks else shown
        if bar == shown:
            continue
        shown = bar
        write_control(file, f"\r{bar}" if is_terminal else f"{bar} after {time.monotonic() - begun:.1f} s\n")
        file.flush()
    if shown and is_terminal:
        write_control(file, "\r" + " " * (len(shown) + 10) + "\r")
        file.flush()

"""The bar of the tasks that Spark has done returns to the begin of its line, also where control characters are escaped."""

import io
import threading
from types import SimpleNamespace

import pytest

from basestation.archive.spark import progress
from gateway.cli.terminal import PrintableStream


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_is_drawn_over_itself(monkeypatch):
    pytest.importorskip("py4j")
    monkeypatch.setattr(progress, "EVERY_S", 0)
    terminal, asked = Terminal(), threading.Event()

    def active():
        if terminal.getvalue():
            asked.set()
        return [0]

    tracker = SimpleNamespace(
        getActiveStageIds=active, getStageInfo=lambda stage: SimpleNamespace(numCompletedTasks=1, numTasks=2)
    )
    session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    with progress.show_progress(session, PrintableStream(terminal)):
        assert asked.wait(60)
    bar = progress.draw_bar(1, 2)
    assert terminal.getvalue() == f"\r{bar}\r{' ' * (len(bar) + 10)}\r"

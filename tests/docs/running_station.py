"""A station that a command of a page starts, in a folder with the examples."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

START_SECONDS = 60


@dataclass(frozen=True)
class PageStation:
    folder: Path
    url: str
    environment: dict[str, str]

    def run(self, *command: str, seconds: float = 200) -> subprocess.CompletedProcess[str]:
        """Run a command beside the station, as its reader would; line ends stay as they are."""
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, timeout=seconds)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextlib.contextmanager
def running_station(start: str, folder: Path) -> Iterator[PageStation]:
    """Start the station, yield it when it answers, and end it with Ctrl-C; it must end with 0."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT)}
    log, url = folder / "log", folder / "moteloom-data/url"
    with open(log, "w") as errors:
        station = subprocess.Popen([*shlex.split(start), "--port", "0"], cwd=folder, env=environment, stderr=errors)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (url.exists() and url.read_text().endswith("\n")):
            assert station.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield PageStation(folder, url.read_text().strip(), environment)
    finally:
        station.send_signal(signal.SIGINT)
        assert station.wait(timeout=60) == 0, log.read_text()

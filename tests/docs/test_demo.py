"""`make demo`: a station with simulated motes, its network, three queries, a mote that comes back; it checks itself."""

import os
import pty
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

DEMO = ["bash", str(ROOT / "examples/lab54/demo.sh")]


def surroundings(folder):
    """The environment of `make demo`, twice as fast."""
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": search, "TMPDIR": str(folder), "DEMO_SPEED": "60"}


def check_shown(text):
    """Whether the demo shows what it promises, the network on the first screen."""
    lines = text.splitlines()
    assert len(lines) < 60, text
    assert any("gateway 0" in line for line in lines[:24]) and "46 motes more" in text, text
    assert "revision 1" in text and "[108 of 108]" in text and lines[-1] == "demo: done", text


@pytest.mark.promise("paper-queries", "durable")
@pytest.mark.timeout(400)
def test_demo_shows_live_answers_and_a_revision(tmp_path, need):
    need("bash", "awk", "timeout")
    done = subprocess.run(DEMO, env=surroundings(tmp_path), capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    check_shown(done.stdout)
    assert list(tmp_path.iterdir()) == []


def run_in_terminal(command, environment):
    """The exit code of a command in a terminal, and what it writes there."""
    screen, inner = pty.openpty()
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=environment, cwd=ROOT) as process:
        os.close(inner)
        shown = b""
        while True:
            try:
                part = os.read(screen, 65_536)
            except OSError:  # Linux: no process has the terminal open any more
                break
            if not part:
                break
            shown += part
    os.close(screen)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(400)
def test_commands_after_the_demo_work_in_the_same_shell(tmp_path, need):
    """They need no PATH of their own; the last one ends the station, whose data are removed."""
    need("bash", "awk", "timeout")
    code, shown = run_in_terminal(DEMO, surroundings(tmp_path))
    assert code == 0, shown
    check_shown(shown)
    tail = shown[shown.index("== try it yourself") :]
    commands = re.findall(r"^  (\S.*)$", tail, re.MULTILINE)
    assert len(commands) == 4 and commands[-1].startswith("kill ")
    listed, watched, motes, kill = map(shlex.split, commands)
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("running") == 3, done.stdout + done.stderr
    done = subprocess.run(motes, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 55, done.stdout + done.stderr
    done = subprocess.run([*watched, "--count", "1"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, done.stdout + done.stderr
    assert subprocess.run(kill).returncode == 0
    while any(tmp_path.iterdir()):  # the test's own limit ends this
        time.sleep(0.1)

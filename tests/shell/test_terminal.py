"""The shell in a pseudo-terminal, as its user has it: keys go in, the screen comes out."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from tests.docs.pages import ROOT

RECORDINGS = ("--schema", "examples/roadbridge/schema.sneeql", "--input", "road=examples/roadbridge/recording/road.csv")
ENTER, TAB, UP, CTRL_C, CTRL_D = "\r", "\t", "\x1b[A", "\x03", "\x04"


class Terminal:
    """`moteloom` on a pseudo-terminal of 100 columns."""

    def __init__(self, home, *arguments, **environment):
        self._master, slave = pty.openpty()
        environment = {
            **os.environ, "HOME": str(home), "TERM": "xterm", "COLUMNS": "100", "LINES": "40",
            "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(home / "state"), **environment,
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", *arguments], cwd=ROOT, env=environment,
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.screen, self._seen = "", 0

    def type(self, text):
        os.write(self._master, text.encode())
        return self

    def expect(self, pattern):
        """Wait until the new part of the output has a pattern; what stands before it counts as seen."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", "", self.screen)
            if match := re.search(pattern, plain[self._seen :]):
                self._seen += match.end()
                return self
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self._master, 65_536).decode(errors="replace")
                except OSError:  # the shell has ended
                    break
        raise AssertionError(f"no {pattern!r} in {self.screen[-2000:]!r}")

    def end(self):
        """Press Ctrl-D until the shell ends; a key that comes between two prompts is lost. Returns the exit code."""
        for _ in range(30):
            self.type(CTRL_D)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
                break
        os.close(self._master)
        return self.process.returncode


@pytest.fixture
def start(tmp_path):
    started = []

    def start_terminal(*arguments, **environment):
        started.append(Terminal(tmp_path, *arguments, **environment))
        return started[-1]

    yield start_terminal
    for terminal in started:
        terminal.process.kill()
        terminal.process.wait()


@pytest.mark.promise("shell")
def test_statement_over_two_lines_is_completed_and_answered(start, tmp_path):
    shell = start("shell", *RECORDINGS)
    shell.expect("recordings of road").expect("moteloom>")
    shell.type(f"SEL{TAB}").expect("SELECT").type(f" MAX(tem{TAB}").expect("temp")
    shell.type(f") AS top FROM road{ENTER}").expect(r"\.\.\.>").type(f"[FROM NOW-59 MIN TO NOW SLIDE 12 HOUR];{ENTER}")
    shell.expect("time +top +coverage").expect("43200 +[0-9]+ +road 2[0-9]{2} of 240").expect("moteloom>")
    shell.type(f"SELECT tmep FROM road;{ENTER}").expect(r"\^\^\^\^").expect("did you mean `temp`").expect("moteloom>")
    shell.type(f"SELECT nothing{CTRL_C}").expect("moteloom>")
    shell.type(f"{UP}").expect("tmep").type(CTRL_C).expect("moteloom>")
    assert shell.end() == 0
    history = tmp_path / "state/moteloom/history"
    assert "tmep" in history.read_text() and history.stat().st_mode & 0o077 == 0


def test_history_is_there_in_the_next_shell(start):
    shell = start("shell", *RECORDINGS)
    shell.expect("moteloom>").type(f"\\d road{ENTER}").expect("vibration").expect("moteloom>")
    assert shell.end() == 0
    shell = start("shell", *RECORDINGS)
    shell.expect("moteloom>").type(UP).expect(r"\\d").type(ENTER).expect("vibration").expect("moteloom>")
    assert shell.end() == 0


def test_no_color_is_obeyed(start):
    shell = start("shell", *RECORDINGS, NO_COLOR="1")
    shell.expect("moteloom>").type(f"SELECT MAX({TAB}").expect("temp").type(CTRL_C).expect("moteloom>")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38;[0-9;]*|48;[0-9;]*)m", shell.screen)
    assert shell.end() == 0


def test_moteloom_alone_in_a_terminal_is_the_shell(start, tmp_path):
    shell = start(MOTELOOM_URL="http://127.0.0.1:9")
    shell.expect("no station answers at http://127.0.0.1:9").expect("moteloom run").expect("moteloom shell --schema")
    assert shell.process.wait(timeout=30) == 4


def test_moteloom_alone_in_a_pipe_lists_its_verbs():
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli"], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2 and done.stdout == "" and "verbs:" in done.stderr


def test_piped_statements_run_without_a_prompt():
    text = "SELECT COUNT(*) AS n FROM road.HISTORY;\nSELECT nope FROM road;\n"
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "shell", *RECORDINGS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        input=text,
    )
    assert done.returncode == 2 and [line.split()[1] for line in done.stdout.splitlines()] == ["n", "5703"]
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--input", "road=a.csv"), 2, "--input is about recordings and needs --schema"),
        (("--schema", "nowhere.sneeql"), 3, "nowhere.sneeql"),
        (("--schema", "examples/roadbridge/schema.sneeql", "--input", "rood=a.csv"), 3, "road"),
        (("--url", "http://127.0.0.1:9"), 4, "no station answers"),
    ],
)
def test_wrong_arguments_are_refused(arguments, code, reason):
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "shell", *arguments], cwd=ROOT, capture_output=True, text=True,
        input="SELECT 1 FROM road;",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "") and reason in done.stderr

"""Commands whose streams are closed, whose disk is full, whose memory ends, or that are interrupted: no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gateway.cli import main
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER

START = [sys.executable, "-c", "import sys; from gateway.cli import main; sys.exit(main())"]
VERBS = {
    "explain": ["explain", "-c", str(ROOT / "examples/lab54/deployment.toml"), "SELECT AVG(temp) FROM lab [NOW]"],
    "sim": ["sim", "run", str(FOLDER / "calm.toml"), "--for", "30s"],
    "config": ["config", "check", str(ROOT / "examples/lab54/deployment.toml")],
}


def in_shell(line, verb):
    """The outcome of a command in the line of a shell, where it is "$@"."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *START, *VERBS[verb]], capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("verb", VERBS)
def test_full_disk_behind_the_output_is_reported(verb):
    done = in_shell('"$@" >/dev/full', verb)
    assert (done.returncode, done.stderr) == (1, "moteloom: No space left on device\n")


@pytest.mark.parametrize("verb", VERBS)
def test_reader_that_leaves_ends_the_command(verb):
    done = in_shell('"$@" | true; exit ${PIPESTATUS[0]}', verb)
    assert done.returncode in (0, 141) and done.stderr == ""  # 0: all was written before the reader left


def test_closed_streams_do_not_matter():
    done = in_shell('"$@" <&- >&- 2>&-', "sim")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("kilobytes", [150_000, 200_000])
def test_little_memory_is_reported(kilobytes):
    """Libraries differ in how much they take before Python learns of it, so some commands end well."""
    done = in_shell(f'ulimit -v {kilobytes}; export OPENBLAS_NUM_THREADS=1; "$@" >/dev/null', "explain")
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 0 or "emory" in done.stderr


def test_memory_that_ends_anywhere_is_reported(monkeypatch, capsys):
    def fail(*_):
        raise MemoryError

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    monkeypatch.setattr("gateway.cli.os._exit", leave)
    with pytest.raises(SystemExit) as left:
        main(["explain"])
    assert left.value.code == 1
    assert capsys.readouterr().err.startswith("moteloom: out of memory; ")


def test_library_that_is_missing_is_not_called_memory(monkeypatch):
    def fail(*_):
        raise ImportError("No module named 'numpy'")

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    with pytest.raises(ImportError):
        main(["explain"])


def test_interrupt_while_processes_start_leaves_no_traceback(tmp_path, rng):
    """The folder is made by the first process that runs; others are just starting."""
    command = [
        *START,
        *VERBS["sim"][:3],
        "--for",
        "30d",
        "--seeds",
        "1..3",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not (tmp_path / "out").exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(rng.random() / 5)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().startswith("moteloom sim: interrupted; ") and b"Traceback" not in err, err.decode()

"""Ctrl-C at random moments ends a command with its documented code: no traceback, no hang, no half file under its name."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from gateway import launch
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER

START = """
import os, sys

class Begin:
    def find_spec(self, name, *_):
        if name == "gateway.cli":  # the first that the program imports
            os.write(2, b"ready\\n")

sys.meta_path.insert(0, Begin())
from gateway.launch import main
sys.exit(main())
"""
"""The command, which says when it begins. Before that, the interpreter starts, and Ctrl-C is not for Moteloom."""
LAB = ROOT / "examples/lab54"
ENDS = (130, -signal.SIGINT, 0)
"""Interrupted; interrupted while the interpreter ends, which is 130 in a shell; the command was done before."""
LIMIT_S = 20
"""A command that goes on for so long after Ctrl-C hangs. On an idle machine the slowest needs less than 1 s."""


def interrupt(arguments, seconds):
    """The exit code and standard error of a command that is interrupted so long after it began."""
    with subprocess.Popen(
        [sys.executable, "-c", START, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stderr.readline() == b"ready\n"
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=LIMIT_S)[1].decode()
        finally:
            process.kill()
    assert "Traceback" not in errors, errors
    return process.returncode, errors


def test_interrupt_that_python_wraps_is_an_interrupt(monkeypatch):
    """A class with dataclass fields that is interrupted while it is made raises a RuntimeError with the interrupt as its cause."""
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)  # the program has one of its own

    def fail(*_):
        raise RuntimeError("Error calling __set_name__") from cause

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    try:
        cause = KeyboardInterrupt()
        assert launch.main() == 130
        cause = ValueError('Field "in_":\n  SchemaError: Error building "enum" validator:\n  KeyboardInterrupt: ')
        monkeypatch.setattr("gateway.cli.dispatch", lambda *_: (_ for _ in ()).throw(cause))
        assert launch.main() == 130
        monkeypatch.setattr("gateway.cli.dispatch", fail)
        cause = ValueError()
        with pytest.raises(RuntimeError):
            launch.main()
    finally:
        signal.signal(signal.SIGINT, before)


DROPPED = """
import os, signal, sys, weakref

class Loaded:
    pass

def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1_000):  # Python looks for signals
        pass

def run():
    loaded = Loaded()
    watched = weakref.ref(loaded, interrupt)
    del loaded
    while True:
        pass

import gateway.cli
gateway.cli.main = run
from gateway.launch import main
sys.exit(main())
"""
"""A command that never ends, and is interrupted in a callback, whose errors Python drops."""


def test_interrupt_in_a_callback_ends_the_command():
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, cwd=ROOT, timeout=LIMIT_S,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # fmt: skip
    assert (done.returncode, done.stderr.decode()) == (130, "")


def moments(rng, count):
    """Random moments: most while libraries are imported and the command begins, some while it works."""
    return [rng.uniform(0, rng.choice((0.3, 2.0))) for _ in range(count)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The schema and the file of a recording that takes about a second."""
    folder = tmp_path_factory.mktemp("recording")
    (folder / "schema").write_text("road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2, 3, 4\n")
    rows = "".join(f"{60 * (at // 4)},{at % 4 + 1},{at % 97}\n" for at in range(100_000))
    (folder / "road.csv").write_text("_tick,_site,temp\n" + rows)
    return folder / "schema", folder / "road.csv"


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_interrupted_replay_ends_with_130(recording, output, rng, counts):
    schema, road = recording
    query = "SELECT site, AVG(temp) AS mean FROM road [FROM NOW-9 MIN TO NOW SLIDE 1 MIN] GROUP BY site"
    for moment in moments(rng, counts(1, 17)):
        code, errors = interrupt(["replay", "--schema", schema, "--input", f"road={road}", "-o", output, query], moment)
        assert code in ENDS, (moment, code, errors)


def test_interrupted_explain_leaves_no_half_map(tmp_path, rng, counts):
    query = "SELECT AVG(temp) FROM lab [NOW]"
    for number, moment in enumerate(moments(rng, counts(2, 50))):
        drawn = tmp_path / f"{number}.svg"
        code, errors = interrupt(
            ["explain", "-c", LAB / "deployment.toml", "--analyze", "--for", "10min", "--map", drawn, query], moment
        )
        assert code in ENDS, (moment, code, errors)
        assert not drawn.exists() or drawn.read_text().endswith("</svg>\n")


def test_interrupted_simulation_leaves_whole_files_or_parts(tmp_path, rng, counts):
    arguments = ["sim", "run", FOLDER / "calm.toml", "--for", "3min"]
    whole = tmp_path / "whole"
    subprocess.run([sys.executable, "-c", START, *map(str, arguments), "--out", str(whole), "--plot", f"{whole}.svg"],
                   check=True, capture_output=True, cwd=ROOT)  # fmt: skip
    for number, moment in enumerate(moments(rng, counts(2, 50))):
        out = tmp_path / str(number)
        code, errors = interrupt([*arguments, "--out", out, "--plot", f"{out}.svg"], moment)
        assert code in ENDS, (moment, code, errors)
        plot = [out.with_suffix(".svg")] if out.with_suffix(".svg").exists() else []
        for file in [*out.rglob("*.*"), *plot]:
            like = whole.with_suffix(".svg") if file in plot else whole / file.relative_to(out)
            assert file.suffix == ".part" or file.read_bytes() == like.read_bytes(), (moment, file)


@pytest.mark.parametrize("later_s", [0, 1.5])
def test_interrupted_station_keeps_its_journal(tmp_path, later_s, rng, counts):
    for number, moment in enumerate(moments(rng, counts(1, 25))):
        data = tmp_path / str(number)
        code, errors = interrupt(
            ["run", "--simulate", LAB / "calm.scenario.toml", "--speed", "100", "--data", data, "--no-token", "--port", "0"],
            moment + later_s,
        )  # fmt: skip
        assert code in ENDS, (moment, code, errors)
        assert code != 0 or "stopped; everything is kept" in errors
        if os.path.exists(data / "station.db"):
            with sqlite3.connect(data / "station.db") as journal:
                assert journal.execute("PRAGMA integrity_check").fetchone() == ("ok",)

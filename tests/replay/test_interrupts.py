"""Ctrl-C at any moment ends a replay with exit code 130 and no traceback; closed streams and misspelt options have messages."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from basestation.cli import replay as verb
from gateway.cli import parser_of

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = "import sys; from gateway.launch import main; sys.exit(main())"


@pytest.fixture
def command(tmp_path):
    (tmp_path / "schema").write_text("road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2, 3, 4\n")
    rows = "".join(f"{60 * (at // 4)},{at % 4 + 1},{at % 97}\n" for at in range(400_000))
    (tmp_path / "road.csv").write_text("_tick,_site,temp\n" + rows)
    query = "SELECT site, temp FROM road WHERE temp > 5"
    return [
        sys.executable,
        "-c",
        LAUNCH,
        "replay",
        "--schema",
        f"{tmp_path}/schema",
        "--input",
        f"road={tmp_path}/road.csv",
        query,
    ]


def interrupted(command, seconds):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1].decode()
    return process.returncode, errors


def test_interrupt_ends_with_130_and_no_traceback(command, rng, counts):
    """The interpreter needs about 0.1 s before it runs a line of the program. At its very end the signal ends it: 130 in a shell."""
    for _ in range(counts(3, 30)):
        code, errors = interrupted(command, rng.uniform(0.2, 1.5))
        assert code in (130, 0, -signal.SIGINT) and "Traceback" not in errors, errors


def test_closed_standard_input_is_named(capsys, monkeypatch, tmp_path):
    (tmp_path / "schema").write_text("road: sensed (temp:integer) every 1 min at sites 1\n")
    monkeypatch.setattr(sys, "stdin", None)
    assert verb.run(parser_of("replay", verb).parse_args(["--schema", f"{tmp_path}/schema", "-f", "-"])) == 3
    assert capsys.readouterr().err == "SN501: standard input: cannot be read: it is closed\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--shema", "x", "SELECT 1"], "unknown option --shema; did you mean --schema?"),
        (
            ["--schema", "x", "--timecolumn=when", "SELECT 1"],
            "unknown option --timecolumn; did you mean --time-column?",
        ),
        (["--schema", "x"], "one of the arguments QUERY -f/--file is required"),
    ],
)
def test_misspelt_option_is_recognised(capsys, given, words):
    with pytest.raises(SystemExit) as left:
        parser_of("replay", verb).parse_args(given)
    assert left.value.code == 2 and words in capsys.readouterr().err

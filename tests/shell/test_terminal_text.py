"""Control characters of files, names and arguments never reach a terminal, and messages never have them."""

import io
import os
import sys

import pytest

from basestation.replay.table_output import format_cell
from gateway.cli import main
from gateway.cli.terminal import PrintableStream, printable, write_control
from tests.docs.pages import ROOT

EVIL = "\x1b[31m\x07\x9b1m"
SHOWN = "\\x1b[31m\\x07\\x9b1m"
END = "nothing follows"
LAB = ROOT / "examples/lab54"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "schema").write_text("hits: pushed (name:string)\n")
    (tmp_path / "hits.csv").write_text(f"_arrival,name\n0,a{EVIL}z\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([EVIL], 2),
        (["errors", EVIL], 2),
        (["replay", "--schema", EVIL, "SELECT 1"], 3),
        (["replay", "--schema", "{}/schema", "--input", EVIL, "SELECT name FROM hits"], 2),
        (["replay", "--schema", "{}/schema", "--input", f"{EVIL}=x", "SELECT name FROM hits"], 3),
        (["replay", "--schema", "{}/schema", "--until", EVIL, "SELECT name FROM hits"], 2),
        (["replay", "--schema", "{}/schema", f"--{EVIL}", "SELECT name FROM hits"], 2),
        (["replay", "--schema", "{}/schema", f"SELECT {EVIL} FROM hits"], 2),
        (["explain", "-c", EVIL, "SELECT 1"], 3),
        (["sim", "run", EVIL, "--for", "1s"], 3),
        (["sim", "run", str(LAB / "calm.scenario.toml"), "--for", EVIL], 2),
        (["run", "--simulate", EVIL, "--log-level", "error"], 3),
        (["run", "--simulate", str(LAB / "calm.scenario.toml"), "--data", f"/dev/null/{EVIL}"], 1),
    ],
)
def test_messages_have_no_control_characters(folder, capsys, arguments, code):
    try:
        found = main([each.replace("{}", str(folder)) for each in arguments])
    except SystemExit as left:
        found = left.code
    out, err = capsys.readouterr()
    assert found == code and out == ""
    assert all(c.isprintable() or c in "\n\t" for c in err), repr(err)
    assert "\\x9b" in err


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_answers_have_no_control_characters_on_a_terminal(folder, output):
    terminal, end = os.openpty()
    before = sys.stdout, sys.stderr
    try:
        with os.fdopen(end, "w") as screen:
            sys.stdout = sys.stderr = screen
            arguments = ["--schema", f"{folder}/schema", "--input", f"hits={folder}/hits.csv", "-o", output]
            assert main(["replay", *arguments, "SELECT name FROM hits"]) == 0
            screen.write(END)
            screen.flush()
            shown = ""
            while END not in shown:  # a terminal passes on what was written in its own time
                shown += os.read(terminal, 100_000).decode()
    finally:
        sys.stdout, sys.stderr = before
        os.close(terminal)
    assert all(c.isprintable() or c in "\r\n\t" for c in shown), repr(shown)
    assert "\\x9b1mz" in shown


def test_answers_for_programs_are_as_recorded(folder, capsys):
    main(
        [
            "replay",
            "--schema",
            f"{folder}/schema",
            "--input",
            f"hits={folder}/hits.csv",
            "-o",
            "csv",
            "SELECT name FROM hits",
        ]
    )
    assert f"a{EVIL}z" in capsys.readouterr().out


def test_stream_escapes_all_but_lines_and_its_own_control():
    stream = PrintableStream(io.StringIO())
    print(f"'{EVIL}'\tand\n", end="", file=stream)
    stream.writelines([EVIL])
    write_control(stream, "\r\x1b[K")
    assert stream.getvalue() == f"'{SHOWN}'\tand\n{SHOWN}\r\x1b[K"
    assert printable(f"a\t{EVIL}\n") == f"a\\t{SHOWN}\n"


def test_spaces_and_joiners_are_shown_as_they_are():
    text = "12\u202f000\u00a0km\u3000\u0915\u094d\u200d\u0937 \u200c\U0001f600"
    assert printable(text) == format_cell(text) == text
    assert printable("one\r\ntwo\rthree") == "one\r\ntwo\\rthree"
    assert format_cell("one\r\ntwo\u2028\u202e\ud800\x7f") == "one\\r\\ntwo\\u2028\\u202e\\ud800\\x7f"


def test_file_whose_name_is_not_utf_8_is_named(folder, capsys):
    name = os.fsdecode(os.fsencode(folder / "hits") + b"\xff.csv")
    os.rename(folder / "hits.csv", name)
    assert main(["replay", "--schema", f"{folder}/schema", "--input", f"hits={name}", "SELECT name FROM hits"]) == 3
    err = capsys.readouterr().err
    assert "SN501: " in err and "hits\\udcff.csv: cannot be read: its name is not UTF-8; rename it\n" in err


def test_refused_queries_are_bounded(tmp_path, capsys):
    text = (LAB / "calm.scenario.toml").read_text().replace('"deployment.toml"', f'"{LAB / "deployment.toml"}"')
    text = text[: text.index("[queries.")]
    wrong = "".join(f'[queries.q{number}]\ntext = "SELECT nothing FROM lab"\n' for number in range(30))
    (tmp_path / "many.toml").write_text(text + wrong)
    assert main(["sim", "run", str(tmp_path / "many.toml"), "--for", "1s"]) == 2
    err = capsys.readouterr().err
    assert err.count("was refused:") == 20 and err.endswith("10 more queries were refused; `-o json` prints all\n")

"""A closed standard input and misspelt options have messages."""

import sys

import pytest

from basestation.cli import replay as verb
from gateway.cli import parser_of


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

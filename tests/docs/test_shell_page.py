"""docs/shell.md is true: its dialogue is what the shell says, its tables have every command."""

import contextlib
import re
import sys

import pytest

from basestation.replay.statements import read_catalog
from basestation.shell.interpreter import COMMANDS, Interpreter
from basestation.shell.recordings import RecordingSource
from tests.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "shell.md"


def dialogue():
    """(what is typed, what the page shows after it)"""
    [block] = blocks(PAGE, "shell")
    parts = re.split(r"^moteloom> ", block.text, flags=re.MULTILINE)[1:]
    for part in parts:
        typed, *shown = part.rstrip("\n").split("\n")
        while shown and shown[0].startswith("...> "):
            typed += "\n" + shown.pop(0).removeprefix("...> ")
        yield typed, "\n".join(shown)


@pytest.mark.promise("pages-are-true", "shell")
def test_dialogue_is_what_the_shell_says(capsys):
    bridge = ROOT / "examples/roadbridge"
    catalog = read_catalog((bridge / "schema.sneeql").read_text())
    source = RecordingSource(catalog, {"road": str(bridge / "recording/road.csv")}, bridge)
    interpreter = Interpreter(source, sys.stdout, sys.stdout, width=72)
    said = []
    for typed, _ in dialogue():
        with contextlib.redirect_stderr(sys.stdout):
            interpreter.run(typed)
        said.append((typed, capsys.readouterr().out.rstrip("\n")))
    assert len(said) >= 5 and said == list(dialogue())


def test_table_has_every_command():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`\\{name}" not in text] == []

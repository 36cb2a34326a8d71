"""The `console` blocks of pages, and the command as this checkout declares it."""

import contextlib
import io
import shlex
import tomllib
from importlib.metadata import EntryPoint

from gateway.cli import VERBS, dispatch
from tests.docs.pages import ROOT, blocks


def verbs():
    """The verbs that pyproject.toml declares, whether or not this checkout is installed."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        declared = tomllib.load(file)["project"]["entry-points"][VERBS]
    return {name: EntryPoint(name, module, VERBS) for name, module in declared.items()}


def shown(page):
    """Yield (command, its output on the page, line) of each `$ moteloom …` in the `console` blocks of a page."""
    for block in blocks(page, "console"):
        command, said, line = None, [], 0
        for number, text in enumerate([*block.text.splitlines(), "$ "], block.line):
            if text.startswith("$ "):
                if command and command.startswith("moteloom "):
                    yield command, "\n".join(said).strip("\n"), line
                command, said, line = text[2:], [], number
            elif command is not None and command.endswith("\\"):
                command = command[:-1] + text
            else:
                said.append(text)


def agrees(told, expected):
    """Whether something is what a page shows; a line `…` there stands for any lines."""
    parts = "\n".join(f"^{line}$" for line in expected.splitlines()).split("^…$")
    lines = "\n".join(f"^{line}$" for line in told.splitlines())
    at = 0
    for number, part in enumerate(parts):
        found = lines.find(part.strip("\n"), at)
        if found < 0 or (number == 0 and found > 0):
            return False
        at = found + len(part.strip("\n"))
    return at == len(lines) or expected.endswith("…")


def said(command):
    """Run a command; return both outputs without blank lines at the ends."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.chdir(ROOT):
        dispatch(shlex.split(command)[1:], verbs())
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")

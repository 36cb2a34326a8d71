"""Golden errors: wrong texts with their printed diagnostics.

A block of a `.test` file has the line `error`, `schema` or `deployment`, the text, `----`, all diagnostics, and a blank line. A
deployment may be followed by the line `links.csv` and that file; it has no other files. Lines with `#` before a block comment it.

`python -m tests.golden.errors_runner --rewrite` writes the current diagnostics; review the diff.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from basestation.language.parser import parse
from basestation.language.schema_parser import parse_schema
from basestation.planner.deployed_catalog import read_deployed_catalog
from gateway.diagnostics import DiagnosticError
from gateway.source import Source
from innet.deployment.toml_reader import parse_deployment

FOLDER = Path(__file__).parent / "errors"
_PARSERS = {"error": parse, "schema": parse_schema}
_BLOCK = re.compile(
    r"(?P<notes>(?:#[^\n]*\n)*)(?P<command>error|schema|deployment)\n(?P<text>.*?)\n----\n(?P<expected>.*?)(?:\n\n(?=#|error\n|schema\n|deployment\n)|\n*\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    notes: str
    command: str
    text: str
    expected: str

    def reported(self):
        """The current diagnostics."""
        if self.command == "deployment":
            return _deployment_faults(self.text)
        return "\n\n".join(d.render() for d in _PARSERS[self.command](Source(self.text)).diagnostics)


def _deployment_faults(text):
    text, lies_there, links = text.partition("\nlinks.csv\n")

    def beside(name):
        if lies_there and name == "links.csv":
            return links
        raise FileNotFoundError(name)

    try:
        read_deployed_catalog(parse_deployment(text, "tank.toml", beside))
    except DiagnosticError as refused:
        return "\n\n".join(diagnostic.render() for diagnostic in refused.diagnostics)
    return ""


def blocks(path):
    """The blocks of a file. Text outside all blocks is an error, so that a typo loses no test."""
    content, made, position = path.read_text(encoding="utf-8"), [], 0
    while position < len(content):
        match = _BLOCK.match(content, position)
        if match is None:
            raise ValueError(f"{path.name}: no block begins at line {content.count(chr(10), 0, position) + 1}")
        made.append(Block(**match.groupdict()))
        position = match.end()
    return made


def rewrite(path):
    path.write_text(
        "\n\n".join(f"{b.notes}{b.command}\n{b.text}\n----\n{b.reported()}" for b in blocks(path)) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python -m tests.golden.errors_runner --rewrite")
    for file in sorted(FOLDER.glob("*.test")):
        rewrite(file)

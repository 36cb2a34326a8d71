"""docs/semantics.md: its examples hold on the oracle and the engine, and every section cited anywhere exists."""

import csv
import re
import subprocess
from dataclasses import dataclass

import pytest

from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from gateway.diagnostics import DiagnosticError
from tests.agreement.compare import agree
from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.test_language_page import _shown
from tests.oracles.recompute import run
from tests.oracles.schema import read_schema as read_extents

PAGE = DOCS / "semantics.md"
TEXT = PAGE.read_text(encoding="utf-8")
ANCHORS = re.findall(r'<a id="([\d.]+)"></a>', TEXT)
_CITED = re.compile(
    r"\bsemantics[ \n]+(?:# ?)?(?:section )?((?:\d+(?:\.\d+)*)(?:(?:,? and |,? or | to |, )\d+(?:\.\d+)*)*)",
    re.IGNORECASE,
)
_LINKED = re.compile(r"semantics\.md#([\w.]+)")
_VALUES = {"string": str, "float": float}


@dataclass(frozen=True)
class Example:
    """One `answer` block with the schema, recordings and statements above it."""

    line: int
    schema: str
    inputs: dict
    statements: tuple
    answer: str


def _rows(text, extent):
    """The rows of a recording as the oracle reads them; an empty field is null, one of a system column is absent."""
    types = {a.name: a.type for a in extent.attributes}
    return [
        {
            name: None if value == "" else _VALUES.get(types.get(name), int)(value)
            for name, value in row.items()
            if value != "" or not name.startswith("_")
        }
        for row in csv.DictReader(text.splitlines())
    ]


def _examples():
    schema, inputs, statements, answered = "", {}, [], True
    for block in blocks(PAGE):
        if block.language == "schema":
            schema, inputs = block.text, {}
        elif block.language == "input":
            name, _, tick = block.about.partition("@")
            rows = _rows(block.text, read_extents(schema)[name])
            inputs = inputs | {name: [*inputs.get(name, ()), (int(tick), rows)] if tick else rows}
        elif block.language == "sneeql":
            statements = [] if answered else statements
            statements.append((block.text, int(block.about.split()[1])) if block.about else block.text)
            answered = False
        elif block.language == "answer":
            answered = True
            yield Example(block.line, schema, inputs, tuple(statements), block.text)


def _refused_lines():
    """(schema, text, code, whether the text is a schema) of each line that must be refused."""
    schema = ""
    for block in blocks(PAGE):
        if block.language == "schema":
            schema = block.text
        elif block.language in ("sneeql-error", "schema-error"):
            for line in block.text.splitlines():
                text, _, code = line.rpartition("-- ")
                yield pytest.param(schema, text, code, block.language == "schema-error", id=text.strip())


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("example", list(_examples()), ids=lambda e: f"line-{e.line}")
def test_example_has_its_answer_on_oracle_and_engine(example):
    [answer] = [a for a in run(example.schema, example.inputs, example.statements).answers if a is not None]
    updates = answer.windows if answer.kind == "window" else answer.tuples
    assert "".join(f"{_shown(update)}\n" for update in updates) == example.answer
    assert agree(example.schema, example.inputs, list(example.statements)).verdict == "agree"


@pytest.mark.parametrize(("schema", "text", "code", "is_schema"), list(_refused_lines()))
def test_example_is_refused_with_its_code(schema, text, code, is_schema):
    with pytest.raises(DiagnosticError) as error:
        if is_schema:
            read_schema(text)
        else:
            bind_text(text, read_schema(schema))
    assert code in {diagnostic.code for diagnostic in error.value.diagnostics}


def test_every_numbered_heading_has_an_anchor_and_an_example():
    sections = re.split(r'<a id="[\d.]+"></a>\n(?=#)', TEXT)[1:]
    numbers = [re.match(r"#+ (\d+(?:\.\d+)?)", section)[1] for section in sections]
    assert set(numbers) <= set(ANCHORS) and len(set(ANCHORS)) == len(ANCHORS)
    parents = {number.split(".")[0] for number in numbers if "." in number}
    bare = [
        number
        for number, section in zip(numbers, sections, strict=True)
        if number not in parents and not re.search(r"```(answer|sneeql-error)", section)
    ]
    assert bare == []


@pytest.mark.promise("pages-are-true")
def test_every_cited_section_exists():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md", "*.test", "*.toml"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    unknown, count = [], 0
    for name in names:
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        cited = [number for found in _CITED.findall(text) for number in re.findall(r"\d+(?:\.\d+)*", found)]
        cited += _LINKED.findall(text)
        count += len(cited)
        unknown += [f"{name}: {number}" for number in cited if number.rstrip(".") not in ANCHORS]
    assert unknown == [] and count > 100

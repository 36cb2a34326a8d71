"""docs/guarantees.md keeps its own promise: every row names tests and commands that exist, and says what was found."""

import ast
import re

import pytest

from tests.docs.commands import verbs
from tests.docs.pages import DOCS, ROOT, tables

ROWS = [row for table in tables(DOCS / "guarantees.md") for row in table[1:]]


def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_shows_a_promise_exists(row):
    promise, shown_by, figures = row
    assert promise and figures
    named = re.findall(r"`([^`]+)`", shown_by)
    assert named, f"nothing shows: {promise}"
    for each in named:
        if each.startswith("make "):
            assert re.search(rf"^{each[5:]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE), (
                each
            )
        elif each.startswith("moteloom "):
            assert each.split()[1] in verbs(), each
        else:
            path, _, name = each.partition("::")
            assert name.startswith("test_") and name in functions(path), each


def test_each_promise_stands_once():
    promises = [row[0] for row in ROWS]
    assert len(promises) == len(set(promises)) >= 40


def test_every_door_s_law_and_page_has_a_row():
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    for test in sorted((ROOT / "tests/docs").glob("test_*.py")):
        if test.name not in ("test_guarantees_page.py", "test_glossary.py"):
            assert f"tests/docs/{test.name}::" in text, f"nothing of {test.name} stands on the page"

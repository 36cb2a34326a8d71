"""docs/simulator.md is true: it names what a trace has in it, and what can go wrong in a scenario."""

import ast
import re

import pytest

from simulator.scenario import FAULTS
from tests.docs.pages import DOCS, ROOT, tables


def rows(head):
    """Of the table under a head."""
    return next(rows for (first, *_), *rows in tables(DOCS / "simulator.md") if first == head)


def recorded():
    """Of each call of `record` the event, in the code that has a trace."""
    for module in (*(ROOT / "simulator").rglob("*.py"), *(ROOT / "basestation/testbed").glob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        said = {
            a.targets[0].id: a.value
            for a in ast.walk(tree)
            if isinstance(a, ast.Assign) and isinstance(a.targets[0], ast.Name)
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "record":
                what = call.args[2]
                what = said[what.id] if isinstance(what, ast.Name) else what
                yield from ([what.body.value, what.orelse.value] if isinstance(what, ast.IfExp) else [what.value])


@pytest.mark.promise("pages-are-true")
def test_page_names_every_trace_event():
    named = [name for cell, *_ in rows("event") for name in re.findall(r"`(\w+)`", cell)]
    assert len(named) == len(set(named))
    assert set(named) == set(recorded())


@pytest.mark.promise("pages-are-true")
def test_page_names_every_fault_with_its_keys():
    named = {cell.strip("`"): set(re.findall(r"`(\w+)[` ]", takes)) - {"back"} for cell, takes, _ in rows("`what`")}
    assert named == {what: set(takes) for what, takes in FAULTS.items()}

"""docs/architecture.md names functions that exist, and lists calls in the order in which the source makes them."""

import ast
import importlib
import inspect
import re
import sys
import textwrap

import pytest

from tests.docs.pages import DOCS, ROOT, tables

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
NAME = re.compile(r"`((?:gateway|acquisition|innet|basestation|simulator)(?:\.\w+)+)`")


def found(name):
    """The object of a dotted name: as much of it as is modules is imported, the rest are attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as why:
            if why.name is None or not name.startswith(why.name):
                raise
            continue
        for attribute in parts[cut:]:
            value = getattr(value, attribute)
        return value
    raise ModuleNotFoundError(name)


def lists():
    """(function of the heading, names of the numbered list below it)."""
    for section in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        head, _, rest = section.partition("\n")
        items = re.findall(r"^\d+\. (`[\w.]+`)", rest.split("\n#")[0], flags=re.MULTILINE)
        yield NAME.match(head)[1], [NAME.match(item)[1] for item in items]


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("name", sorted(set(NAME.findall(PAGE))))
def test_what_is_named_exists(name):
    assert found(name) is not None


def calls(function, owner=None):
    """(last name, object or None) of each call in the order of evaluation; helpers of the same module are gone into."""
    module = sys.modules[function.__module__]
    yield from _calls(ast.parse(textwrap.dedent(inspect.getsource(function))), module, owner, {function.__name__})


def _calls(node, module, owner, inside):
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, module, owner, inside)
    if not isinstance(node, ast.Call):
        return
    name, called = _callee(node.func, module, owner)
    if name.startswith("_") and inspect.isfunction(called) and name not in inside:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
        yield from _calls(tree, module, owner, inside | {name})
    else:
        yield name, called


def _callee(func, module, owner):
    if isinstance(func, ast.Name):
        return func.id, getattr(module, func.id, None)
    if not isinstance(func, ast.Attribute):
        return "", None
    if isinstance(func.value, ast.Name) and func.value.id == "self":
        return func.attr, getattr(owner, func.attr, None)
    path, value = [func.attr], func.value
    while isinstance(value, ast.Attribute):
        path, value = [value.attr, *path], value.value
    target = getattr(module, value.id, None) if isinstance(value, ast.Name) else None
    for attribute in path:
        target = getattr(target, attribute, None)
    return func.attr, target


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize(("door", "names"), list(lists()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_list_is_in_the_order_of_the_source(door, names):
    function = found(door)
    parent = found(door.rpartition(".")[0])
    made = iter(list(calls(function, parent if inspect.isclass(parent) else None)))
    assert names
    for name in names:
        wanted, last = found(name), name.rpartition(".")[2]
        assert any(called is wanted or (called is None and each == last) for each, called in made), (
            f"{door} does not call {name}, or calls it before what stands above it"
        )


def test_both_lives_go_through_all_eight_doors():
    for package in ("gateway", "acquisition", "innet", "basestation"):
        for door in ("uplink", "downlink"):
            assert f"`{package}.{door}." in PAGE


def test_the_planner_s_page_lists_the_rules_in_their_order():
    from basestation.planner.rewriter import RULES

    [table] = tables(ROOT / "basestation/planner/DESIGN.md")
    assert [row[0].strip("`") for row in table[1:]] == [rule.__name__ for rule in RULES]


@pytest.mark.parametrize("page", ["language", "planner"])
def test_files_that_a_design_names_exist(page):
    folder = ROOT / "basestation" / page
    text = (folder / "DESIGN.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/-]+\.(?:py|md))`", text):
        assert any((base / name).exists() for base in (folder, folder.parent, ROOT)), name

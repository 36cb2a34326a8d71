"""docs/guarantees.md keeps its own promise: each row has tests that carry its name, and says what they found."""

import pytest

from tests.docs.pages import DOCS, ROOT
from tools import promises

NAMES = promises.promises()


@pytest.fixture(scope="module")
def marked():
    return list(promises.marked())


@pytest.mark.parametrize("name", NAMES)
def test_promise_has_tests_and_figures(name, marked):
    assert [test for promise, test in marked if promise == name]
    [row] = [row for row in promises.ROW.finditer(promises.PAGE.read_text(encoding="utf-8")) if row["name"] == name]
    assert row["figures"].strip() and row["promise"].strip().endswith(".")


def test_marks_name_promises_of_the_page(marked):
    assert {promise for promise, _ in marked} == set(NAMES)


def test_page_has_about_thirty_promises_each_once():
    text = promises.PAGE.read_text(encoding="utf-8")
    assert 28 <= len(NAMES) <= 40
    assert text.count("\n| ") - text.count("\n| promise |") == len(NAMES)


def test_index_of_tests_is_up_to_date():
    """If this fails: python tools/promises.py"""
    assert promises.INDEX.read_text(encoding="utf-8") == promises.index()


def test_every_page_of_docs_has_a_test_behind_a_promise():
    for test in sorted((ROOT / "tests/docs").glob("test_*.py")):
        if test.name not in ("test_guarantees_page.py", "test_glossary.py", "test_naming_page.py"):
            assert f"tests/docs/{test.name}`" in (DOCS / "guarantees-tests.md").read_text(encoding="utf-8"), test.name

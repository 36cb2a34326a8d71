"""The catalogue of errors: each example causes only its error, each code occurs in a test, and the page is fresh."""

import re
from pathlib import Path

import pytest

from basestation.cli.error_page import diagnose_example, render_page
from basestation.errors import CATALOGUE, KINDS, TABLES
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden

ROOT = Path(__file__).resolve().parents[2]
_DIGITS = {"syntax": "1", "name": "2", "type": "3", "static": "4", "input": "5", "later": "6", "deployment": "7"}
_CODE = re.compile(r"SN\d{3}")
_BY_TEXT = [code for code, entry in CATALOGUE.items() if entry.kind not in ("input", "later")]


@pytest.mark.parametrize("code", _BY_TEXT)
def test_example_causes_exactly_its_error(code):
    assert [d.code for d in diagnose_example(code)] == [code]


@pytest.mark.parametrize("code", CATALOGUE)
def test_first_digit_of_code_is_its_kind(code):
    assert CATALOGUE[code].kind in KINDS
    assert code[2] == _DIGITS[CATALOGUE[code].kind]


@pytest.mark.parametrize("code", _BY_TEXT)
def test_raised_error_has_kind_of_its_code(code):
    assert {d.kind for d in diagnose_example(code)} == {CATALOGUE[code].kind}


def test_catalogue_has_every_code_of_sources():
    folders = ("acquisition", "basestation", "gateway", "innet")
    used = {
        code
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for code in _CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert used <= set(CATALOGUE)


def test_golden_files_cover_every_binder_error():
    told = {
        code
        for path in golden_files(QUERIES)
        for case in read_golden(path).cases
        for code in _CODE.findall(case.expected.get("", ""))
    }
    wanted = {code for code in _BY_TEXT if CATALOGUE[code].kind not in ("syntax", "deployment")}
    assert sorted(wanted - told) == []


def test_no_code_is_in_two_tables():
    assert len(CATALOGUE) == sum(map(len, TABLES))


def test_errors_page_is_up_to_date():
    """`moteloom errors -o markdown > docs/errors.md` makes it."""
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == render_page()

"""docs/your-data.md: its files are those of the example, and its Python prints what it shows. `test_readme` runs its commands."""

import contextlib
import io

import pytest

from tests.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "your-data.md"
FILES = ROOT / "examples" / "recordings"


@pytest.mark.promise("pages-are-true")
def test_python_of_the_page_prints_what_it_shows(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    [code], [shown] = blocks(PAGE, "python"), blocks(PAGE, "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code.text, str(PAGE), "exec"), {})
    assert [line.rstrip() for line in printed.getvalue().splitlines()] == shown.text.splitlines()


@pytest.mark.promise("pages-are-true")
def test_excerpts_are_of_the_example_files():
    head, schema, form = (block.text for block in blocks(PAGE, ""))
    assert (FILES / "greenhouse.csv").read_text().startswith(head)
    assert schema in (FILES / "greenhouse.sneeql").read_text()
    assert form in (FILES / "greenhouse.toml").read_text()

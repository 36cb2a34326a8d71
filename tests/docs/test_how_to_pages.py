"""Each page of docs/how-to works: a copy of the project takes every step of it."""

import pytest

from tests.docs.how_to import copy_project, walk
from tests.docs.pages import DOCS

PAGES = sorted(page for page in (DOCS / "how-to").glob("*.md") if page.name != "README.md")


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_can_be_followed_step_by_step(page, tmp_path):
    assert walk(page, copy_project(tmp_path)) >= 3


def test_overview_links_every_page():
    overview = (DOCS / "how-to" / "README.md").read_text(encoding="utf-8")
    assert all(f"]({page.name})" in overview for page in PAGES)

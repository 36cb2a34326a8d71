"""docs/design.md: the folders and pages that it names exist."""

import re

import pytest

from tests.docs.pages import DOCS, ROOT

TEXT = (DOCS / "design.md").read_text(encoding="utf-8")


@pytest.mark.promise("pages-are-true")
def test_named_folders_exist():
    folders = set(re.findall(r"`([a-z_/]+/)`", TEXT))
    assert len(folders) >= 6 and [name for name in sorted(folders) if not (ROOT / name).is_dir()] == []


def test_linked_pages_exist():
    links = set(re.findall(r"\]\(([\w/.-]+\.md)\)", TEXT))
    assert len(links) >= 5 and [link for link in sorted(links) if not (DOCS / link).is_file()] == []

"""README.md is true: what it shows is what the command says, what it names exists, and it does not grow."""

import re

import pytest

from tests.docs.commands import agrees, said, shown, verbs
from tests.docs.pages import DOCS, ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
PAGES = [
    README,
    *sorted((ROOT / "examples").glob("*/README.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("decisions/*.md")),
    *sorted(DOCS.glob("walks/*.md")),
]
SHOWN = [pytest.param(*each[:2], id=f"{page.name}:{each[2]}") for page in PAGES for each in shown(page)]


@pytest.mark.promise("predicted-energy", "explain", "pages-are-true")
@pytest.mark.parametrize(("command", "expected"), SHOWN)
def test_what_is_shown_is_what_the_command_says(command, expected):
    told = said(command)
    if not agrees(told, expected):
        assert told == expected


def test_what_is_left_out_agrees_and_nothing_else_does():
    told = "a\nb\nc\nd"
    for shown_ in (told, "…\nd", "a\n…", "a\n…\nc\nd", "…\nb\n…", "a\n…\nd"):
        assert agrees(told, shown_), shown_
    for shown_ in ("", "b\nc\nd", "a\nb\nc", "…\nb\nd", "c\n…", "…\nd\n…\na", "a\n…\nc", "…\n\nd"):
        assert not agrees(told, shown_), shown_


def test_something_is_shown():
    assert any(f"`{verb}`" in TEXT or f"moteloom {verb}" in TEXT for verb in verbs())
    assert len(list(shown(README))) >= 2


def test_no_verb_is_shown_that_does_not_exist():
    for page in PAGES:
        for verb in re.findall(r"(?:^\$ |`)moteloom ([a-z]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            assert verb in verbs(), f"{page.name} shows `moteloom {verb}`"


def test_targets_that_are_named_are_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for page in PAGES:
        assert (
            set(re.findall(r"(?:^\$ |`)make ([a-z]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)) <= targets
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} leads to {target}"
        if anchor:
            assert anchor in anchors(found), f"{page.name} leads to {target}"


def anchors(page):
    """The anchors of the headings, and those that the page names itself."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    named = re.findall(r'<a id="([^"]+)"></a>', text)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(named)

"""docs/glossary.md: each word once, in order."""

from tests.docs.pages import DOCS, tables


def test_words_stand_once_and_in_order():
    [table] = tables(DOCS / "glossary.md")
    words = [row[0] for row in table[1:]]
    assert words == sorted(set(words))
    assert all(len(row) == 2 and row[1] for row in table)

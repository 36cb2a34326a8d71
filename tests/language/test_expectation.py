"""Expectations at a cursor: every word of valid texts is expected at its place, and each word that is offered parses."""

import pytest

from basestation.language.expectation import PHRASES, find_expectation
from basestation.language.keywords import RESERVED
from basestation.language.lexer import tokenize
from basestation.language.parser import parse
from gateway.source import Source
from tests.language.texts import QUERIES


def offered(text):
    before, _, after = text.partition("|")
    return find_expectation(before + after, len(before))


@pytest.mark.promise("shell")
@pytest.mark.parametrize("text", QUERIES)
def test_keywords_of_valid_texts_are_expected_there(text):
    tokens, _ = tokenize(Source(text))
    if parse(Source(text)).diagnostics or "FOR (" in text:
        return
    for index, token in enumerate(tokens):
        if token.word in RESERVED and tokens[index - 1].word not in ("NOT", "."):
            found = find_expectation(text, token.span.start)
            words = {part for word in found.words for part in (word, word.split()[0])}
            assert token.word in words, text[: token.span.start] + "|" + token.text


@pytest.mark.promise("shell")
@pytest.mark.parametrize("text", QUERIES)
def test_words_that_are_offered_parse_at_their_place(text):
    tokens, _ = tokenize(Source(text))
    if parse(Source(text)).diagnostics:
        return
    for token in tokens[::5]:
        before = text[: token.span.start]
        found = find_expectation(before, len(before))
        kept = f"{before[: found.start]} "
        for word in found.words:
            if word.isalpha() and word not in PHRASES:
                errors = parse(Source(kept + word)).diagnostics
                assert not [each for each in errors if each.span.start == len(kept) < each.span.end], (kept, word)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("|", ["DELETE FROM", "DSTREAM", "EXPLAIN", "INSERT INTO", "ISTREAM", "REVISE", "RSTREAM", "SELECT"]),
        ("SELECT a FROM road [|", ["FROM", "NOW", "SCAN", "UNBOUNDED"]),
        ("SELECT a FROM road [FROM NOW-1 MIN |", ["TO"]),
        ("SELECT a FROM road [FROM NOW-1 |", ["DAY", "HOUR", "MIN", "MS", "ROW", "SEC", "TO"]),
        ("SELECT a FROM road WHERE a IS |", ["NOT", "NULL"]),
        ("SELECT CASE WHEN a = 1 |", ["AND", "OR", "THEN"]),
        ("SELECT a FROM road wh|", ["WHERE"]),
        ("SELECT a FROM road LIFETIME 3 |", ["DAY"]),
        ("SELECT a FROM road DELIVER |", ["WITHIN"]),
        ("SELECT a FROM road GROUP BY |", []),
        ("SELECT 'a |", []),
        ("SELECT a -- FR|", []),
        ("SELECT a /* FR|", []),
        ("SELECT 10|", []),
    ],
)
def test_words_at_a_cursor(text, words):
    assert [word for word in offered(text).words if word[0].isalpha()] == words


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT |", {"column", "function"}),
        ("SELECT a FROM |", {"extent"}),
        ("SELECT a FROM road GROUP BY |", {"column"}),
        ("SELECT CAST(a AS |", {"type"}),
        ("REVISE road SET |", {"column"}),
        ("SELECT a FROM road |", set()),
        ("SELECT a FROM road FOR |", set()),
    ],
)
def test_kinds_of_words_at_a_cursor(text, kinds):
    assert offered(text).kinds == kinds


def test_word_at_the_cursor_is_replaced_from_its_start():
    assert offered("SELECT a FROM road WHE| AND").start == 19

"""The lexer: kinds and values of tokens, and no text lost between them."""

import re

import pytest

from basestation.language.lexer import tokenize
from gateway.source import Source


def cut(text):
    tokens, diagnostics = tokenize(Source(text))
    assert not diagnostics, diagnostics[0].render()
    return [token.text for token in tokens[:-1]]


def complaint(text):
    _, (diagnostic,) = tokenize(Source(text))
    return diagnostic.code, Source(text).cut(diagnostic.span), diagnostic.help


def test_tokens():
    assert cut("SELECT a.b<=1.5e-3 ,'it''s' -- end\nFROM r[NOW−5]/* x\n*/;") == [
        "SELECT", "a", ".", "b", "<=", "1.5e-3", ",", "'it''s'", "FROM", "r", "[", "NOW", "−", "5", "]", ";",
    ]  # fmt: skip


def test_number_range_needs_no_spaces():
    assert cut("4..9 1.5 .. 2") == ["4", "..", "9", "1.5", "..", "2"]


def test_values():
    tokens, _ = tokenize(Source("12 1.5 2e-3 'it''s' ''"))
    assert [token.value for token in tokens[:-1]] == [12, 1.5, 2e-3, "it's", ""]


def test_decrement_of_a_loop_is_not_a_comment():
    assert cut("FOR (t = 5; t > 0; t--) { }")[-5:] == ["t", "--", ")", "{", "}"]
    assert cut("; t -- ) {") == [";", "t", "--", ")", "{"]
    assert cut("SELECT t -- ) {") == ["SELECT", "t"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("12abc", ("SN104", "12abc", "a name does not begin with a digit")),
        ("5MIN", ("SN104", "5MIN", "put a space before the unit: 5 MIN")),
        ("5.", ("SN104", "5.", "write 5 or 5.0")),
        (".5", ("SN104", ".5", "write 0.5")),
        ("1_000", ("SN104", "1_000", "write 1000")),
        ("1.2.3", ("SN104", "1.2.3", None)),
        ("1e400", ("SN104", "1e400", "integers have 64 bits, floats go up to 1.797e308")),
        ("9" * 5000, ("SN104", "9" * 5000, "integers have 64 bits, floats go up to 1.797e308")),
        ("a ≤ b", ("SN101", "≤", "write <=")),
        ("a && b", ("SN101", "&&", "the conjunction is AND")),
        ("‘MSFT’", ("SN101", "‘MSFT’", "use plain quotes: 'MSFT'")),
        ('"temp"', ("SN112", '"temp"', "write a name as temp, a string as 'temp'")),
        ("températur", ("SN101", "é", "names consist of A to Z, a to z, 0 to 9 and _")),
        ("'a''b", ("SN102", "'", "close it with ' (a quote inside a string is doubled: 'it''s')")),
        ("/* a", ("SN103", "/*", "close it with */")),
    ],
)
def test_invalid_token_is_reported_with_help(text, expected):
    assert complaint(text) == expected


def test_only_white_space_and_comments_are_skipped(rng, counts):
    letters = "aZ_09.'\"-+/*<>=!;:()[]{},%?#é−‘ \n\t\x00"
    gap = re.compile(r"(\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
    for _ in range(counts(2_000, 20_000)):
        text = "".join(rng.choices(letters, k=rng.randint(0, 30)))
        tokens, _ = tokenize(Source(text))
        position = 0
        for token in tokens[:-1]:
            assert gap.fullmatch(text, position, token.span.start), text
            assert token.text == text[token.span.start : token.span.end], text
            position = token.span.end
        assert gap.fullmatch(text, position), text

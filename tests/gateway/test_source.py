"""An excerpt points at a span with carets, also behind tabs and wide characters."""

import pytest

from gateway.source import Source, Span, did_you_mean


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(
    ("text", "of", "shown", "carets"),
    [
        ("SELECT tmep", "tmep", "SELECT tmep", "       ^^^^"),
        ("a\tb", "b", "a\tb", " \t^"),
        ("'木木' x", "x", "'木木' x", "       ^"),
        ("a = '木木'", "'木木'", "a = '木木'", "    ^^^^^^"),
        ("e\u0301e\u0301 x", "x", "e\u0301e\u0301 x", "   ^"),
        ("a\r b\x1b x", "x", "a␍ b␛ x", "      ^"),
        ("one\r\ntwo x\r\n", "x", "two x", "    ^"),
        ("one x\ntwo", "x\ntwo", "one x", "    ^"),
    ],
)
def test_caret_is_under_its_span(text, of, shown, carets):
    start = text.index(of)
    assert Source(text).excerpt(Span(start, start + len(of)))[1:] == [f"  {shown}", f"  {carets}"]


def test_caret_of_a_span_at_the_end_is_behind_the_text():
    assert Source("a b").excerpt(Span(3, 3)) == ["  --> line 1, column 4", "  a b", "     ^"]


def test_excerpt_starts_with_name_line_and_column():
    assert Source("a\nb c", "q.sneeql").excerpt(Span(4, 5))[0] == "  --> q.sneeql:2:3"


@pytest.mark.parametrize(("word", "near"), [("tmep", "temp"), ("TEMPS", "temp"), ("xyz", None)])
def test_did_you_mean_finds_the_nearest_candidate(word, near):
    assert did_you_mean(word, ["time", "temp", "site"]) == (near and f"did you mean `{near}`?")

"""Finds the characters of a TOML string in the text of its file, so that an error in a string points at its place there."""

import re

from gateway.source import Span

_SHORT = {"b": 1, "t": 1, "n": 1, "f": 1, "r": 1, '"': 1, "\\": 1, "u": 5, "U": 9}
"""The length of each escape after its backslash."""
_FOLDED = re.compile(r"[ \t]*\r?\n[ \t\r\n]*")


def locate_characters(text: str, span: Span) -> tuple[int, ...]:
    """The position in a file's text of each character of the valid TOML string at `span`, and of its end."""
    quote = text[span.start]
    size = 3 if text.startswith(quote * 3, span.start) and span.end - span.start >= 6 else 1
    at, end = span.start + size, span.end - size
    if size == 3:  # a line end right after the opening quotes is not part of the string
        at += 2 if text.startswith("\r\n", at) else text.startswith("\n", at)
    found = []
    while at < end:
        if quote == '"' and text[at] == "\\":
            if folded := _FOLDED.match(text, at + 1):
                at = min(folded.end(), end)
                continue
            found.append(at)
            at += 1 + _SHORT[text[at + 1]]
        else:
            found.append(at)
            at += 2 if text.startswith("\r\n", at) else 1  # a line end is one character
    return (*found, end)

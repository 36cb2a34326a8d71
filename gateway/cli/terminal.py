"""Text for terminals: control characters of files and names are written as escapes, so that they control nothing."""

import re
from collections.abc import Iterable
from typing import Any, TextIO

KEPT = "\n\t"
"""Characters of lines and tables, which are not escaped."""
_CONTROLS = re.compile(r"\r\n|[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines and paragraphs, characters that turn the direction of text, and halves of surrogate pairs.
Spaces of any kind and joiners of letters are ordinary text."""


def printable(text: str, kept: str = "\n") -> str:
    """Return text with escapes for characters that may control a terminal; those in `kept` stay.

    A carriage return stays only before a line feed that does.
    """
    return _CONTROLS.sub(lambda c: c[0] if c[0][-1] in kept else c[0].encode("unicode_escape").decode(), text)


def write_control(stream: TextIO, text: str) -> None:
    """Write text that is meant to control the terminal, such as the return to the begin of a line."""
    getattr(stream, "unescaped", stream).write(text)


class PrintableStream:
    """A stream of text that escapes control characters. `unescaped` is the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        """Write text; return its length."""
        self.unescaped.write(printable(text, KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)

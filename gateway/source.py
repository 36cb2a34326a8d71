"""Source: a text somebody wrote, and Span: a place in it; and how a place is pointed at.

It stands at the bottom so that whoever reads what people write (queries, schemas, deployments, configuration) points at
what is wrong with it in the same way.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of code points of a source text."""

    start: int
    end: int

    def to(self, other):
        """From the start of this one to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True)
class Source:
    """A text with a name (a file, or what was typed) whose lines can be found."""

    text: str
    name: str | None = None
    _starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "_starts", [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")])

    def line_column(self, offset):
        """Line and column of an offset, both counted from 1, in code points."""
        line = bisect_right(self._starts, offset) - 1
        return line + 1, offset - self._starts[line] + 1

    def offset(self, line, column):
        """The offset of a line and a column, both counted from 1."""
        return self._starts[line - 1] + column - 1

    def line(self, number):
        """The text of a line, counted from 1, without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def cut(self, span):
        return self.text[span.start : span.end]

    def excerpt(self, span: Span) -> list[str]:
        """Where a span is, its line, and a caret under it: three lines of an error."""
        line, column = self.line_column(span.start)
        text = self.line(line).translate(_PICTURES)
        # A caret stands under its character also where tabs and wide ones come before it, and never runs past its line.
        lead = "".join("\t" if c == "\t" else " " * _cells(c) for c in text[: column - 1])
        carets = "^" * max(1, sum(map(_cells, text[column - 1 : column - 1 + span.end - span.start])))
        where = f"{self.name}:{line}:{column}" if self.name else f"line {line}, column {column}"
        return [f"  --> {where}", f"  {text}", f"  {lead}{carets}"]


_PICTURES = {code: 0x2400 + code for code in range(0x20) if code != 0x09} | {0x7F: 0x2421}
"""Control characters are shown as their pictures: a terminal would obey them. A tab is what it is."""


def _cells(character):
    """How many columns of a terminal a character takes."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """The help line that names the nearest candidate, or None if nothing is near."""
    by_folded = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.lower(), candidate)
    near = get_close_matches(word.lower(), by_folded, n=5, cutoff=0.6)
    if not near:
        return None
    letters = sorted(word.lower())
    # Letters that changed places are one slip, though half of them stand elsewhere then.
    best = next((c for c in near if sorted(c) == letters), near[0])
    return f"did you mean `{by_folded[best]}`?"

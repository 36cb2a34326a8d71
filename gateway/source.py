"""Source texts and positions in them, and the excerpt that an error message shows.

The module lies in the lowest package because queries, schemas, deployments and scenarios all report errors with it.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of code points of a source text."""

    start: int
    end: int

    def to(self, other: "Span") -> "Span":
        """Return the span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True)
class Source:
    """A text and its name (a file, or None for typed text), with access by line and column."""

    text: str
    name: str | None = None
    _starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")])

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from 1, in code points."""
        line = bisect_right(self._starts, offset) - 1
        return line + 1, offset - self._starts[line] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and a column, both counted from 1."""
        return self._starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def cut(self, span: Span) -> str:
        """Return the text of a span."""
        return self.text[span.start : span.end]

    def excerpt(self, span: Span) -> list[str]:
        """Return three lines for an error message: position, source line, carets under the span."""
        line, column = self.line_column(span.start)
        text = self.line(line).translate(_PICTURES)
        # Tabs and wide characters before the span move the caret; the carets end with the line.
        lead = "".join("\t" if c == "\t" else " " * _cells(c) for c in text[: column - 1])
        carets = "^" * max(1, sum(map(_cells, text[column - 1 : column - 1 + span.end - span.start])))
        where = f"{self.name}:{line}:{column}" if self.name else f"line {line}, column {column}"
        return [f"  --> {where}", f"  {text}", f"  {lead}{carets}"]


_PICTURES = {code: 0x2400 + code for code in range(0x20) if code != 0x09} | {0x7F: 0x2421}
"""Control characters become their Unicode pictures, because a terminal would execute them. A tab stays a tab."""


def _cells(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return a help line that names the candidate nearest to `word`, or None if no candidate is near."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.lower(), candidate)
    near = get_close_matches(word.lower(), by_folded, n=5, cutoff=0.6)
    if not near:
        return None
    letters = sorted(word.lower())
    # Transposed letters are one typo, although their positions differ a lot: prefer an anagram.
    best = next((c for c in near if sorted(c) == letters), near[0])
    return f"did you mean `{by_folded[best]}`?"

"""Source: a text somebody wrote, and Span: a place in it."""

from bisect import bisect_right
from dataclasses import dataclass, field


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

    def line(self, number):
        """The text of a line, counted from 1, without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def cut(self, span):
        return self.text[span.start : span.end]

"""Diagnostic: one error in a text (query, schema, TOML file), with its place, the expected words, and help.

The same object is printed on a terminal (with a caret under the place), as one line of JSON, and by REST.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import MoteloomError
from gateway.source import Source, Span

_KINDS = {
    "1": "syntax", "2": "name", "3": "type", "4": "static", "5": "input", "6": "later", "7": "deployment",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error at a place in a source. The catalogue in `basestation/errors/` explains each code."""

    code: str  # SN and three digits; the first digit stands for the kind
    message: str
    source: Source
    span: Span
    expected: tuple[str, ...] = ()
    help: str | None = None

    @property
    def kind(self) -> str:
        """The kind of the error: syntax, name, type, static, input, later or deployment."""
        return _KINDS[self.code[2]]

    def as_json(self) -> dict[str, Any]:
        """The diagnostic as a dictionary for JSON; line and column count from 1, length in code points."""
        line, column = self.source.line_column(self.span.start)
        return {
            "type": "error", "kind": self.kind, "code": self.code, "line": line, "column": column,
            "length": self.span.end - self.span.start, "message": self.message,
            "expected": list(self.expected), "help": self.help,
        }  # fmt: skip

    def render(self) -> str:
        """The diagnostic for a terminal: message, place, the line with a caret, expected words, help."""
        out = [f"{self.code}: {self.message}", *self.source.excerpt(self.span)]
        if self.expected:
            out.append(f"  expected: {join_alternatives(self.expected)}")
        if self.help:
            out.append(f"  help: {self.help}")
        return "\n".join(out)


class DiagnosticError(MoteloomError):
    """A text with errors. Holds every independent diagnostic once, by file and in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        # A part that several others refer to is checked, and its errors are noted, once for each of them.
        self.diagnostics = tuple(
            sorted(dict.fromkeys(diagnostics), key=lambda d: (d.source.name or "", d.span.start, d.code, d.span.end))
        )
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type["DiagnosticError"], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


def join_alternatives(words: Sequence[str]) -> str:
    """`a`, `b` or `c`: alternatives as part of a sentence, words of the language in backticks."""
    quoted = [w if w.startswith("a ") or w.startswith("an ") or w.startswith("the ") else f"`{w}`" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"

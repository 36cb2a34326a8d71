"""Diagnostic: one error in a text, with its place, the expected words, and help.

The same object is printed on a terminal (with a caret under the place), as one line of JSON, and by REST.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from basestation.errors import CATALOGUE
from gateway.errors import MoteloomError
from gateway.source import Source, Span
from gateway.toml import ConfigFault


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error of the catalogue at a place in a source."""

    code: str
    message: str
    source: Source
    span: Span
    expected: tuple[str, ...] = ()
    help: str | None = None

    @classmethod
    def of(cls, fault: ConfigFault) -> "Diagnostic":
        """The diagnostic of an error in a configuration file."""
        return cls(fault.code, fault.message, fault.source, fault.span, help=fault.help)

    @property
    def kind(self) -> str:
        """A key of `basestation.errors.KINDS`."""
        return CATALOGUE[self.code].kind

    def as_json(self) -> dict[str, Any]:
        """The diagnostic as a dictionary for JSON; line and column count from 1, length in code points."""
        line, column = self.source.line_column(self.span.start)
        return {
            "type": "error", "kind": self.kind, "code": self.code, "line": line, "column": column,
            "length": self.span.end - self.span.start, "message": self.message,
            "expected": list(self.expected), "help": self.help,
        }  # fmt: skip

    def render(self) -> str:
        """The diagnostic for a terminal: message, place, the line with a caret, help."""
        out = [f"{self.code}: {self.message}", *self.source.excerpt(self.span)]
        if self.expected:
            out.append(f"  expected: {join_alternatives(self.expected)}")
        if self.help:
            out.append(f"  help: {self.help}")
        return "\n".join(out)


class DiagnosticError(MoteloomError):
    """A text with errors. Holds every independent diagnostic, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.span.end, d.code)))
        super().__init__("\n".join(d.message for d in self.diagnostics))


def join_alternatives(words: Sequence[str]) -> str:
    """`a`, `b` or `c`: alternatives as part of a sentence, words of the language in backticks."""
    quoted = [w if w.startswith("a ") or w.startswith("an ") or w.startswith("the ") else f"`{w}`" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"

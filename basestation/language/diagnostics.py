"""Diagnostic: one thing that is wrong with what somebody wrote, where it is, and what would help.

The same object reaches a terminal (a caret under the place), a program (one JSON line) and, later, REST.
"""

from collections.abc import Iterable
from dataclasses import dataclass

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
    def of(cls, fault: ConfigFault):
        """What is wrong with a file of settings, as what is wrong with a query is told."""
        return cls(fault.code, fault.message, fault.source, fault.span, help=fault.help)

    @property
    def kind(self):
        return CATALOGUE[self.code].kind

    def as_json(self):
        """The diagnostic as a dictionary that JSON can hold."""
        line, column = self.source.line_column(self.span.start)
        return {
            "type": "error", "kind": self.kind, "code": self.code, "line": line, "column": column,
            "length": self.span.end - self.span.start, "message": self.message,
            "expected": list(self.expected), "help": self.help,
        }  # fmt: skip

    def render(self):
        """The diagnostic as people read it: message, place, the line with a caret, help."""
        out = [f"{self.code}: {self.message}", *self.source.excerpt(self.span)]
        if self.expected:
            out.append(f"  expected: {join_alternatives(self.expected)}")
        if self.help:
            out.append(f"  help: {self.help}")
        return "\n".join(out)


class DiagnosticError(MoteloomError):
    """What was written cannot be taken; holds every diagnostic that is independent of the others, in text order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.span.end, d.code)))
        super().__init__("\n".join(d.message for d in self.diagnostics))


def join_alternatives(words):
    """`a`, `b` or `c`: a list as a sentence has it."""
    quoted = [w if w.startswith("a ") or w.startswith("an ") or w.startswith("the ") else f"`{w}`" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"

"""Diagnostic: one thing that is wrong with what somebody wrote, where it is, and what would help.

The same object reaches a terminal (a caret under the place), a program (one JSON line) and, later, REST.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from basestation.errors import CATALOGUE
from basestation.language.source import Source, Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error of the catalogue at a place in a source."""

    code: str
    message: str
    source: Source
    span: Span
    expected: tuple[str, ...] = ()
    help: str | None = None

    @property
    def kind(self):
        return CATALOGUE[self.code].kind

    def as_json(self):
        """The diagnostic as a dictionary; `render_json` makes the line of it."""
        line, column = self.source.line_column(self.span.start)
        return {
            "type": "error", "kind": self.kind, "code": self.code, "line": line, "column": column,
            "length": self.span.end - self.span.start, "message": self.message,
            "expected": list(self.expected), "help": self.help,
        }  # fmt: skip

    def render(self):
        """The diagnostic as people read it: message, place, the line with a caret, help."""
        line, column = self.source.line_column(self.span.start)
        text = self.source.line(line)
        # A caret stands under its character also where tabs come before it, and never runs past its line.
        lead = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        carets = "^" * max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        where = f"{self.source.name}:{line}:{column}" if self.source.name else f"line {line}, column {column}"
        out = [f"{self.code}: {self.message}", f"  --> {where}", f"  {text}", f"  {lead}{carets}"]
        if self.expected:
            out.append(f"  expected: {listing(self.expected)}")
        if self.help:
            out.append(f"  help: {self.help}")
        return "\n".join(out)


class Refused(Exception):
    """What was written cannot be taken; holds every diagnostic that is independent of the others, in text order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.span.end, d.code)))
        super().__init__("\n".join(d.message for d in self.diagnostics))


def render_json(diagnostic):
    return json.dumps(diagnostic.as_json(), ensure_ascii=False)


def listing(words):
    """`a`, `b` or `c`: a list as a sentence has it."""
    quoted = [w if w.startswith("a ") or w.startswith("an ") or w.startswith("the ") else f"`{w}`" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def did_you_mean(word, candidates):
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

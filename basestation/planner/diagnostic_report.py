"""Collects the diagnostics of one text, so that the user sees all independent errors at once."""

from collections.abc import Iterable, Sequence

from basestation.language.node import SyntaxNode
from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source, Span


class Report:
    """The errors of one source text."""

    def __init__(self, source: Source, diagnostics: Iterable[Diagnostic] = ()) -> None:
        self.source = source
        self.diagnostics = list(diagnostics)
        self._misread = frozenset(d.span for d in diagnostics)

    def error(
        self, code: str, message: str, place: SyntaxNode | Span, expected: Sequence[str] = (), help: str | None = None
    ) -> None:
        """Add an error at a syntax node or a Span, unless the parser has reported that very place."""
        span = place if isinstance(place, Span) else place.span
        found = Diagnostic(code, message, self.source, span, tuple(expected), help)
        if (
            span not in self._misread and found not in self.diagnostics
        ):  # the binder visits the condition of a join twice
            self.diagnostics.append(found)

    def has_error_in(self, span: Span) -> bool:
        """Whether a reported error lies inside this span."""
        return any(span.start <= d.span.start and d.span.end <= span.end for d in self.diagnostics)

    def raise_errors(self) -> None:
        """Raise DiagnosticError if there is any error."""
        if self.diagnostics:
            raise DiagnosticError(self.diagnostics)

"""Report: collects the diagnostics of one text, so that all independent errors are told in one go."""

from basestation.language.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Span


class Report:
    def __init__(self, source, diagnostics=()):
        self.source = source
        self.diagnostics = list(diagnostics)
        self._misread = frozenset(d.span for d in diagnostics)

    def error(self, code, message, place, expected=(), help=None):
        """Add an error at a syntax node or a Span, unless the parser has complained about that very place."""
        span = place if isinstance(place, Span) else place.span
        found = Diagnostic(code, message, self.source, span, tuple(expected), help)
        if span not in self._misread and found not in self.diagnostics:  # a condition of a join is looked at twice
            self.diagnostics.append(found)

    def has_error_in(self, span):
        """Whether something inside this span is known to be wrong already."""
        return any(span.start <= d.span.start and d.span.end <= span.end for d in self.diagnostics)

    def raise_errors(self):
        """Raise Refused if anything was wrong."""
        if self.diagnostics:
            raise DiagnosticError(self.diagnostics)

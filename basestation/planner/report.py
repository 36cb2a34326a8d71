"""Report: collects the diagnostics of one text, so that all independent errors are told in one go."""

from basestation.language.diagnostics import Diagnostic, Refused


class Report:
    def __init__(self, source, diagnostics=()):
        self.source = source
        self.diagnostics = list(diagnostics)

    def error(self, code, message, place, expected=(), help=None):
        """Add an error at a syntax node (or anything with a span)."""
        found = Diagnostic(code, message, self.source, place.span, tuple(expected), help)
        if found not in self.diagnostics:  # one place is looked at twice where a join condition is also a predicate
            self.diagnostics.append(found)

    def told(self, span):
        """Whether something inside this span is known to be wrong already."""
        return any(span.start <= d.span.start and d.span.end <= span.end for d in self.diagnostics)

    def close(self):
        """Raise Refused if anything was wrong."""
        if self.diagnostics:
            raise Refused(self.diagnostics)

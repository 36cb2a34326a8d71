"""Errors of the oracle: a text or data that it rejects, and features that it does not cover."""


class RejectedError(Exception):
    """The text is no valid query, or the data cannot be read. Kinds: syntax name type static input."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class NotCoveredError(Exception):
    """The semantics defines the answer, and this oracle does not compute it. Names the section, so that callers can count."""

    def __init__(self, section, message):
        super().__init__(f"{section}: {message}")
        self.section = section

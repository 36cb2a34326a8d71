"""What an oracle may say instead of an answer."""


class RejectedError(Exception):
    """The text is not a query that can be asked, or the data cannot be taken. Kinds: syntax name type static input."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class NotCoveredError(Exception):
    """SEMANTICS has an answer and this oracle does not. The section is named so that callers can count."""

    def __init__(self, section, message):
        super().__init__(f"{section}: {message}")
        self.section = section

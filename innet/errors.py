"""The errors of this package, each with what it concerns.

InnetError
 ├─ ProgramError    a program that cannot be made, or cannot be run
 ├─ RoutingError    a routing tree that is none, or that does not reach a mote
 └─ PayloadError    a report from a mote that makes no sense: the sender's fault, counted, never fatal
"""


class InnetError(Exception):
    """Everything this package raises on purpose."""


class ProgramError(InnetError):
    """A program that breaks the rules of the machine; `at` is the byte where it does, if it is about a byte."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message if at is None else f"at byte {at}: {message}")
        self.at = at


class RoutingError(InnetError):
    """Routes that cannot be; `site` is the mote it is about."""

    def __init__(self, site: int, message: str) -> None:
        super().__init__(f"mote {site}: {message}")
        self.site = site


class PayloadError(InnetError):
    """A payload that says something impossible. `code` is one word to count by."""

    def __init__(self, code: str, mote: int, message: str) -> None:
        super().__init__(f"mote {mote}: {message}")
        self.code = code
        self.mote = mote

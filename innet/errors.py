"""The errors of this package, each with what it concerns.

InnetError
 ├─ ProgramError    a program that cannot be made, or cannot be run
 ├─ PlacementError  an operator that cannot be placed, or an agenda that cannot be kept
 ├─ RoutingError    a routing tree that is none, or that does not reach a mote
 └─ PayloadError    a report from a mote that makes no sense: the sender's fault, counted, never fatal
"""

from gateway.errors import MoteloomError


class InnetError(MoteloomError):
    """Everything this package raises on purpose."""


class ProgramError(InnetError):
    """A program that breaks the rules of the machine, or is too much for a mote.

    `at` is the byte where it does, if it is about a byte; `site` and `operator` (its label) are whose program it is.
    """

    def __init__(
        self, message: str, at: int | None = None, site: int | None = None, operator: str | None = None
    ) -> None:
        places = [] if site is None else [f"site {site}"]
        places += [] if operator is None else [f"`{operator}`"]
        places += [] if at is None else [f"at byte {at}"]
        super().__init__(f"{', '.join(places)}: {message}" if places else message)
        self.at, self.site, self.operator = at, site, operator


class PlacementError(InnetError):
    """An operator that cannot be placed, or an agenda that cannot be kept; `site` is where, if it is about one."""

    def __init__(self, message: str, site: int | None = None) -> None:
        super().__init__(message if site is None else f"site {site}: {message}")
        self.site = site


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

"""The exceptions of this package.

InnetError
 ├─ ProgramError     a mote program breaks a rule of the machine, or does not fit on the mote
 ├─ PlacementError   an operator has no place, or a round has no room for its slots
 └─ RoutingError     routes form a loop, or a mote has no route

A malformed payload of a mote is an `acquisition.errors.PayloadError`.
"""

from gateway.errors import MoteloomError


class InnetError(MoteloomError):
    """Base of every exception that this package raises on purpose."""


class ProgramError(InnetError):
    """A program breaks a rule of the machine or exceeds a limit of the mote.

    `at` is the byte offset of the fault; `site` and `operator` (its label) name the program. Each is None if unknown.
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
    """An operator cannot be placed, or an agenda does not fit into its round; `site` is the mote concerned, or None."""

    def __init__(self, message: str, site: int | None = None) -> None:
        super().__init__(message if site is None else f"site {site}: {message}")
        self.site = site


class RoutingError(InnetError):
    """Routes form no tree; `site` is the mote concerned."""

    def __init__(self, site: int, message: str) -> None:
        super().__init__(f"mote {site}: {message}")
        self.site = site

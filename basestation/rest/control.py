"""StationControl: the calls that the routes of the REST interface make on a running station."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Updates of one query as JSON texts, and the number to ask for `after` next time."""

    query: int
    schema: JsonObject
    lines: tuple[str, ...]
    next: int


class StationControl(Protocol):
    """Every method may be called from any thread. KeyError: there is no such query."""

    def submit(self, text: str, key: str | None) -> JsonObject:
        """Accept a query. DiagnosticError says why it cannot be, JournalError why it cannot be kept."""

    def stop(self, number: int) -> JsonObject:
        """Stop a query."""

    def queries(self) -> list[JsonObject]:
        """All queries, the oldest first."""

    def query(self, number: int) -> JsonObject:
        """One query."""

    def results(self, number: int, after: int, limit: int) -> ResultPage:
        """The updates with numbers above `after`. UpdatesExpiredError where some of these are no longer kept."""

    def motes(self) -> list[JsonObject]:
        """State, parent and reading counts of each mote."""

    def extents(self) -> list[JsonObject]:
        """The extents that queries may read."""

    def events(self, after: int, limit: int) -> list[JsonObject]:
        """Operational events with numbers above `after`."""

    def health(self) -> JsonObject:
        """Whether data makes progress; `ok` is false where it does not."""

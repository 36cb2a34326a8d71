"""Uncommitted: what a station has done since its last commit."""

from dataclasses import dataclass, field

from basestation.station.journal import CommandRecord, Entry, QueryRow, ResultChunk, Steps


@dataclass(slots=True)
class Uncommitted:
    """Entries, results, events, queries and facts that are not in the journal yet."""

    entries: list[Entry] = field(default_factory=list)
    looks: list[tuple[int, bytes]] = field(default_factory=list)
    results: list[ResultChunk] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    commands: list[CommandRecord] = field(default_factory=list)
    queries: list[QueryRow] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def close_looks(self) -> None:
        """Make one entry of the looks so far, since something else follows them."""
        if self.looks:
            self.entries.append(Steps(self.looks))
            self.looks = []

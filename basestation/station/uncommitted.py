"""Uncommitted: what a station has done since its last commit."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from basestation.execution.memory_failures import MemoryFailure
from basestation.station.failure_entry import FailureEntry
from basestation.station.journal import Command, CommandRecord, Entry, QueryRow, ResultChunk, Steps

KEEP_PLANS = "keep plans"
"""The kind of entry that names the looks, by their places in the next entry, whose review found no cheaper plan."""


@dataclass(slots=True)
class Uncommitted:
    """Entries, results, events, queries and facts that are not in the journal yet."""

    entries: list[Entry] = field(default_factory=list)
    looks: list[tuple[int, bytes]] = field(default_factory=list)
    kept_plans: list[int] = field(default_factory=list)  # places of looks whose review found no cheaper plan
    failures: dict[int, Sequence[MemoryFailure]] = field(default_factory=dict)  # by the places of looks
    results: list[ResultChunk] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    commands: list[CommandRecord] = field(default_factory=list)
    queries: list[QueryRow] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def close_looks(self) -> None:
        """Make one entry of the looks so far, since something else follows them."""
        if self.kept_plans:  # a replay reads it before the looks
            self.entries.append(Command(KEEP_PLANS, self.looks[0][0], json.dumps(self.kept_plans)))
            self.kept_plans = []
        if self.failures:  # so is this
            self.entries.append(FailureEntry(self.failures).to_command(self.looks[0][0]))
            self.failures = {}
        if self.looks:
            self.entries.append(Steps(self.looks))
            self.looks = []

"""Failure entry: how the looks or the command of the next entry of the journal ran out of memory, and a replay that repeats it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from basestation.execution.engine import Engine
from basestation.execution.memory_failures import FailureReplay, MemoryFailure
from basestation.station.journal import Command

MEMORY_FAILURES = "memory failures"
"""The kind of this entry."""


@dataclass(frozen=True, slots=True)
class FailureEntry:
    """Failures by the place of the look in the next entry, 0 for a command; `is_refused` where a command itself found no memory."""

    looks: Mapping[int, Sequence[MemoryFailure]] = field(default_factory=dict)
    is_refused: bool = False

    def to_command(self, now_ms: int) -> Command:
        """Return it as an entry of the journal."""
        looks = [[look, [each.to_json() for each in failures]] for look, failures in self.looks.items()]
        return Command(MEMORY_FAILURES, now_ms, json.dumps({"looks": looks, "is_refused": self.is_refused}))

    @classmethod
    def from_command(cls, command: Command) -> "FailureEntry":
        """Return what an entry of the journal has."""
        given = json.loads(command.argument)
        looks = {look: [MemoryFailure.from_json(each) for each in failures] for look, failures in given["looks"]}
        return cls(looks, given["is_refused"])

    @contextmanager
    def repeat(self, engine: Engine, look: int) -> Iterator[None]:
        """Let a look or command inside this context end the queries and records that it ended, and no other.

        UnrepeatedFailureError: there is less memory than there was. A failure of a past to which the replay does not come is left out.
        """
        engine.failure_log = log = FailureReplay(self.looks.get(look, ()))
        if log.is_due:
            engine.repeat_failures()
        yield
        if log.end():
            engine.repeat_failures()


NO_FAILURES = FailureEntry()

"""The trace: the events of a simulation, one a line. The same scenario and seed give the same trace, byte for byte.

Lines are ordered by time, then by mote, then by text. Two simulators that compute the events of one moment in different
orders therefore write the same trace.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event: `event["detail"]` is the value of a detail."""

    time: int  # microseconds
    mote: int
    what: str
    details: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        at = f"{self.time // 1_000}.{self.time % 1_000:03}"
        return " ".join([f"{at:>14}", f"mote={self.mote}", self.what, *(f"{k}={v}" for k, v in self.details)])

    def __getitem__(self, detail: str) -> Any:
        return dict(self.details)[detail]


@dataclass(slots=True)
class Trace:
    """The events in memory, as text by `str()`. With a `sink`, `flush` writes their lines and forgets them.

    `watch` is called with each event when it is recorded. Without `is_kept` the trace forgets the event at once.
    """

    sink: Callable[[str], object] | None = None
    watch: Callable[[Event], object] | None = None
    is_kept: bool = True
    events: list[Event] = field(default_factory=list)

    def record(self, time: int, mote: int, what: str, **details: object) -> None:
        event = Event(time, mote, what, tuple(details.items()))
        if self.is_kept:
            self.events.append(event)
        if self.watch:
            self.watch(event)

    def of(self, what: str) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event.what == what]

    def flush(self, until: int) -> None:
        """Write the events before `until` (microseconds) to the sink: no event of that time is still to come."""
        if self.sink:
            self.sink(_text([event for event in self.events if event.time < until]))
            self.events = [event for event in self.events if event.time >= until]

    def __str__(self) -> str:
        return _text(self.events)


def _text(events: list[Event]) -> str:
    lines = sorted((event.time, event.mote, str(event)) for event in events)
    return "".join(f"{line}\n" for _, _, line in lines)

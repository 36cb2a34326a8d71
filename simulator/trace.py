"""The trace: what really happened, one event a line. The same scenario and seed give the same trace, byte for byte."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    time: int
    mote: int
    what: str
    details: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.time:>10}", f"mote={self.mote}", self.what, *(f"{k}={v}" for k, v in self.details)])


@dataclass(slots=True)
class Trace:
    """Kept in memory; `str()` is the text."""

    events: list[Event] = field(default_factory=list)

    def record(self, time: int, mote: int, what: str, **details: object) -> None:
        self.events.append(Event(time, mote, what, tuple(details.items())))

    def of(self, what: str) -> list[Event]:
        return [event for event in self.events if event.what == what]

    def __str__(self) -> str:
        return "".join(f"{event}\n" for event in self.events)

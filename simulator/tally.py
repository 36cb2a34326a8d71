"""Totals of a simulation by mote, counted from the events of its trace, whether the trace is kept or not."""

from collections import Counter
from dataclasses import dataclass, field

from gateway.frame import FrameKind
from simulator.trace import Event

IMAGES = (FrameKind.SCHEDULE.name, FrameKind.PROGRAM.name)


@dataclass(slots=True)
class Tally:
    """By mote: readings produced; frames handed over, their attempts and bytes, and the frames that never arrived.

    `configured` is when some mote last changed what it runs, in microseconds: it received an image, began or left its agenda,
    started again, or died.
    """

    produced: Counter[int] = field(default_factory=Counter)
    frames: Counter[int] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)  # frames at a gateway, by kind
    died: dict[int, tuple[int, str]] = field(default_factory=dict)  # (microseconds, cause)
    configured: int = 0

    def watch(self, event: Event) -> None:
        """Count one event."""
        match event.what:
            case "sent":
                self.frames[event.mote] += 1
                self.attempts[event.mote] += event["attempts"]
                self.bytes[event.mote] += event["attempts"] * event["bytes"]
                self.lost[event.mote] += not event["came"]
            case "produced":
                self.produced[event.mote] += 1
            case "delivered":
                self.delivered[event["kind"]] += 1
            case "died":
                self.died[event.mote] = event.time, event["why"]
                self.configured = event.time
            case "sleeps" | "listens" | "rebooted":
                self.configured = event.time
            case "received" if event["kind"] in IMAGES:
                self.configured = event.time

"""What a simulation came to: counts, for each mote, of what the trace says, whether the trace is kept or not."""

from collections import Counter
from dataclasses import dataclass, field

from simulator.trace import Event


@dataclass(slots=True)
class Tally:
    """By mote: readings produced; frames handed over, attempts and bytes of them, and those that never came."""

    produced: Counter[int] = field(default_factory=Counter)
    frames: Counter[int] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)  # by kind
    died: dict[int, tuple[int, str]] = field(default_factory=dict)  # when (microseconds), and why

    def watch(self, event: Event) -> None:
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

"""A query's life as a table, and what the base station remembers of a query.

    DEPLOYING ──ALL_ACKED──▶ RUNNING ──STOP──▶ STOPPED
        ├────────────STOP─────────│────────────┘
        └────────────FAIL─────────┴──FAIL──▶ FAILED

A query answers from the moment it is accepted; DEPLOYING says that some mote has not confirmed its part yet, which the
coverage of the windows shows as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from acquisition.scheduling import Need
from basestation.planner.plan import Plan
from innet.operators.acquire import acquired
from innet.operators.deliver import Deliver


class State(Enum):
    DEPLOYING = "deploying"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


class Event(Enum):
    ALL_ACKED = "all acknowledged"
    STOP = "stop"
    FAIL = "fail"  # it cannot be evaluated on its data (SEMANTICS 14)


TRANSITIONS = {
    (State.DEPLOYING, Event.ALL_ACKED): State.RUNNING,
    (State.DEPLOYING, Event.STOP): State.STOPPED,
    (State.DEPLOYING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.STOP): State.STOPPED,
    (State.RUNNING, Event.FAIL): State.FAILED,
}


@dataclass(frozen=True, slots=True)
class Query:
    """One query that was accepted. `awaited` are the frames whose acknowledgement makes it RUNNING."""

    number: int
    text: str
    plan: Plan
    inside: tuple[Deliver, ...]
    state: State = State.DEPLOYING
    awaited: frozenset[tuple[int, int, int]] = frozenset()

    def after(self, event: Event) -> "Query":
        """The query after an event; an event that cannot happen now is an error of ours."""
        if (self.state, event) not in TRANSITIONS:
            raise ValueError(f"query {self.number} is {self.state.value}; it cannot meet `{event.value}`")
        return replace(self, state=TRANSITIONS[self.state, event])

    def waiting_for(self, frames: Iterable[tuple[int, int, int]]) -> "Query":
        """The query with the frames that it waits for."""
        return replace(self, awaited=frozenset(frames))

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a live query asks of the sensed extents; nothing, once it is over."""
        if self.state in (State.STOPPED, State.FAILED):
            return ()
        sampled = [acquire for operator in self.inside for acquire in acquired(operator).values()]
        return tuple(Need(a.extent, frozenset(a.sampled), a.interval) for a in sampled)

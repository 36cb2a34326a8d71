"""A query's life as a table, and what the base station remembers of a query.

    DEPLOYING ──ALL_SETTLED─▶ RUNNING ──STOP──▶ STOPPED
        ├─────────────STOP─────────│────────────┤
        ├─────────────PASS─────────┴──PASS──▶ PASSED
        └─────────────FAIL─────────┴──FAIL──▶ FAILED

A query answers from the moment it is accepted; DEPLOYING says that some mote has not said yet that it has its part, or that motes
begin with it later, which the coverage of the windows shows as well. One that is PASSED wants no more readings, and what comes late revises it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from acquisition.schedule_builder import Need
from basestation.planner.partial_source import Fed
from basestation.planner.plan import Plan
from innet.operators.acquire import acquired
from innet.operators.deliver import Deliver


class State(Enum):
    DEPLOYING = "deploying"
    RUNNING = "running"
    PASSED = "passed"
    STOPPED = "stopped"
    FAILED = "failed"


class Event(Enum):
    ALL_SETTLED = "all motes have it"
    PASS = "its time is over"  # FOR (SEMANTICS 11)
    STOP = "stop"
    FAIL = "fail"  # it cannot be evaluated on its data (SEMANTICS 14)


TRANSITIONS = {
    (State.DEPLOYING, Event.ALL_SETTLED): State.RUNNING,
    (State.DEPLOYING, Event.PASS): State.PASSED,
    (State.DEPLOYING, Event.STOP): State.STOPPED,
    (State.DEPLOYING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.PASS): State.PASSED,
    (State.RUNNING, Event.STOP): State.STOPPED,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.PASSED, Event.STOP): State.STOPPED,
    (State.PASSED, Event.FAIL): State.FAILED,
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Another way in which what a query reads gets here, while motes do both (`basestation.controller.migration`).

    Until it is `handed` over, it is the one that comes: from tick `whole` on all motes do it, None while some may not. After
    that it is the one that was, for the windows up to that tick.
    """

    inside: tuple[Deliver, ...]
    fed: tuple[Fed, ...]
    whole: int | None = None
    handed: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One query that was accepted: `inside` is what is delivered for it, `fed` what partials come for, and `exchange` another
    way of that; none of it after its `last` tick. By extent, what motes report as filtered does not pass it either from `reports_from` on. `awaited` are the
    motes that must have what they should for it to be RUNNING; it came in the clock tick `since`."""

    number: int
    text: str
    plan: Plan
    inside: tuple[Deliver, ...] = ()
    fed: tuple[Fed, ...] = ()
    reports_from: Mapping[str, int] = field(default_factory=dict)
    exchange: Exchange | None = None
    state: State = State.DEPLOYING
    awaited: frozenset[int] = frozenset()
    broken: str | None = None  # why motes do not last any more as long as it asks
    last: int | None = None
    since: int = 0

    def after(self, event: Event) -> "Query":
        """The query after an event; an event that cannot happen now is an error of ours."""
        if (self.state, event) not in TRANSITIONS:
            raise ValueError(f"query {self.number} is {self.state.value}; it cannot meet `{event.value}`")
        return replace(self, state=TRANSITIONS[self.state, event])

    def waiting_for(self, motes: Iterable[int]) -> "Query":
        """The query with the motes that it waits for."""
        return replace(self, awaited=frozenset(motes))

    @property
    def delivered(self) -> tuple[Deliver, ...]:
        """What motes deliver for it, in whichever way."""
        return self.inside if self.exchange is None else (*self.inside, *self.exchange.inside)

    @property
    def folded(self) -> tuple[Fed, ...]:
        """What motes fold for it, in whichever way."""
        return self.fed if self.exchange is None else (*self.fed, *self.exchange.fed)

    @property
    def live(self) -> bool:
        """Whether it may want readings."""
        return self.state in (State.DEPLOYING, State.RUNNING)

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """By extent, what a reading that is delivered must come with to be one of its own."""
        found: dict[str, set[str]] = {}
        for each in self.inside:
            found.setdefault(each.extent, set()).update(each.sent)
        return {extent: tuple(sorted(names)) for extent, names in found.items()}

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a live query asks of the sensed extents; nothing, once it is over."""
        if not self.live:
            return ()
        operators = (*self.delivered, *(fed.fold for fed in self.folded))
        sampled = [acquire for operator in operators for acquire in acquired(operator).values()]
        return tuple(Need(a.extent, frozenset(a.sampled), a.interval) for a in sampled)

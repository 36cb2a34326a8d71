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

from acquisition.schedule_builder import SamplingNeed
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver


class QueryState(Enum):
    DEPLOYING = "deploying"
    RUNNING = "running"
    FINISHED = "passed"
    STOPPED = "stopped"
    FAILED = "failed"


class QueryEvent(Enum):
    ALL_SETTLED = "all motes have it"
    EXPIRE = "its time is over"  # FOR (SEMANTICS 11)
    STOP = "stop"
    FAIL = "fail"  # it cannot be evaluated on its data (SEMANTICS 14)


TRANSITIONS = {
    (QueryState.DEPLOYING, QueryEvent.ALL_SETTLED): QueryState.RUNNING,
    (QueryState.DEPLOYING, QueryEvent.EXPIRE): QueryState.FINISHED,
    (QueryState.DEPLOYING, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.DEPLOYING, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.RUNNING, QueryEvent.EXPIRE): QueryState.FINISHED,
    (QueryState.RUNNING, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.RUNNING, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.FINISHED, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.FINISHED, QueryEvent.FAIL): QueryState.FAILED,
}


@dataclass(frozen=True, slots=True)
class Migration:
    """Another way in which what a query reads gets here, while motes do both (`basestation.controller.migration`).

    Until it is `handed` over, it is the one that comes: from tick `whole` on all motes do it, None while some may not. After
    that it is the one that was, for the windows up to that tick.
    """

    deliveries: tuple[Deliver, ...]
    partial_sources: tuple[PartialSource, ...]
    complete_from: int | None = None
    switched_at: int | None = None


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One query that was accepted: `inside` is what is delivered for it, `fed` what partials come for, and `exchange` another
    way of that; none of it after its `last` tick. By extent, what motes report as filtered does not pass it either from `find_report_starts` on. `awaited` are the
    motes that must have what they should for it to be RUNNING; it came in the clock tick `since`."""

    number: int
    text: str
    plan: Plan
    deliveries: tuple[Deliver, ...] = ()
    partial_sources: tuple[PartialSource, ...] = ()
    reports_from: Mapping[str, int] = field(default_factory=dict)
    migration: Migration | None = None
    state: QueryState = QueryState.DEPLOYING
    awaited: frozenset[int] = frozenset()
    lifetime_violation: str | None = None  # why motes do not last any more as long as it asks
    last_tick: int | None = None
    submitted_at: int = 0

    def transition(self, event: QueryEvent) -> "QueryRecord":
        """The query after an event; an event that cannot happen now is an error of ours."""
        if (self.state, event) not in TRANSITIONS:
            raise ValueError(f"query {self.number} is {self.state.value}; it cannot meet `{event.value}`")
        return replace(self, state=TRANSITIONS[self.state, event])

    def with_awaited(self, motes: Iterable[int]) -> "QueryRecord":
        """The query with the motes that it waits for."""
        return replace(self, awaited=frozenset(motes))

    @property
    def all_deliveries(self) -> tuple[Deliver, ...]:
        """What motes deliver for it, in whichever way."""
        return self.deliveries if self.migration is None else (*self.deliveries, *self.migration.deliveries)

    @property
    def all_partial_sources(self) -> tuple[PartialSource, ...]:
        """What motes fold for it, in whichever way."""
        return (
            self.partial_sources if self.migration is None else (*self.partial_sources, *self.migration.partial_sources)
        )

    @property
    def live(self) -> bool:
        """Whether it may want readings."""
        return self.state in (QueryState.DEPLOYING, QueryState.RUNNING)

    @property
    def read_columns(self) -> dict[str, tuple[str, ...]]:
        """By extent, what a reading that is delivered must come with to be one of its own."""
        found: dict[str, set[str]] = {}
        for each in self.deliveries:
            found.setdefault(each.extent, set()).update(each.sent)
        return {extent: tuple(sorted(names)) for extent, names in found.items()}

    @property
    def needs(self) -> tuple[SamplingNeed, ...]:
        """What a live query asks of the sensed extents; nothing, once it is over."""
        if not self.live:
            return ()
        operators = (*self.all_deliveries, *(fed.fold for fed in self.all_partial_sources))
        sampled = [acquire for operator in operators for acquire in find_acquires(operator).values()]
        return tuple(SamplingNeed(a.extent, frozenset(a.sampled), a.interval) for a in sampled)

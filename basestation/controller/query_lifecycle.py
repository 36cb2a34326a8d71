"""Query lifecycle: the states of a query as a table, and the record that the station keeps of each query.

    DEPLOYING ──ALL_SETTLED──▶ RUNNING ──DRAIN──▶ DRAINING ──EXPIRE──▶ FINISHED
        └──────────PAUSE──────────┴─────▶ PAUSED ──RESUME──▶ DEPLOYING
        any of them ──STOP──▶ STOPPED      any of them ──FAIL──▶ FAILED ──RESUME──▶ DEPLOYING

A query answers from the moment it is accepted. While it is DEPLOYING, some mote has not confirmed its part or starts later; the
coverage of the windows shows that too. A DRAINING query answers no more windows, and the readings of those that it answered may still
arrive. A FINISHED query needs no more readings, and late readings still revise its answers. A PAUSED or FAILED query does not run;
after RESUME it answers the windows from then on, under its number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from acquisition.schedule_builder import SamplingNeed
from basestation.controller.active_hours import ActiveHours
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from gateway.errors import MoteloomError
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold


class QueryStateError(MoteloomError):
    """A query is not in a state in which it could be changed so; `help` says what is possible."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


class QueryState(Enum):
    DEPLOYING = "deploying"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


class QueryEvent(Enum):
    ALL_SETTLED = "all motes confirmed"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    EXPIRE = "expire"  # the end of FOR (semantics 11), or of draining
    STOP = "stop"
    FAIL = "fail"  # its data cannot be evaluated (semantics 14)


TRANSITIONS = {
    (QueryState.DEPLOYING, QueryEvent.ALL_SETTLED): QueryState.RUNNING,
    (QueryState.DEPLOYING, QueryEvent.PAUSE): QueryState.PAUSED,
    (QueryState.DEPLOYING, QueryEvent.DRAIN): QueryState.DRAINING,
    (QueryState.DEPLOYING, QueryEvent.EXPIRE): QueryState.FINISHED,
    (QueryState.DEPLOYING, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.DEPLOYING, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.RUNNING, QueryEvent.PAUSE): QueryState.PAUSED,
    (QueryState.RUNNING, QueryEvent.DRAIN): QueryState.DRAINING,
    (QueryState.RUNNING, QueryEvent.EXPIRE): QueryState.FINISHED,
    (QueryState.RUNNING, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.RUNNING, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.PAUSED, QueryEvent.RESUME): QueryState.DEPLOYING,
    (QueryState.PAUSED, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.PAUSED, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.DRAINING, QueryEvent.EXPIRE): QueryState.FINISHED,
    (QueryState.DRAINING, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.DRAINING, QueryEvent.FAIL): QueryState.FAILED,
    (QueryState.FAILED, QueryEvent.RESUME): QueryState.DEPLOYING,
    (QueryState.FAILED, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.FINISHED, QueryEvent.STOP): QueryState.STOPPED,
    (QueryState.FINISHED, QueryEvent.FAIL): QueryState.FAILED,
}


LIVE = (QueryState.DEPLOYING, QueryState.RUNNING, QueryState.DRAINING)
"""The states in which motes may have to send readings."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A second plan of a running query; motes run both plans meanwhile (`basestation.controller.migration`).

    Before the switch this is the new plan, and all motes run it from tick `complete_from` on (None: not yet known). At tick
    `switched_at` the plans change places; then this is the old plan, which serves the windows up to that tick.
    """

    deliveries: tuple[Deliver, ...]
    partial_sources: tuple[PartialSource, ...]
    complete_from: int | None = None
    switched_at: int | None = None


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One accepted query.

    Motes deliver readings by `deliveries` and partial aggregates for `partial_sources`, until tick `last_tick`. From the tick
    in `reports_from` on (by extent), readings that motes report as filtered do not pass this query either. The query is
    RUNNING once the motes in `awaited` have confirmed.
    """

    number: int
    text: str
    plan: Plan
    deliveries: tuple[Deliver, ...] = ()
    partial_sources: tuple[PartialSource, ...] = ()
    reports_from: Mapping[str, int] = field(default_factory=dict)
    migration: Migration | None = None
    state: QueryState = QueryState.DEPLOYING
    awaited: frozenset[int] = frozenset()
    lifetime_violation: str | None = None  # why motes no longer last as long as LIFETIME asks
    last_tick: int | None = None
    submitted_at: int = 0  # tick
    name: str | None = None  # no two queries that may still answer have the same
    reason: str = ""  # why it is in its state, where a user or its data brought it there
    active: ActiveHours | None = None  # outside of these it is paused

    def transition(self, event: QueryEvent, reason: str = "") -> "QueryRecord":
        """The query after an event. QueryStateError if the event is impossible in its state."""
        if (self.state, event) not in TRANSITIONS:
            possible = " or ".join(state.value for state, met in TRANSITIONS if met is event)
            raise QueryStateError(
                f"query {self.number} is {self.state.value}: `{event.value}` is not possible",
                f"`{event.value}` is for a query that is {possible}",
            )
        return replace(self, state=TRANSITIONS[self.state, event], reason=reason)

    def with_awaited(self, motes: Iterable[int]) -> "QueryRecord":
        """The query with the motes that have to confirm before it is RUNNING."""
        return replace(self, awaited=frozenset(motes))

    @property
    def all_deliveries(self) -> tuple[Deliver, ...]:
        """The deliveries of both plans during a migration."""
        return self.deliveries if self.migration is None else (*self.deliveries, *self.migration.deliveries)

    @property
    def all_partial_sources(self) -> tuple[PartialSource, ...]:
        """The partial sources of both plans during a migration."""
        if self.migration is None:
            return self.partial_sources
        return *self.partial_sources, *self.migration.partial_sources

    @property
    def operators(self) -> tuple[Deliver | Fold, ...]:
        """All that motes run for this query."""
        return *self.all_deliveries, *(source.fold for source in self.all_partial_sources)

    @property
    def live(self) -> bool:
        """Whether it is deploying, running or draining, so that it may need readings."""
        return self.state in LIVE

    @property
    def has_ended(self) -> bool:
        """Whether it never runs again: its number stays, its name is free."""
        return self.state in (QueryState.FINISHED, QueryState.STOPPED)

    @property
    def read_columns(self) -> dict[str, tuple[str, ...]]:
        """By extent, the columns that a delivered reading must have to count for this query."""
        found: dict[str, set[str]] = {}
        for delivery in self.deliveries:
            found.setdefault(delivery.extent, set()).update(delivery.sent)
        return {extent: tuple(sorted(names)) for extent, names in found.items()}

    @property
    def needs(self) -> tuple[SamplingNeed, ...]:
        """The samplings of sensed extents that a live query needs; none once it is over."""
        if not self.live:
            return ()
        sampled = [acquire for operator in self.operators for acquire in find_acquires(operator).values()]
        return tuple(SamplingNeed(a.extent, frozenset(a.sampled), a.interval) for a in sampled)

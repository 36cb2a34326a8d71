"""World: everything that the station knows at one moment. A world is never changed, only replaced."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from acquisition.arrays import IntArray
from acquisition.extent import Catalog
from acquisition.schedule_builder import NO_SCHEDULES, ScheduleSet
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord, QueryState
from basestation.controller.sampling_demand import SamplingDemand
from basestation.planner.pushdown_policy import PushdownPolicy
from gateway.desired_state import DesiredState
from gateway.frame import COORDINATOR, HopPath, MoteId
from innet.deployment import Deployment
from innet.partials import PartialShape
from innet.placement.agenda import Agenda
from innet.placement.fold_sharing import FOLD_NUMBERS
from innet.placement.placement import PlacedOperator
from innet.placement.statistics import GUESS, Statistics
from innet.routing.parent_selection import update_tree
from innet.routing.topology import LinksReport, Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class World:
    """`desired` is the state that each mote should have. The state that it reports is kept by `gateway.reconciler`.

    `folds` has the folds that run by number, and older ones whose frames may still be on the air, the youngest last. In a
    `duty_cycled` network motes sleep except in the slots of the `agenda`.
    """

    catalog: Catalog
    deployment: Deployment | None = None  # the motes as declared; None: unknown
    pushdown: PushdownPolicy = PushdownPolicy.PLANNED
    duty_cycled: bool = False
    agenda: Agenda | None = None
    agenda_tick: int = -1  # the tick in which the agenda was computed
    is_deferred: bool = False  # whether a change waits until the pending agenda has begun
    awake_reason: str | None = None  # why motes of a duty-cycled network have no agenda
    scheduled: ScheduleSet = NO_SCHEDULES
    demand: SamplingDemand | None = None  # what the schedules serve
    desired: Mapping[MoteId, DesiredState] = field(default_factory=dict)
    topology: Topology = field(default_factory=Topology)
    tree: RoutingTree = field(default_factory=lambda: RoutingTree((COORDINATOR,), {}))
    silence_limits: Mapping[int, int] = field(default_factory=dict)  # by mote, how many ticks it may be silent
    unreported_from: Mapping[str, int] = field(default_factory=dict)  # by extent: behind all filter reports so far
    silent: frozenset[int] = frozenset()  # motes that the routing tree avoids
    folds: Mapping[int, PlacedOperator] = field(default_factory=dict)
    fold_gap: int = 0  # numbers that the next new fold leaves out, as a station before a restore may have used them
    queries: Mapping[int, QueryRecord] = field(default_factory=dict)  # those that may answer, or be resumed
    last_number: int = 0  # of the query that was accepted last
    live: Mapping[int, QueryRecord] = field(default_factory=dict)  # the queries that may need readings
    statistics: Statistics = GUESS

    @classmethod
    def initial(
        cls,
        catalog: Catalog,
        deployment: Deployment | None,
        pushdown: PushdownPolicy = PushdownPolicy.PLANNED,
        duty_cycled: bool = False,
    ) -> "World":
        """The world before any frame came. All gateways are roots of the tree; without any, the station is the root."""
        gateways = tuple(sorted(deployment.gateways)) if deployment else ()
        return cls(catalog, deployment, pushdown, duty_cycled, tree=RoutingTree(gateways or (COORDINATOR,), {}))

    @property
    def declared_motes(self) -> frozenset[int] | None:
        """The motes and gateways of the deployment; None without a deployment."""
        return None if self.deployment is None else frozenset((*self.deployment.motes, *self.deployment.gateways))

    def with_links(self, reports: Iterable[LinksReport]) -> "World":
        """The world after motes reported their neighbours."""
        topology = self.topology.with_reports(reports)
        if topology is self.topology:
            return self
        if topology == self.topology:
            return replace(self, topology=topology)
        tree = update_tree(self.tree, topology, self.silent, known=self.declared_motes)
        return replace(self, topology=topology, tree=tree)

    def with_filter_reports(self, extent: str, ticks: IntArray) -> "World":
        """The world after motes reported readings of these ticks as filtered."""
        first = max(self.unreported_from.get(extent, 0), int(ticks.max(initial=-1)) + 1)
        return replace(self, unreported_from={**self.unreported_from, extent: first})

    def with_silent(self, silent: frozenset[int]) -> "World":
        """The world with another set of silent motes."""
        if silent == self.silent:
            return self
        tree = update_tree(self.tree, self.topology, silent, known=self.declared_motes)
        return replace(self, silent=silent, tree=tree)

    def with_query(self, query: QueryRecord) -> "World":
        """The world with a query added or replaced."""
        live = {**self.live, query.number: query}
        if not query.live:
            del live[query.number]
        last = max(self.last_number, query.number)
        return replace(self, queries={**self.queries, query.number: query}, live=live, last_number=last)

    def without_query(self, number: int) -> "World":
        """The world after a query that has ended answers nothing any more."""
        return replace(self, queries={other: query for other, query in self.queries.items() if other != number})

    def named(self, name: str) -> QueryRecord | None:
        """The query with a name that answers new windows, now or after it is resumed; or None."""
        found = (query for query in self.queries.values() if query.name == name and not query.has_ended)
        return next((query for query in found if query.state is not QueryState.DRAINING), None)

    def with_agenda(self, agenda: Agenda | None, tick: int) -> "World":
        """The world with the agenda that was computed at a tick."""
        return self if agenda == self.agenda else replace(self, agenda=agenda, agenda_tick=tick)

    def with_folds(self, folds: Mapping[int, PlacedOperator]) -> "World":
        """The world with folds added or placed elsewhere. A number that is reused belongs to the youngest fold."""
        kept = {number: fold for number, fold in self.folds.items() if number in self.running or number not in folds}
        return replace(self, folds={**kept, **folds}, fold_gap=0) if folds else self

    def with_number_gap(self, gap: int) -> "World":
        """The world whose next sampling and fold leave out so many numbers."""
        return replace(self, scheduled=replace(self.scheduled, gap=gap), fold_gap=gap)

    @property
    def running(self) -> dict[int, PlacedOperator]:
        """By number, the folds that serve some query."""
        live = {source.number for query in self.live.values() for source in query.all_partial_sources}
        return {number: fold for number, fold in self.folds.items() if number in live}

    @property
    def last_fold(self) -> int:
        """The fold number that was assigned last, or left out."""
        return (next(reversed(tuple(self.folds)), 0) + self.fold_gap) % len(FOLD_NUMBERS)

    @property
    def shapes(self) -> dict[int, PartialShape]:
        """The layout of partials, by fold number."""
        return {number: fold.shape for number, fold in self.folds.items()}

    def route_to(self, mote: MoteId) -> HopPath:
        """The hops from the station to a mote; empty for a mote outside the tree."""
        return tuple(map(MoteId, self.tree.path(mote)[::-1])) if mote in self.tree.parent else ()

    def with_settled(self, settled: frozenset[int]) -> "World":
        """The world after motes confirmed: a query runs once all the motes it awaits have their desired state."""
        world = self
        for query in self.live.values():
            if query.state is QueryState.DEPLOYING and query.awaited <= settled:
                world = world.with_query(query.transition(QueryEvent.ALL_SETTLED))
        return world

    def next_number(self) -> int:
        """The number of the next query; numbers are never reused."""
        return self.last_number + 1

"""World: what the base station knows now. It is replaced, never changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from acquisition.extent import Catalog
from acquisition.schedule_builder import NO_SCHEDULES, ScheduleSet
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord, QueryState
from basestation.planner.pushdown_policy import PushdownPolicy
from gateway.desired_state import DesiredState
from gateway.frame import COORDINATOR, HopPath, MoteId
from innet.deployment import Deployment
from innet.partials import PartialShape
from innet.placement.agenda import Agenda
from innet.placement.placement import PlacedOperator
from innet.placement.statistics import GUESS, Statistics
from innet.routing.parent_selection import update_tree
from innet.routing.topology import LinksReport, Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class World:
    """`desired` is what each mote should have; what it says it has is known to its keeper (`gateway.reconciler`).

    `folds` are by number those that run, and old ones whose frames may be under way, the youngest last. Motes that
    `sleeps` is said of have an `agenda`, and sleep but for their slots in it.
    """

    catalog: Catalog
    deployment: Deployment | None = None  # what is known of the motes before they say anything
    moves: PushdownPolicy = PushdownPolicy.PLANNED
    duty_cycled: bool = False
    agenda: Agenda | None = None
    agenda_tick: int = -1  # in which clock tick
    is_deferred: bool = False  # whether motes are to be told something when their agenda has begun
    awake_reason: str | None = None  # why motes that are to sleep have no agenda
    scheduled: ScheduleSet = NO_SCHEDULES
    desired: Mapping[int, DesiredState] = field(default_factory=dict)
    topology: Topology = field(default_factory=Topology)
    tree: RoutingTree = field(default_factory=lambda: RoutingTree((COORDINATOR,), {}))
    silence_limits: Mapping[int, int] = field(default_factory=dict)  # for how many ticks a mote may say nothing
    silent: frozenset[int] = frozenset()  # where there is another way nothing is to go through these
    folds: Mapping[int, PlacedOperator] = field(default_factory=dict)
    queries: Mapping[int, QueryRecord] = field(default_factory=dict)
    live: Mapping[int, QueryRecord] = field(default_factory=dict)  # those that may want readings
    statistics: Statistics = GUESS

    @classmethod
    def initial(
        cls,
        catalog: Catalog,
        deployment: Deployment | None,
        moves: PushdownPolicy = PushdownPolicy.PLANNED,
        duty_cycled: bool = False,
    ) -> "World":
        """Before anybody was heard. All gateways are roots of the tree; the base station is one itself if none is named."""
        gateways = tuple(sorted(deployment.gateways)) if deployment else ()
        return cls(catalog, deployment, moves, duty_cycled, tree=RoutingTree(gateways or (COORDINATOR,), {}))

    @property
    def known(self) -> frozenset[int] | None:
        """The motes and gateways of the deployment; None where nobody has said which there are."""
        return None if self.deployment is None else frozenset((*self.deployment.motes, *self.deployment.gateways))

    def with_links(self, reports: Iterable[LinksReport]) -> "World":
        """After motes told whom they hear."""
        topology = self.topology.with_reports(reports)
        if topology == self.topology:
            return replace(self, topology=topology)
        return replace(self, topology=topology, tree=update_tree(self.tree, topology, self.silent, known=self.known))

    def with_silent(self, silent: frozenset[int]) -> "World":
        """After somebody has fallen silent, or speaks again."""
        if silent == self.silent:
            return self
        return replace(self, silent=silent, tree=update_tree(self.tree, self.topology, silent, known=self.known))

    def with_query(self, query: QueryRecord) -> "World":
        live = {**self.live, query.number: query}
        if not query.live:
            del live[query.number]
        return replace(self, queries={**self.queries, query.number: query}, live=live)

    def with_agenda(self, agenda: Agenda | None, tick: int) -> "World":
        """With what motes are to keep to, as it was found in a clock tick."""
        return self if agenda == self.agenda else replace(self, agenda=agenda, agenda_tick=tick)

    def with_folds(self, folds: Mapping[int, PlacedOperator]) -> "World":
        """With folds that begin, or are told to other motes; a number that is used again is that of the youngest."""
        known = {
            number: placed for number, placed in self.folds.items() if number in self.running or number not in folds
        }
        return replace(self, folds={**known, **folds}) if folds else self

    @property
    def running(self) -> dict[int, PlacedOperator]:
        """By number, the folds that feed some query."""
        live = {fed.number for query in self.live.values() for fed in query.all_partial_sources}
        return {number: placed for number, placed in self.folds.items() if number in live}

    @property
    def last_fold(self) -> int:
        """The number that was given last."""
        return next(reversed(self.folds), 0)

    @property
    def shapes(self) -> dict[int, PartialShape]:
        """By their number in frames, how partials are made."""
        return {number: placed.shape for number, placed in self.folds.items()}

    def way(self, mote: MoteId) -> HopPath:
        """How a mote is reached, by whom it says it hears; empty where it is not in the tree."""
        return self.tree.path(mote)[::-1] if mote in self.tree.parent else ()

    def with_settled(self, settled: frozenset[int]) -> "World":
        """A query runs when all motes that it waits for are among those that have what they should have."""
        world = self
        for query in self.live.values():
            if query.state is QueryState.DEPLOYING and query.awaited <= settled:
                world = world.with_query(query.transition(QueryEvent.ALL_SETTLED))
        return world

    def next_number(self) -> int:
        """The number of the next query; a number is never used again."""
        return max(self.queries, default=0) + 1

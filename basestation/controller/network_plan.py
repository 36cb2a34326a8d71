"""Network plan: all that motes would do in one candidate state, each part computed once, when it is first used.

A candidate state is a World with the queries and folds that would run. A decision compares several candidate states, and many
of them need the same schedules and agendas; a PlanCache shares these.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, inf

from acquisition.errors import ScheduleError
from acquisition.schedule_builder import ScheduleSet
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import compile_all, mote_processors, place_all
from basestation.controller.sampling_demand import SamplingDemand
from basestation.controller.world import World
from basestation.planner.placement_problem import build_placement_problem
from innet.costs.burst_loss import NO_BURSTS, BurstLoss
from innet.costs.energy_model import EnergyPrediction
from innet.deployment import Deployment
from innet.errors import PlacementError, ProgramError
from innet.placement.agenda import Agenda
from innet.placement.agenda_scheduler import longest_round, schedule_placement
from innet.placement.energy_prediction import predict_energy
from innet.placement.load_memo import LoadMemo
from innet.placement.load_model import NetworkLoads, Round
from innet.placement.placement import PlacedOperator, Placement
from innet.placement.placement_problem import PlacementProblem
from innet.placement.placement_search import FoldDecision
from innet.placement.statistics import Statistics
from innet.program.compiler import compile_programs
from innet.program.footprint import Footprint, measure_footprints
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree
from innet.routing.tree import RoutingTree

INFEASIBLE = ScheduleError, PlacementError, ProgramError
"""The errors that say why the motes of a deployment cannot run some queries."""
MOST_PROGRAMS = 32
"""Placements of which a cache holds the programs of all motes; a search compiles many, and rarely comes back to an old one."""


@dataclass(frozen=True, slots=True)
class NetworkUsage:
    """The use of all motes together in an hour; infinite for an infeasible plan."""

    joules: float
    messages: float


class PlanCache:
    """Schedules, programs, agendas and plans of the candidate states that one decision compares at tick `now`.

    Results are shared by content. Parts of a World that its queries do not change (tree, statistics, …) are compared by
    identity; the cache keeps them alive.
    """

    def __init__(self, now: int) -> None:
        self.now = now
        self._plans: dict[Hashable, NetworkPlan] = {}
        self._schedules: dict[Hashable, ScheduleSet] = {}
        self._planning: dict[Hashable, ScheduleSet] = {}
        self._programs: dict[Hashable, list[MoteProgram]] = {}
        self._agendas: dict[Hashable, Agenda | PlacementError] = {}
        self._rounds: dict[Hashable, Round | None] = {}
        self._memo = LoadMemo()
        self._trees: dict[int, RoutingTree] = {}
        self._kept: dict[int, object] = {}  # id -> object: an id in a key stays that of its object

    def plan(self, world: World, tick: int | None = None, renewed: Collection[str] = ()) -> "NetworkPlan":
        """The plan of a candidate state, from a tick on (default: now). `renewed` extents get new samplings."""
        tick = self.now if tick is None else tick
        queries = tuple((query.operators, query.plan.options.deliver_within) for query in _needing(world))
        state = queries, tuple(world.running.items()), tick, frozenset(renewed), *self._identify(world)
        if state not in self._plans:
            self._plans[state] = NetworkPlan(world, tick, renewed, self)
        return self._plans[state]

    def schedule(self, world: World, demand: SamplingDemand, tick: int, renewed: Collection[str] = ()) -> ScheduleSet:
        """One schedule per site from a tick on. ScheduleError if motes cannot sample what the demand needs."""
        if demand == world.demand and not renewed:
            return world.scheduled
        key = demand, tick, frozenset(renewed), *self._identify(world)
        if key not in self._schedules:
            self._schedules[key] = demand.schedule(world.catalog, world.scheduled, tick, renewed)
        return self._schedules[key]

    def planning_schedule(self, world: World, demand: SamplingDemand) -> ScheduleSet:
        """Schedules by which to plan: any that sample the same. A plan does not depend on which sites send a value, nor on
        the numbers and first ticks of samplings."""
        if world.demand is not None and demand.sampling == world.demand.sampling:
            return world.scheduled
        key = demand.sampling, *self._identify(world)
        if key not in self._planning:
            self._planning[key] = self.schedule(world, demand, self.now)
        return self._planning[key]

    def compile(self, placed: Sequence[PlacedOperator], scheduled: ScheduleSet, world: World) -> list[MoteProgram]:
        """One program per site and sampling. ProgramError where a mote has no room."""
        key = tuple(placed), self._id(scheduled), self._id(world.deployment)
        if key not in self._programs:
            if len(self._programs) >= MOST_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            schedules = scheduled.schedules.values()
            self._programs[key] = compile_programs(placed, schedules, mote_processors(world))
        return self._programs[key]

    def problem(self, world: World, queries: Sequence[QueryRecord], scheduled: ScheduleSet) -> PlacementProblem:
        """The network as placements are chosen for it, with the longest round that all of the queries allow.

        Links are those that motes reported, or the declared ones as long as a site that samples is not in the tree.
        """
        deployment, tree, topology = deployment_of(world), world.tree, world.topology
        declared = self._declared_tree(deployment)
        if (scheduled.schedules.keys() & declared.parent.keys()) - tree.parent.keys():
            tree, topology = declared, deployment.topology
        interval = gcd(*(need.every for query in queries for need in query.needs))
        round = longest_round(interval, world.catalog.tick_ms, delivery_bound_ms(world, queries))
        problem = build_placement_problem(
            deployment, world.catalog, tree, topology, scheduled.schedules, round, world.statistics
        )
        return replace(problem, memo=self._memo)

    def find_round(self, placement: Placement, problem: PlacementProblem, bound_ms: int | None) -> Round | None:
        """The round of a placement's agenda; None if no agenda has time. The order of the operators does not matter."""
        key = (
            frozenset(Counter(self._describe(placement)).items()),
            *self._describe_problem(placement, problem, bound_ms),
        )
        if key not in self._rounds:
            try:
                agenda = self.agenda(placement, problem, bound_ms)
            except PlacementError:
                self._rounds[key] = None
            else:
                interval = problem.round.interval
                self._rounds[key] = Round(agenda.period // interval, interval)
        return self._rounds[key]

    def agenda(self, placement: Placement, problem: PlacementProblem, bound_ms: int | None) -> Agenda:
        """The agenda of a placement. PlacementError, with the figures, if none has time for what has to be sent.

        Fold numbers do not matter: placements that differ in nothing else have the same agenda.
        """
        key = tuple(self._describe(placement)), *self._describe_problem(placement, problem, bound_ms)
        if key not in self._agendas:
            try:
                self._agendas[key] = schedule_placement(placement, problem, bound_ms)
            except PlacementError as why:
                self._agendas[key] = why
        found = self._agendas[key]
        if isinstance(found, PlacementError):
            raise found
        return found

    def _describe(self, placement: Placement) -> Iterator[Hashable]:
        """The operators of a placement, without the numbers of folds."""
        return ((p.operator, p.sites, p.merging, p.room) for p in placement.placed)

    def _describe_problem(
        self, placement: Placement, problem: PlacementProblem, bound_ms: int | None
    ) -> tuple[Hashable, ...]:
        parts = placement.tree, problem.network.topology, problem.schedules, problem.statistics
        return problem.round, bound_ms, *map(self._id, parts)

    def _declared_tree(self, deployment: Deployment) -> RoutingTree:
        key = self._id(deployment)
        if key not in self._trees:
            self._trees[key] = choose_tree(deployment.topology, deployment.gateways)
        return self._trees[key]

    def _identify(self, world: World) -> tuple[int, ...]:
        parts = world.catalog, world.deployment, world.scheduled, world.tree, world.topology, world.statistics
        return tuple(map(self._id, parts))

    def _id(self, part: object) -> int:
        self._kept[id(part)] = part
        return id(part)


class NetworkPlan:
    """The work of all motes in one candidate state. Reading a part raises one of INFEASIBLE if there is no such part.

    `world` must have a deployment for all but `scheduled`, `requested`, `running` and `programs`.
    """

    def __init__(self, world: World, tick: int, renewed: Collection[str], cache: PlanCache) -> None:
        self.world, self.queries = world, _needing(world)
        self._tick, self._renewed, self._cache = tick, renewed, cache
        self.decisions: tuple[FoldDecision, ...] = ()  # one for each fold that was considered
        self.refusals: tuple[str, ...] = ()  # why aggregates that motes could fold are not folded

    def with_decisions(self, decisions: tuple[FoldDecision, ...], refusals: tuple[str, ...]) -> "NetworkPlan":
        """A copy with the decisions that led to it."""
        plan = copy(self)
        plan.decisions, plan.refusals = decisions, refusals
        return plan

    @cached_property
    def demand(self) -> SamplingDemand:
        """The samplings that the queries need."""
        return SamplingDemand.of(self.queries, self.world.catalog)

    @cached_property
    def scheduled(self) -> ScheduleSet:
        """The schedule of each site, as it is installed."""
        return self._cache.schedule(self.world, self.demand, self._tick, self._renewed)

    @cached_property
    def planned(self) -> ScheduleSet:
        """Schedules that sample the same, shared with other candidate states."""
        return self._cache.planning_schedule(self.world, self.demand)

    @cached_property
    def requested(self) -> tuple[PlacedOperator, ...]:
        """The operators that the queries ask for."""
        return place_all(self.world)

    @cached_property
    def _compiled(self) -> tuple[tuple[PlacedOperator, ...], list[MoteProgram]]:
        return self._compile(self.planned)

    @cached_property
    def installation(self) -> tuple[tuple[PlacedOperator, ...], list[MoteProgram]]:
        """The operators that run, and their programs under the installed schedules."""
        return self._compiled if self.scheduled is self.planned else self._compile(self.scheduled)

    def _compile(self, scheduled: ScheduleSet) -> tuple[tuple[PlacedOperator, ...], list[MoteProgram]]:
        return compile_all(
            self.requested, self.world, lambda placed: self._cache.compile(placed, scheduled, self.world)
        )

    @property
    def running(self) -> tuple[PlacedOperator, ...]:
        """The operators that motes have room for: those requested, or unfiltered readings in their place."""
        return self._compiled[0]

    @property
    def programs(self) -> list[MoteProgram]:
        """The program of each mote and sampling."""
        return self._compiled[1]

    @property
    def filters_on_motes(self) -> bool:
        """Whether motes test the conditions of deliveries; false if some mote has no room for them."""
        return all(placed in self.running for placed in self.requested if not placed.number)

    @cached_property
    def _longest_problem(self) -> PlacementProblem:
        return self._cache.problem(self.world, self.queries, self.planned)

    @cached_property
    def placement(self) -> Placement:
        """Where the operators run, along which tree."""
        tree = self._longest_problem.network.tree
        unreached = tree.unreached(site for sites in {placed.sites for placed in self.running} for site in sites)
        return Placement(tree, self.running, unreached)

    @cached_property
    def agenda(self) -> Agenda:
        """When each mote senses, sends and receives."""
        return self._cache.agenda(self.placement, self._longest_problem, delivery_bound_ms(self.world, self.queries))

    @cached_property
    def problem(self) -> PlacementProblem:
        """The network with the round that the agenda has. A round of a single epoch is known without the agenda."""
        longest = self._longest_problem
        if longest.round.epochs == 1:
            return longest
        interval = longest.round.interval
        return replace(longest, round=Round(self.agenda.period // interval, interval))

    @cached_property
    def prediction(self) -> EnergyPrediction:
        """The prediction for a round, by the statistics of the world."""
        return self.predict()

    def predict(self, statistics: Statistics | None = None, burst_loss: BurstLoss = NO_BURSTS) -> EnergyPrediction:
        """The prediction for a round, by other statistics or with burst loss, which a planning station does not know."""
        network = replace(self.problem.network, burst_loss=burst_loss)
        statistics = statistics or self.problem.statistics
        return predict_energy(self.placement, replace(self.problem, statistics=statistics, network=network))

    @cached_property
    def usage(self) -> NetworkUsage:
        """The use of all motes in an hour, if there is an agenda; infinite without schedules, programs or placement."""
        if not self.queries:
            return NetworkUsage(0.0, 0.0)
        try:
            prediction = self.prediction
        except INFEASIBLE:
            return NetworkUsage(inf, inf)
        hours = prediction.epoch_ms / 3_600_000
        joules = sum(use.total for use in prediction.motes.values())
        return NetworkUsage(joules / hours, prediction.total.attempts / hours)

    @cached_property
    def cost(self) -> NetworkUsage:
        """The use of all motes in an hour; infinite if the plan is infeasible."""
        return self.usage if self._is_feasible else NetworkUsage(inf, inf)

    def is_cheaper_than(self, joules: float) -> bool:
        """Whether the plan is feasible and uses less than that in an hour. The agenda is computed only if it matters."""
        return self.usage.joules < joules and self._is_feasible

    @cached_property
    def _is_feasible(self) -> bool:
        if self.usage.joules == inf:
            return False
        try:
            self.check()
        except PlacementError:
            return False
        return True

    def check(self) -> None:
        """Raise one of INFEASIBLE unless motes can run the plan: sampling, memory and time."""
        if self.queries:
            _ = self.agenda  # needs all the other parts

    @property
    def footprints(self) -> dict[int, Footprint]:
        """The memory that each mote needs, in bytes."""
        problem = self.problem
        loads = NetworkLoads.of(self.placement, problem.schedules, problem.sizes, problem.round, problem.statistics)
        return measure_footprints(self.programs, loads, self.placement.tree)


def deployment_of(world: World) -> Deployment:
    """The deployment of a world that has one."""
    if world.deployment is None:
        raise ValueError("planning the network needs a deployment; this world has none")
    return world.deployment


def delivery_bound_ms(world: World, queries: Iterable[QueryRecord]) -> int | None:
    """The shortest DELIVER WITHIN in ms; None if some query has none, so that no reading may wait for a later epoch."""
    bounds = [query.plan.options.deliver_within for query in queries]
    known = [bound for bound in bounds if bound is not None]
    return min(known) * world.catalog.tick_ms if known and len(known) == len(bounds) else None


def _needing(world: World) -> tuple[QueryRecord, ...]:
    """The live queries that need readings of motes."""
    return tuple(query for query in world.live.values() if query.needs)

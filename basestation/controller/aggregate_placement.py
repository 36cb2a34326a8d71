"""Aggregate placement: which aggregations of a query motes fold on the way, and in which folds.

Folds that run stay as they are, because a mote loses the partials of a fold that changes. So a query uses a running fold that
has all its aggregates; otherwise it gets a fold of its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from basestation.controller.network_plan import PlanCache, delivery_bound_ms
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import find_report_starts, live_deliveries, split_plan
from basestation.controller.sampling_demand import SamplingDemand
from basestation.controller.world import World
from basestation.execution.plan_checks import last_tick
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from basestation.planner.pushdown import FoldCandidate, PushdownPlan
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.rewriter import rewrite
from innet.errors import PlacementError, ProgramError
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.placement.fold_sharing import find_state, has_all_states
from innet.placement.placement import PlacedOperator, Placement
from innet.placement.placement_search import FoldDecision, FoldOption, build_placement, place


@dataclass(frozen=True, slots=True)
class AggregatePlacement:
    """A query with its deliveries and partial sources, the folds that begin with it by number, and the decisions.

    If motes have no room for its folds, `refusal` has the reason, and its readings are delivered.
    """

    query: QueryRecord
    begin: Mapping[int, PlacedOperator] = field(default_factory=dict)
    decisions: tuple[FoldDecision, ...] = ()
    refusal: str | None = None

    @property
    def new_folds(self) -> dict[int, Fold]:
        """The folds that begin with the query, by number."""
        operators = {number: placed.operator for number, placed in self.begin.items()}
        return {number: operator for number, operator in operators.items() if isinstance(operator, Fold)}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate state: the world that would result, and the placements of the queries that would change."""

    world: World
    placements: Mapping[int, AggregatePlacement] = field(default_factory=dict)

    def without(self, numbers: Collection[int]) -> "Candidate":
        """The candidate as if these queries were not live."""
        live = {number: query for number, query in self.world.live.items() if number not in numbers}
        return replace(self, world=replace(self.world, live=live))

    def place(
        self, query: QueryRecord, found: PushdownPlan, plans: PlanCache, chosen: Collection[Fold] | None = None
    ) -> "Candidate":
        """The candidate with a query added, its aggregates placed as by `place_aggregates`."""
        placement = place_aggregates(query, found, self.world, plans, chosen)
        world = self.world.with_folds(placement.begin).with_query(placement.query)
        return Candidate(world, {**self.placements, query.number: placement})

    def folds(self, number: int) -> list[Fold]:
        """The folds that serve a query."""
        return [source.fold for source in self.world.live[number].partial_sources]


def add_query(plan: Plan, world: World, plans: PlanCache, text: str = "", number: int | None = None) -> Candidate:
    """The candidate state in which one query more runs beside those of a world."""
    number = world.next_number() if number is None else number
    query = QueryRecord(number, text, plan, last_tick=last_tick(plan.options, plans.now), submitted_at=plans.now)
    rewritten, _ = rewrite(plan)
    return Candidate(world).place(query, split_plan(plan, rewritten.root, world), plans)


def place_aggregates(
    query: QueryRecord,
    found: PushdownPlan,
    world: World,
    plans: PlanCache,
    chosen: Collection[Fold] | None = None,
) -> AggregatePlacement:
    """Decide which aggregations of a new query motes fold: the cheapest choice, or those in `chosen`."""
    candidates, readings = found.fold_candidates, found.readings
    if world.pushdown is PushdownPolicy.EVERYTHING:
        chosen = [candidate.fold for candidate in candidates]
    refusal: str | None = None
    if candidates and (chosen is None or chosen):
        try:
            placement, folded, decisions = _place_folds(query, found, world, plans, chosen)
        except (PlacementError, ProgramError) as why:
            refusal = str(why)
        else:
            sources = tuple(_find_source(candidate, placement.folds) for candidate in folded)
            rest = [d for candidate in candidates if candidate not in folded for d in candidate.unfolded_readings]
            begin = {fold.number: fold for fold in placement.folds if fold.number not in world.running}
            return AggregatePlacement(
                _with_sources(query, (*readings, *rest), sources, world, plans.now), begin, decisions
            )
    unfolded = (delivery for candidate in candidates for delivery in candidate.unfolded_readings)
    return AggregatePlacement(_with_sources(query, (*readings, *unfolded), (), world, plans.now), refusal=refusal)


def _with_sources(
    query: QueryRecord, readings: Sequence[Deliver], sources: tuple[PartialSource, ...], world: World, now: int
) -> QueryRecord:
    """The query with its deliveries and partial sources, and the ticks from which filter reports hold for it."""
    query = replace(query, deliveries=tuple(dict.fromkeys(readings)), partial_sources=sources)
    return replace(query, reports_from=find_report_starts(query, world, now))


def _place_folds(
    query: QueryRecord, found: PushdownPlan, world: World, plans: PlanCache, chosen: Collection[Fold] | None
) -> tuple[Placement, Sequence[FoldCandidate], tuple[FoldDecision, ...]]:
    """The placement, the candidates that are folded in it, and the decisions. ProgramError if some mote has no room."""
    candidates = found.fold_candidates
    sources = tuple(PartialSource(candidate.node, candidate.fold, 0, ()) for candidate in candidates)
    submitted = replace(query, deliveries=tuple(found.readings), partial_sources=sources)
    queries = [*(other for other in world.live.values() if other.needs), submitted]
    demand = SamplingDemand.of((*world.live.values(), submitted), world.catalog)
    scheduled = plans.planning_schedule(world, demand)
    problem = plans.problem(world, queries, scheduled)
    options = tuple(dict.fromkeys(FoldOption(c.fold, c.unfolded_readings) for c in candidates))
    deliveries, running = (*live_deliveries(world), *found.readings), tuple(world.running.values())
    decisions: tuple[FoldDecision, ...] = ()
    if chosen is not None:
        numbers = [number for number, option in enumerate(options) if option.fold in chosen]
        placement = build_placement(deliveries, options, numbers, problem, running, world.last_fold)
        folded = [candidate for candidate in candidates if candidate.fold in chosen]
    else:
        bound_ms = delivery_bound_ms(world, queries)
        placement, decisions = place(
            deliveries,
            options,
            problem,
            running,
            world.last_fold,
            lambda tried: plans.find_round(tried, problem, bound_ms),
        )
        folded = [c for c in candidates if any(decision.runs for decision in decisions if decision.fold == c.fold)]
    plans.compile(placement.placed, scheduled, world)
    return placement, folded, decisions


def _find_source(candidate: FoldCandidate, folds: Sequence[PlacedOperator]) -> PartialSource:
    """The fold that has all states of a candidate, with the place of each state in it."""
    for placed in folds:
        fold = placed.operator
        if isinstance(fold, Fold) and has_all_states(fold, candidate.fold):
            places = (None if at is None else find_state(fold, candidate.fold.states[at]) for at in candidate.sources)
            return PartialSource(candidate.node, candidate.fold, placed.number, tuple(places))
    raise LookupError(f"no fold has all states of {candidate.fold.label()}")

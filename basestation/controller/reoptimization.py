"""Re-optimization: would the live queries be cheaper if their aggregates were placed otherwise? It changes no mote.

Each query is placed beside those that run. Together another choice may be cheaper: a fold saves nothing if its readings are
delivered anyway, and many folds may cost more than the delivery of all that they read.
"""

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from basestation.algebra.converters import Converter
from basestation.algebra.node import StreamNode, walk
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow
from basestation.controller.aggregate_placement import AggregatePlacement, Candidate
from basestation.controller.network_plan import NetworkUsage, PlanCache
from basestation.controller.requirements import split_plan
from basestation.controller.world import World
from basestation.planner.pushdown import PushdownPlan
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.rewriter import rewrite
from innet.operators.fold import Fold

NOT_MIGRATABLE = Converter | StreamUnion | LandmarkWindow | RowWindow | LoopWindow | Scan | Once
"""Operators that depend on the query's start, or read other things than time windows: their queries keep their placement."""

PARTS_PER_QUERY = 4
"""A search splits its plan, places it in two joint candidates, and places it alone."""


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The queries to place otherwise, with the usage of the network now and then."""

    placements: Mapping[int, AggregatePlacement]
    now: NetworkUsage
    then: NetworkUsage


Search: TypeAlias = Generator[None, None, PlanComparison | None]


def plan_jointly(candidate: Candidate, plans: PlanCache) -> Candidate:
    """Place the queries of this very tick together; no mote knows of them yet.

    Each was placed beside those before it. A later one can make folds dearer, or could have shared a wider fold.
    """
    world = candidate.world
    new = {number for number, query in world.live.items() if query.submitted_at == plans.now}
    pushdowns = _find_pushdowns(world, new) if len(new) > 1 else {}
    folded = [number for number in pushdowns if candidate.folds(number)]
    if not folded:
        return candidate
    best, cost = candidate, plans.plan(world).cost
    for numbers, chosen in (folded, ()), (list(pushdowns), None), *(([number], ()) for number in folded):
        tried = best.without(numbers)
        for number in numbers:
            tried = tried.place(world.live[number], pushdowns[number], plans, chosen)
        plan = plans.plan(tried.world)
        if plan.is_cheaper_than(cost.joules):
            best, cost = tried, plan.cost
    return best


def find_cheaper(world: World, plans: PlanCache, min_saving: float) -> PlanComparison | None:
    """Find placements with which all motes together use less, at least by that share of now; None if there are none."""
    search = search_cheaper(world, plans, min_saving)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: PlanComparison | None = end.value
            return found


def search_cheaper(world: World, plans: PlanCache, min_saving: float) -> Search:
    """Search as `find_cheaper` does, in parts: it yields after each query that it looked at, and returns the result.

    There are at most PARTS_PER_QUERY parts for each live query, and three more.
    """
    pushdowns: dict[int, PushdownPlan] = {}
    for number in world.live:
        pushdowns |= _find_pushdowns(world, [number])
        yield
    if not pushdowns:
        return None
    pushdowns = _widest_first(pushdowns)
    best = begin = Candidate(world)
    cost = now = plans.plan(world).cost
    yield
    for chosen in _joint_choices(pushdowns):
        tried = begin.without(pushdowns)
        for number, pushdown in pushdowns.items():
            tried = tried.place(begin.world.live[number], pushdown, plans, chosen)
            yield
        plan = plans.plan(tried.world)
        if plan.is_cheaper_than((1 - min_saving) * cost.joules):
            best, cost = tried, plan.cost
        yield
    for number, pushdown in pushdowns.items():
        tried = best.without([number]).place(best.world.live[number], pushdown, plans)
        plan = plans.plan(tried.world)
        if tried.folds(number) != best.folds(number) and plan.is_cheaper_than((1 - min_saving) * cost.joules):
            best, cost = tried, plan.cost
        yield
    changed = {n: placed for n, placed in best.placements.items() if best.folds(n) != begin.folds(n)}
    return PlanComparison(changed, now, cost) if changed else None


def _joint_choices(pushdowns: Mapping[int, PushdownPlan]) -> tuple[tuple[Fold, ...] | None, ...]:
    """All queries delivered, and all placed anew. For a single query the search tries that by itself."""
    return ((), None) if len(pushdowns) > 1 else ()


def _find_pushdowns(world: World, numbers: Collection[int]) -> dict[int, PushdownPlan]:
    """The parts that motes could run of queries that have aggregates for them and can change their placement at any window."""
    found: dict[int, PushdownPlan] = {}
    if world.deployment is None or world.pushdown is not PushdownPolicy.PLANNED:
        return found
    for number in numbers:
        query = world.live[number]
        if not query.needs or query.migration is not None or query.last_tick is not None:
            continue
        root = query.plan.root
        if isinstance(root, StreamNode) or any(isinstance(node, NOT_MIGRATABLE) for node in walk(root)):
            continue
        pushdown = split_plan(query.plan, rewrite(query.plan)[0].root, world)
        if pushdown.fold_candidates:
            found[number] = pushdown
    return _widest_first(found)


def _widest_first(pushdowns: Mapping[int, PushdownPlan]) -> dict[int, PushdownPlan]:
    """Queries with wide folds first, because a wide fold serves queries that need less, and not the other way round."""
    widths = {n: max(len(c.fold.states) for c in pushdown.fold_candidates) for n, pushdown in pushdowns.items()}
    return dict(sorted(pushdowns.items(), key=lambda item: -widths[item[0]]))

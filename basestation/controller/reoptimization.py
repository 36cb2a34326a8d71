"""Weighing: whether the queries that run would be cheaper if they were fed in other ways. No mote is asked anything here.

Queries are decided about as they come, beside those that run. Together another way may be cheaper: a fold of readings that
somebody wants anyway saves nothing, and many folds may cost more than to collect what all of them read.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from basestation.algebra.converters import Converter
from basestation.algebra.node import StreamNode, walk
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow
from basestation.controller.aggregate_placement import AggregatePlacement, place_aggregates
from basestation.controller.forecast import INFEASIBLE, make_forecast
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import split_plan
from basestation.controller.world import World
from basestation.planner.pushdown import PushdownPlan
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.rewriter import rewrite

NOT_MIGRATABLE = Converter | StreamUnion | LandmarkWindow | RowWindow | LoopWindow | Scan | Once
"""What begins with a query, or reads what is not windows of time: a query with any of it stays as it began."""


@dataclass(frozen=True, slots=True)
class RunningCost:
    """Of all motes, in an hour; endless where they cannot do it."""

    joules: float
    messages: float

    @classmethod
    def of(cls, world: World) -> "RunningCost":
        try:
            found = make_forecast(world)
        except INFEASIBLE:
            return cls(inf, inf)
        if found is None:
            return cls(0.0, 0.0)
        prediction = found.predicted()
        hours = prediction.epoch_ms / 3_600_000
        return cls(sum(use.total for use in prediction.motes.values()) / hours, prediction.total.attempts / hours)


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Queries as they would be fed, what the network uses now and what it would use then."""

    feedings: Mapping[int, AggregatePlacement]
    now: RunningCost
    then: RunningCost


def plan_jointly(
    world: World, feedings: Mapping[int, AggregatePlacement], now: int
) -> tuple[World, Mapping[int, AggregatePlacement]]:
    """After those that came in this very clock tick, of which no mote has heard yet, were decided about together.

    Each has chosen beside those before it; who came after can make folds dearer, or could have shared a wider one.
    """
    young = {number for number, query in world.live.items() if query.submitted_at == now}
    splits = _splits(world, young) if len(young) > 1 else {}
    best = _Candidate(world, feedings)
    folded = [number for number in splits if best.folds(number)]
    if not folded:
        return world, feedings
    best = best.weighed()
    for numbers, chosen in ((folded, ()), (splits, None), *(([number], ()) for number in folded)):
        tried = best.without(numbers)
        for number in numbers:
            tried = tried.partial_sources(world.live[number], splits[number], now, chosen)
        if (tried := tried.weighed()).cost.joules < best.cost.joules:
            best = tried
    return best.world, best.feedings


def find_cheaper(world: World, now: int, by: float) -> PlanComparison | None:
    """How motes would use less, by such a share, if queries were fed in other ways; None if they would not."""
    splits = _splits(world, world.live)
    if not splits:
        return None
    best = begin = _Candidate(world, {}).weighed()
    for tried in _at_once(begin, splits, now):
        best = tried if tried.cost.joules < (1 - by) * best.cost.joules else best
    for number in splits:
        tried = best.without([number]).partial_sources(best.world.live[number], splits[number], now)
        if tried.folds(number) != best.folds(number) and tried.weighed().cost.joules < (1 - by) * best.cost.joules:
            best = tried.weighed()
    changed = {n: feeding for n, feeding in best.feedings.items() if best.folds(n) != begin.folds(n)}
    return PlanComparison(changed, begin.cost, best.cost) if changed else None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What would run, with what was decided for the queries that would be fed in another way than they are."""

    world: World
    feedings: Mapping[int, AggregatePlacement]
    cost: RunningCost | None = None

    def without(self, numbers: Collection[int]) -> "_Candidate":
        live = {number: query for number, query in self.world.live.items() if number not in numbers}
        return _Candidate(replace(self.world, live=live), self.feedings)

    def partial_sources(
        self, query: QueryRecord, found: PushdownPlan, now: int, chosen: tuple | None = None
    ) -> "_Candidate":
        feeding = place_aggregates(query, found, self.world, now, chosen)
        world = self.world.with_folds(feeding.begin).with_query(feeding.query)
        return _Candidate(world, {**self.feedings, query.number: feeding})

    def weighed(self) -> "_Candidate":
        return replace(self, cost=RunningCost.of(self.world))

    def folds(self, number: int) -> list:
        return [each.fold for each in self.world.live[number].partial_sources]


def _at_once(begin: _Candidate, splits: Mapping[int, PushdownPlan], now: int) -> Iterator[_Candidate]:
    """All that can be exchanged in another way; there is none for a query alone that is not tried by itself."""
    for chosen in ((), None) if len(splits) > 1 else ():
        way = begin.without(splits)
        for number, found in splits.items():
            way = way.partial_sources(begin.world.live[number], found, now, chosen)
        yield way.weighed()


def _splits(world: World, numbers: Collection[int]) -> dict[int, PushdownPlan]:
    """What motes might do for those of the queries that have aggregates for them, and may be fed in another way from any window on.

    The widest first: a fold that keeps much feeds who wants less of the same, and not the other way round.
    """
    found: dict[int, PushdownPlan] = {}
    if world.deployment is None or world.moves is not PushdownPolicy.PLANNED:
        return found
    for number in numbers:
        query = world.live[number]
        if not query.needs or query.migration is not None or query.plan.options.lasting is not None:
            continue
        if isinstance(root := query.plan.root, StreamNode) or any(
            isinstance(node, NOT_MIGRATABLE) for node in walk(root)
        ):
            continue
        split = split_plan(query.plan, rewrite(query.plan)[0].root, world)
        if split.fold_candidates:
            found[number] = split
    return dict(sorted(found.items(), key=lambda each: -max(len(feed.fold.states) for feed in each[1].fold_candidates)))

"""Migration: running queries change to a clearly cheaper plan without a gap.

Either motes fold a query's aggregates, or they deliver its readings and the station folds them. During a change motes run both
plans, so no reading is missing and none counts twice:

    old plan   ════════════════════════════╤═ old windows ═╡
    new plan          ╞════ not used ══════╧═ new windows ═╪═══════════▶
                    start                switch           end

* start: motes get both plans. The query notes `complete_from`, the tick from which on all of them run the new plan.
* switch: no new window reaches back beyond `complete_from`. Windows from now on come from the new plan.
* end: the last readings for the old windows have had time to arrive. The old plan stops.

Both plans give the same answers, so users do not notice a migration.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from basestation.algebra.node import PlanNode, walk
from basestation.algebra.window import TimeWindow
from basestation.controller.agenda import transit_ticks
from basestation.controller.aggregate_placement import AggregatePlacement, place_aggregates
from basestation.controller.dispatch import dispatch, find_reporting_starts
from basestation.controller.lifetime import without_lifetime
from basestation.controller.network_plan import INFEASIBLE, PlanCache
from basestation.controller.plan_review import PlanReview
from basestation.controller.query_lifecycle import Migration, QueryRecord
from basestation.controller.reoptimization import PlanComparison, find_cheaper
from basestation.controller.requirements import find_renewed_extents, split_plan
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.planner.rewriter import rewrite
from innet.placement.placement_search import FoldDecision

REVIEW_ROUNDS = 60
"""The placement of running queries is re-optimized after this many rounds, by the statistics of these rounds."""
MIN_SAVING = 0.03
"""A plan is clearly cheaper if all motes together use this share less; without a margin queries would migrate to and fro."""
QUIET_ROUNDS = 5
"""It is also re-optimized this many rounds after the last query started or ended, because each may change what is cheapest."""


@dataclass(frozen=True, slots=True)
class MigrationEvent:
    """The start of a migration at a tick, or, if `is_switch`, the switch to the new plan."""

    tick: int
    query: int
    is_switch: bool
    reason: str


MigrationListener: TypeAlias = Callable[[MigrationEvent], object]


def start_migrations(
    world: World, engine: Engine, plans: PlanCache, notify: MigrationListener, review: PlanReview | None = None
) -> World:
    """The world after migrations started to plans that are clearly cheaper by the statistics of the world, or by a review of it."""
    found = find_cheaper(world, plans, MIN_SAVING) if review is None else review.find()
    if found is not None:
        for placement in found.placements.values():
            world = _start_migration(placement, found, world, engine, plans, notify)
    return world


def advance_migrations(
    world: World, engine: Engine, settled: Collection[int], plans: PlanCache, notify: MigrationListener
) -> World:
    """The world after each migration took its next step if it can. `settled` are the motes with their desired state."""
    for query in tuple(world.live.values()):
        if query.migration is not None and query.needs:
            world = _advance(query, query.migration, world, engine, settled, plans, notify)
    return world


def _start_migration(
    placement: AggregatePlacement,
    found: PlanComparison,
    world: World,
    engine: Engine,
    plans: PlanCache,
    notify: MigrationListener,
) -> World:
    """The world in which motes run both plans of a query; unchanged if they have no room or no time for both."""
    query = world.live[placement.query.number]
    folds = [source.fold for source in placement.query.partial_sources]
    pushdown = split_plan(query.plan, rewrite(query.plan)[0].root, world)
    try:
        beside = place_aggregates(query, pushdown, world, plans, folds)  # beside what runs for the query now
        changed, variant = _plan_both(query, beside, world, plans)
    except INFEASIBLE:
        return world
    engine.start_variant(
        query.number,
        without_lifetime(query.plan, world),
        variant.partial_sources,
        beside.new_folds,
        variant.reports_from,
        variant.read_columns,
    )
    notify(MigrationEvent(plans.now, query.number, False, _describe_saving(placement.query, query, found)))
    return changed


def _describe_saving(new: QueryRecord, old: QueryRecord, found: PlanComparison) -> str:
    """The usage of the network with the old and the new plan; all queries that migrate at the same time are in it."""
    is_folded = bool(new.partial_sources)
    first, second = (found.then, found.now) if is_folded else (found.now, found.then)
    fold = (new.partial_sources or old.partial_sources)[0].fold
    joules, messages = (first.joules, second.joules), (first.messages, second.messages)
    return FoldDecision(fold, is_folded, joules, messages).reason


def _plan_both(
    query: QueryRecord, beside: AggregatePlacement, world: World, plans: PlanCache
) -> tuple[World, QueryRecord]:
    """The world in which motes run both plans, and the query as the engine runs it by the new plan."""
    both = replace(query, migration=Migration(beside.query.deliveries, beside.query.partial_sources))
    renewed = find_renewed_extents(beside.query, world)
    changed = dispatch(world.with_folds(beside.begin).with_query(both), plans, renewed)
    starts = find_reporting_starts(beside.query, world, changed, plans.now)
    variant = replace(beside.query, reports_from=starts)
    merged = {**query.reports_from}
    for extent, tick in starts.items():
        merged[extent] = max(tick, merged.get(extent, tick))
    return changed.with_query(replace(both, reports_from=merged)), variant


def _advance(
    query: QueryRecord,
    migration: Migration,
    world: World,
    engine: Engine,
    settled: Collection[int],
    plans: PlanCache,
    notify: MigrationListener,
) -> World:
    now = plans.now
    if migration.switched_at is not None:
        if now <= migration.switched_at + transit_ticks(query, world):
            return world
        return dispatch(world.with_query(replace(query, migration=None)), plans)
    if migration.complete_from is None:
        reachable = (world.desired.keys() & world.tree.parent.keys()) - world.silent
        if not reachable <= set(settled) or (world.agenda is not None and now < world.agenda.begin):
            return world
        complete_from = now + max(need.every for need in query.needs)
        return world.with_query(replace(query, migration=replace(migration, complete_from=complete_from)))
    if now - _window_reach(query.plan.root) < migration.complete_from:
        return world
    engine.switch_variant(query.number)
    notify(MigrationEvent(now, query.number, True, f"windows from tick {now} on"))
    old = Migration(query.deliveries, query.partial_sources, switched_at=now - 1)
    new_sources = migration.partial_sources
    return world.with_query(replace(query, deliveries=migration.deliveries, partial_sources=new_sources, migration=old))


def _window_reach(root: PlanNode) -> int:
    """The most ticks by which a window of the plan begins before its own tick."""
    return max(-node.begin for node in walk(root) if isinstance(node, TimeWindow))

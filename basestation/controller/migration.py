"""Exchanging: what was decided for queries that run is weighed again by what has come; what is clearly cheaper takes its place.

A query's aggregates are folded on motes, or its readings are delivered and folded here. To change from one to the other motes
do both for a while, so nothing is missing and nothing is there twice:

    ─begin─▶ both ways, the new one unheard ─all motes do it, and a window has nothing older─▶ windows from now on are the new
    one's, those before it the old one's ─the last of these has had time to come─▶ the new way alone

Answers are the same in either way, so none of this shows in them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from basestation.algebra.node import PlanNode, walk
from basestation.algebra.window import TimeWindow
from basestation.controller.agenda import transit_ticks
from basestation.controller.aggregate_placement import AggregatePlacement, place_aggregates
from basestation.controller.dispatch import dispatch, find_reporting_starts
from basestation.controller.forecast import INFEASIBLE
from basestation.controller.lifetime import without_lifetime
from basestation.controller.query_lifecycle import Migration, QueryRecord
from basestation.controller.reoptimization import PlanComparison, find_cheaper
from basestation.controller.requirements import find_renewed_extents, split_plan
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.planner.rewriter import rewrite
from innet.placement.placement_search import FoldDecision

REVIEW_ROUNDS = 60
"""After so many rounds decisions are weighed again, by what has come in them."""
MIN_SAVING = 0.03
"""Another way is clearly cheaper if all motes together use so much less with it; or one would follow the other for ever."""
QUIET_ROUNDS = 5
"""So many rounds after a query came or went, too, where no other did since: what was decided without it may not hold with it."""


@dataclass(frozen=True, slots=True)
class MigrationEvent:
    """At a tick it was decided to feed a query in another way, or, when it is `handed` over, that began to be heard."""

    tick: int
    query: int
    switched_at: bool
    reason: str


MigrationListener = Callable[[MigrationEvent], object]


def start_migrations(world: World, engine: Engine, tell: MigrationListener) -> World:
    """After what was decided for each query that runs has been weighed by the statistics of the world."""
    found = find_cheaper(world, engine.clock + 1, MIN_SAVING)
    for feeding in found.feedings.values() if found else ():
        world = _start_migration(feeding, found, world, engine, tell)
    return world


def advance_migrations(world: World, engine: Engine, settled: Collection[int], tell: MigrationListener) -> World:
    """After exchanges that have begun went on as far as they can; `settled` are the motes that have what they should."""
    for query in tuple(world.live.values()):
        if query.needs and query.migration is not None:
            world = _advance(query, query.migration, world, engine, settled, tell)
    return world


# --- beginning -------------------------------------------------------------------------------------------------------


def _start_migration(
    feeding: AggregatePlacement, found: PlanComparison, world: World, engine: Engine, tell: MigrationListener
) -> World:
    """After motes were told to do the other way for a query, too, where they have room and time for both."""
    now, query = engine.clock + 1, world.live[feeding.query.number]
    folds = [each.fold for each in feeding.query.partial_sources]
    root = rewrite(query.plan)[0].root
    try:
        coming = place_aggregates(
            query, split_plan(query.plan, root, world), world, now, folds
        )  # beside what runs for it now
        changed, follows = _plan_both(query, coming, world, now)
    except INFEASIBLE:  # motes have no room, or no time, for both
        return world
    begin = {number: placed.operator for number, placed in coming.begin.items()}
    engine.start_variant(
        query.number,
        without_lifetime(query.plan, world),
        follows.partial_sources,
        begin,
        follows.reports_from,
        follows.read_columns,
    )
    tell(MigrationEvent(now, query.number, False, _reason(feeding.query, query, found)))
    return changed


def _reason(coming: QueryRecord, query: QueryRecord, found: PlanComparison) -> str:
    """With the figures of the network if it is fed in one way and in the other, and whoever else changes with it."""
    runs = bool(coming.partial_sources)
    ways = (found.then, found.now) if runs else (found.now, found.then)
    joules, messages = zip(*((way.joules, way.messages) for way in ways), strict=True)
    return FoldDecision((coming.partial_sources or query.partial_sources)[0].fold, runs, joules, messages).reason


def _plan_both(query: QueryRecord, coming: AggregatePlacement, world: World, now: int) -> tuple[World, QueryRecord]:
    """The world in which motes do both, and the query as it follows."""
    both = replace(query, migration=Migration(coming.query.deliveries, coming.query.partial_sources))
    changed = dispatch(world.with_folds(coming.begin).with_query(both), now, find_renewed_extents(coming.query, world))
    follows = replace(coming.query, reports_from=find_reporting_starts(coming.query, world, changed, now))
    known = dict(query.reports_from)
    for extent, tick in follows.reports_from.items():
        known[extent] = max(tick, known.get(extent, tick))
    return changed.with_query(replace(both, reports_from=known)), follows


# --- going on --------------------------------------------------------------------------------------------------------


def _advance(
    query: QueryRecord,
    migration: Migration,
    world: World,
    engine: Engine,
    settled: Collection[int],
    tell: MigrationListener,
) -> World:
    now = engine.clock + 1
    if migration.switched_at is not None:
        if now <= migration.switched_at + transit_ticks(query, world):
            return world
        return dispatch(world.with_query(replace(query, migration=None)), now)
    if migration.complete_from is None:
        listening = (world.desired.keys() & world.tree.parent.keys()) - world.silent
        if not listening <= set(settled) or (world.agenda is not None and now < world.agenda.begin):
            return world
        migration = replace(migration, complete_from=now + max(need.every for need in query.needs))
        return world.with_query(replace(query, migration=migration))
    if now - _reach(query.plan.root) < migration.complete_from:
        return world
    engine.switch_variant(query.number)
    tell(MigrationEvent(now, query.number, True, f"windows from tick {now} on"))
    was = Migration(query.deliveries, query.partial_sources, switched_at=engine.clock)
    return world.with_query(
        replace(query, deliveries=migration.deliveries, partial_sources=migration.partial_sources, migration=was)
    )


def _reach(root: PlanNode) -> int:
    """How many ticks before its own a window begins, at most."""
    return max(-node.begin for node in walk(root) if isinstance(node, TimeWindow))

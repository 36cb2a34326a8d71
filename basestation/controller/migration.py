"""Exchanging: what was decided for queries that run is weighed again by what has come; what is clearly cheaper takes its place.

A query's aggregates are folded on motes, or its readings are delivered and folded here. To change from one to the other motes
do both for a while, so nothing is missing and nothing is there twice:

    ─begin─▶ both ways, the new one unheard ─all motes do it, and a window has nothing older─▶ windows from now on are the new
    one's, those before it the old one's ─the last of these has had time to come─▶ the new way alone

Answers are the same in either way, so none of this shows in them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from basestation.algebra.node import Node, walk
from basestation.algebra.window import TimeWindow
from basestation.controller.agenda import under_way
from basestation.controller.aggregate_placement import Feeding, fed
from basestation.controller.dispatch import commanded, reporting
from basestation.controller.forecast import CANNOT
from basestation.controller.lifetime import decided
from basestation.controller.query_lifecycle import Exchange, Query
from basestation.controller.reoptimization import Weighing, cheaper
from basestation.controller.requirements import inside, renewed
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.planner.rewriter import rewrite
from innet.placement.placement_search import Weighed

REVIEWED = 60
"""After so many rounds decisions are weighed again, by what has come in them."""
CLEARLY = 0.03
"""Another way is clearly cheaper if all motes together use so much less with it; or one would follow the other for ever."""
CALM = 5
"""So many rounds after a query came or went, too, where no other did since: what was decided without it may not hold with it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """At a tick it was decided to feed a query in another way, or, when it is `handed` over, that began to be heard."""

    tick: int
    query: int
    handed: bool
    reason: str


Told = Callable[[Decided], object]


def reviewed(world: World, engine: Engine, tell: Told) -> World:
    """After what was decided for each query that runs has been weighed by the statistics of the world."""
    found = cheaper(world, engine.clock + 1, CLEARLY)
    for feeding in found.feedings.values() if found else ():
        world = _exchanged(feeding, found, world, engine, tell)
    return world


def gone_on(world: World, engine: Engine, settled: Collection[int], tell: Told) -> World:
    """After exchanges that have begun went on as far as they can; `settled` are the motes that have what they should."""
    for query in tuple(world.live.values()):
        if query.needs and query.exchange is not None:
            world = _gone_on(query, query.exchange, world, engine, settled, tell)
    return world


# --- beginning -------------------------------------------------------------------------------------------------------


def _exchanged(feeding: Feeding, found: Weighing, world: World, engine: Engine, tell: Told) -> World:
    """After motes were told to do the other way for a query, too, where they have room and time for both."""
    now, query = engine.clock + 1, world.live[feeding.query.number]
    folds = [each.fold for each in feeding.query.fed]
    root = rewrite(query.plan)[0].root
    try:
        coming = fed(query, inside(query.plan, root, world), world, now, folds)  # beside what runs for it now
        changed, follows = _begun(query, coming, world, now)
    except CANNOT:  # motes have no room, or no time, for both
        return world
    begin = {number: placed.operator for number, placed in coming.begin.items()}
    engine.follow(query.number, decided(query.plan, world), follows.fed, begin, follows.reports_from, follows.reads)
    tell(Decided(now, query.number, False, _reason(feeding.query, query, found)))
    return changed


def _reason(coming: Query, query: Query, found: Weighing) -> str:
    """With the figures of the network if it is fed in one way and in the other, and whoever else changes with it."""
    runs = bool(coming.fed)
    ways = (found.then, found.now) if runs else (found.now, found.then)
    joules, messages = zip(*((way.joules, way.messages) for way in ways), strict=True)
    return Weighed((coming.fed or query.fed)[0].fold, runs, joules, messages).reason


def _begun(query: Query, coming: Feeding, world: World, now: int) -> tuple[World, Query]:
    """The world in which motes do both, and the query as it follows."""
    both = replace(query, exchange=Exchange(coming.query.inside, coming.query.fed))
    changed = commanded(world.with_folds(coming.begin).with_query(both), now, renewed(coming.query, world))
    follows = replace(coming.query, reports_from=reporting(coming.query, world, changed, now))
    known = dict(query.reports_from)
    for extent, tick in follows.reports_from.items():
        known[extent] = max(tick, known.get(extent, tick))
    return changed.with_query(replace(both, reports_from=known)), follows


# --- going on --------------------------------------------------------------------------------------------------------


def _gone_on(
    query: Query, exchange: Exchange, world: World, engine: Engine, settled: Collection[int], tell: Told
) -> World:
    now = engine.clock + 1
    if exchange.handed is not None:
        if now <= exchange.handed + under_way(query, world):
            return world
        return commanded(world.with_query(replace(query, exchange=None)), now)
    if exchange.whole is None:
        listening = (world.desired.keys() & world.tree.parent.keys()) - world.silent
        if not listening <= set(settled) or (world.agenda is not None and now < world.agenda.begin):
            return world
        exchange = replace(exchange, whole=now + max(need.every for need in query.needs))
        return world.with_query(replace(query, exchange=exchange))
    if now - _reach(query.plan.root) < exchange.whole:
        return world
    engine.hand_over(query.number)
    tell(Decided(now, query.number, True, f"windows from tick {now} on"))
    was = Exchange(query.inside, query.fed, handed=engine.clock)
    return world.with_query(replace(query, inside=exchange.inside, fed=exchange.fed, exchange=was))


def _reach(root: Node) -> int:
    """How many ticks before its own a window begins, at most."""
    return max(-node.begin for node in walk(root) if isinstance(node, TimeWindow))

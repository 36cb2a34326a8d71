"""Exchanging: what was decided for queries that run is weighed again by what has come; what is clearly cheaper takes its place.

A query's aggregates are folded on motes, or its readings are delivered and folded here. To change from one to the other motes
do both for a while, so nothing is missing and nothing is there twice:

    ─begin─▶ both ways, the new one unheard ─all motes do it, and a window has nothing older─▶ windows from now on are the new
    one's, those before it the old one's ─the last of these has had time to come─▶ the new way alone

Answers are the same in either way, so none of this shows in them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from basestation.agendas import under_way
from basestation.algebra.converters import Converter
from basestation.algebra.node import Node, StreamNode, walk
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.commanding import commanded, reporting
from basestation.execution.engine import Engine
from basestation.feeding import Feeding, fed
from basestation.lasting import decided
from basestation.outlook import CANNOT, outlook
from basestation.planner.moves import Moves
from basestation.planner.rewrite import rewrite
from basestation.queries import Exchange, Query
from basestation.wanted import inside, renewed
from basestation.world import World
from innet.placement.place import Weighed

REVIEWED = 60
"""After so many rounds decisions are weighed again, by what has come in them."""
CLEARLY = 0.03
"""Another choice is clearly cheaper if all motes together use so much less with it; or one would follow the other for ever."""
ANOTHER = Converter | StreamUnion | LandmarkWindow | RowWindow | LoopWindow | Scan | Once
"""What begins with a query, or reads what is not windows of time: a query with any of it stays as it began."""


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
    if world.deployment is None or world.moves is not Moves.PLANNED:
        return world
    for query in tuple(world.live.values()):
        if query.needs and query.exchange is None and query.plan.asked.lasting is None:
            world = _reviewed(query, world, engine, tell)
    return world


def gone_on(world: World, engine: Engine, settled: Collection[int], tell: Told) -> World:
    """After exchanges that have begun went on as far as they can; `settled` are the motes that have what they should."""
    for query in tuple(world.live.values()):
        if query.needs and query.exchange is not None:
            world = _gone_on(query, query.exchange, world, engine, settled, tell)
    return world


# --- weighing --------------------------------------------------------------------------------------------------------


def _reviewed(query: Query, world: World, engine: Engine, tell: Told) -> World:
    now = engine.clock + 1
    if isinstance(query.plan.root, StreamNode) or any(isinstance(node, ANOTHER) for node in walk(query.plan.root)):
        return world
    without = replace(world, live={n: each for n, each in world.live.items() if n != query.number})
    found = inside(query.plan, rewrite(query.plan)[0].root, world)
    asked = Query(query.number, query.text, query.plan)
    best = fed(asked, found, without, now)
    folds = [each.fold for each in best.query.fed]
    if best.refused or folds == [each.fold for each in query.fed]:
        return world
    try:
        weighed = _weighed(query, best, without.with_folds(best.begin))
        if weighed is None:
            return world
        coming = fed(asked, found, world, now, folds)  # beside what runs for it now
        changed, follows = _begun(query, coming, world, now)
    except CANNOT:  # motes have no room, or no time, for both
        return world
    begin = {number: placed.operator for number, placed in coming.begin.items()}
    engine.follow(query.number, decided(query.plan, world), follows.fed, begin, follows.reports_from, follows.reads)
    tell(Decided(now, query.number, False, weighed.reason))
    return changed


def _weighed(query: Query, best: Feeding, world: World) -> Weighed | None:
    """The figures of all motes, if they use clearly less with another way; None if not."""
    figures = []
    for each in (replace(best.query, state=query.state), query):
        found = outlook(world.with_query(each))
        prediction = found.predicted()
        hours = prediction.epoch_ms / 3_600_000
        joules = sum(use.total for use in prediction.motes.values())
        figures.append((joules / hours, prediction.total.attempts / hours))
    (less, _), (now, _) = figures
    if less > (1 - CLEARLY) * now:
        return None
    runs = bool(best.query.fed)
    joules, messages = zip(*(figures if runs else figures[::-1]), strict=True)
    return Weighed((best.query.fed or query.fed)[0].fold, runs, joules, messages)


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

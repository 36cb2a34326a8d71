"""Feeding: which aggregations of a new query motes fold on the way, and by which folds.

What runs for other queries goes on as it is: motes let go of what they hold in a table that changes. So a fold that keeps
all that is asked for feeds one query more, and otherwise there is another.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from acquisition.schedule_builder import Need
from basestation.controller.agenda import network_of, within_ms
from basestation.controller.query_lifecycle import Query
from basestation.controller.requirements import delivered, processors, reports_from, shared
from basestation.controller.world import World
from basestation.planner.partial_source import Fed
from basestation.planner.pushdown import Feed, Split
from basestation.planner.pushdown_policy import Moves
from innet.errors import PlacementError, ProgramError
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.placement.agenda_scheduler import round_of
from innet.placement.fold_sharing import keeps, place_of
from innet.placement.placement import Placed
from innet.placement.placement_search import Choice, Weighed, arranged, place
from innet.program.compiler import compile_programs


@dataclass(frozen=True, slots=True)
class Feeding:
    """A query with what is folded and delivered for it, by their numbers the folds that begin with it, and what was decided.

    Where a mote has no room for the folds, `refused` says so, and the query's readings are delivered.
    """

    query: Query
    begin: Mapping[int, Placed] = field(default_factory=dict)
    weighed: tuple[Weighed, ...] = ()
    refused: str | None = None


def fed(query: Query, found: Split, world: World, now: int, chosen: Collection[Fold] | None = None) -> Feeding:
    """What a query that comes now is fed by; the folds that run may be `chosen` already."""
    feeds, readings, refused = found.feeds, found.readings, None
    if feeds:
        try:
            placement, folded, weighed = _placed(query, feeds, readings, world, now, chosen)
        except (PlacementError, ProgramError) as error:
            feeds, readings = (), (*readings, *(each for feed in feeds for each in feed.instead))
            refused = str(error)
    if not feeds:
        return Feeding(_asking(query, readings, (), world, now), refused=refused)
    made = tuple(_fed(feed, placement.folds) for feed in folded)
    instead = [each for feed in feeds if feed not in folded for each in feed.instead]
    begin = {p.number: p for p in placement.folds if p.number not in world.running}
    return Feeding(_asking(query, (*readings, *instead), made, world, now), begin, weighed)


def _asking(query: Query, readings: Sequence[Deliver], made: tuple[Fed, ...], world: World, now: int) -> Query:
    """The query with what comes for it, and from when on reports say something about it."""
    query = replace(query, inside=tuple(dict.fromkeys(readings)), fed=made)
    return replace(query, reports_from=reports_from(query, world, now))


def _placed(query: Query, feeds: Sequence[Feed], readings: Sequence[Deliver], world: World, now: int,
            chosen: Collection[Fold] | None):  # fmt: skip
    """(The placement, those of the feeds that are folded in it, what was decided). ProgramError where it does not fit into some mote."""
    live = [each for each in world.live.values() if each.needs]
    asking = replace(query, inside=tuple(readings), fed=tuple(Fed(f.node, f.fold, 0, ()) for f in feeds))
    needs: list[Need] = [need for each in (*live, asking) for need in each.needs]
    schedules = shared(world, now, asking=[asking]).schedules
    network = network_of(world, (*live, asking), needs, schedules)
    choices = tuple(dict.fromkeys(Choice(feed.fold, feed.instead) for feed in feeds))
    others, standing = (*delivered(world), *readings), tuple(world.running.values())
    if world.moves is Moves.EVERYTHING:
        chosen = [choice.fold for choice in choices]
    if chosen is not None:
        running = [number for number, choice in enumerate(choices) if choice.fold in chosen]
        placement = arranged(others, choices, running, network, standing, world.last_fold)
        folded, weighed = [feed for feed in feeds if feed.fold in chosen], ()
    else:
        timed = partial(round_of, world=network, within_ms=within_ms(world, (*live, asking)))
        placement, weighed = place(others, choices, network, standing, world.last_fold, timed)
        folded = [feed for feed in feeds if any(each.runs for each in weighed if each.fold == feed.fold)]
    compile_programs(placement.placed, schedules.values(), processors(world))
    return placement, folded, weighed


def _fed(feed: Feed, folds: Sequence[Placed]) -> Fed:
    held = next(placed for placed in folds if keeps(placed.operator, feed.fold))
    places = (None if at is None else place_of(held.operator, feed.fold.states[at]) for at in feed.sources)
    return Fed(feed.node, feed.fold, held.number, tuple(places))

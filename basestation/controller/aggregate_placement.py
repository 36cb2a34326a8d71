"""Feeding: which aggregations of a new query motes fold on the way, and by which folds.

What runs for other queries goes on as it is: motes let go of what they hold in a table that changes. So a fold that keeps
all that is asked for feeds one query more, and otherwise there is another.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from acquisition.schedule_builder import SamplingNeed
from basestation.controller.agenda import current_placement_problem, delivery_bound_ms
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import find_report_starts, live_deliveries, merge_schedules, mote_processors
from basestation.controller.world import World
from basestation.planner.partial_source import PartialSource
from basestation.planner.pushdown import FoldCandidate, PushdownPlan
from basestation.planner.pushdown_policy import PushdownPolicy
from innet.errors import PlacementError, ProgramError
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.placement.agenda_scheduler import find_round
from innet.placement.fold_sharing import find_state, has_all_states
from innet.placement.placement import PlacedOperator
from innet.placement.placement_search import FoldDecision, FoldOption, build_placement, place
from innet.program.compiler import compile_programs


@dataclass(frozen=True, slots=True)
class AggregatePlacement:
    """A query with what is folded and delivered for it, by their numbers the folds that begin with it, and what was decided.

    Where a mote has no room for the folds, `refused` says so, and the query's readings are delivered.
    """

    query: QueryRecord
    begin: Mapping[int, PlacedOperator] = field(default_factory=dict)
    weighed: tuple[FoldDecision, ...] = ()
    refused: str | None = None


def place_aggregates(
    query: QueryRecord, found: PushdownPlan, world: World, now: int, chosen: Collection[Fold] | None = None
) -> AggregatePlacement:
    """What a query that comes now is fed by; the folds that run may be `chosen` already."""
    feeds, readings, refused = found.fold_candidates, found.readings, None
    if feeds:
        try:
            placement, folded, weighed = _placed(query, feeds, readings, world, now, chosen)
        except (PlacementError, ProgramError) as error:
            feeds, readings = (), (*readings, *(each for feed in feeds for each in feed.unfolded_readings))
            refused = str(error)
    if not feeds:
        return AggregatePlacement(_asking(query, readings, (), world, now), refused=refused)
    made = tuple(_fed(feed, placement.folds) for feed in folded)
    instead = [each for feed in feeds if feed not in folded for each in feed.unfolded_readings]
    begin = {p.number: p for p in placement.folds if p.number not in world.running}
    return AggregatePlacement(_asking(query, (*readings, *instead), made, world, now), begin, weighed)


def _asking(
    query: QueryRecord, readings: Sequence[Deliver], made: tuple[PartialSource, ...], world: World, now: int
) -> QueryRecord:
    """The query with what comes for it, and from when on reports say something about it."""
    query = replace(query, deliveries=tuple(dict.fromkeys(readings)), partial_sources=made)
    return replace(query, reports_from=find_report_starts(query, world, now))


def _placed(query: QueryRecord, fold_candidates: Sequence[FoldCandidate], readings: Sequence[Deliver], world: World, now: int,
            chosen: Collection[Fold] | None):  # fmt: skip
    """(The placement, those of the feeds that are folded in it, what was decided). ProgramError where it does not fit into some mote."""
    live = [each for each in world.live.values() if each.needs]
    asking = replace(
        query,
        deliveries=tuple(readings),
        partial_sources=tuple(PartialSource(f.node, f.fold, 0, ()) for f in fold_candidates),
    )
    needs: list[SamplingNeed] = [need for each in (*live, asking) for need in each.needs]
    schedules = merge_schedules(world, now, asking=[asking]).schedules
    network = current_placement_problem(world, (*live, asking), needs, schedules)
    choices = tuple(dict.fromkeys(FoldOption(feed.fold, feed.unfolded_readings) for feed in fold_candidates))
    others, standing = (*live_deliveries(world), *readings), tuple(world.running.values())
    if world.moves is PushdownPolicy.EVERYTHING:
        chosen = [choice.fold for choice in choices]
    if chosen is not None:
        running = [number for number, choice in enumerate(choices) if choice.fold in chosen]
        placement = build_placement(others, choices, running, network, standing, world.last_fold)
        folded, weighed = [feed for feed in fold_candidates if feed.fold in chosen], ()
    else:
        timed = partial(find_round, world=network, within_ms=delivery_bound_ms(world, (*live, asking)))
        placement, weighed = place(others, choices, network, standing, world.last_fold, timed)
        folded = [feed for feed in fold_candidates if any(each.runs for each in weighed if each.fold == feed.fold)]
    compile_programs(placement.placed, schedules.values(), mote_processors(world))
    return placement, folded, weighed


def _fed(feed: FoldCandidate, folds: Sequence[PlacedOperator]) -> PartialSource:
    held = next(placed for placed in folds if has_all_states(placed.operator, feed.fold))
    places = (None if at is None else find_state(held.operator, feed.fold.states[at]) for at in feed.sources)
    return PartialSource(feed.node, feed.fold, held.number, tuple(places))

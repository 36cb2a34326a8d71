"""Wanted: what the live queries together want of motes, and which of their reports speak for all of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from acquisition.batch import Batch
from acquisition.schedule import Sampling, Schedule
from acquisition.schedule_builder import ScheduleSet, build_schedules
from basestation.algebra.node import PlanNode
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.world import World
from basestation.planner.lowering import deliver_everything
from basestation.planner.plan import Plan
from basestation.planner.pushdown import PushdownPlan, plan_pushdown, raw_ranges
from basestation.planner.pushdown_policy import PushdownPolicy
from innet.costs.hardware import Processor, load_hardware
from innet.errors import ProgramError
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver
from innet.placement.load_model import sites_below
from innet.placement.placement import (
    Placeable,
    PlacedOperator,
    conditions,
    extents_of,
    find_required_sites,
    find_sending_sites,
    place_at_all_sites,
    select_sites,
)
from innet.placement.slot_rounds import longest_pause
from innet.program.compiler import compile_programs
from innet.program.mote_program import MoteProgram

MISSED_EPOCHS = 6
"""So many epochs may be late or lost before somebody is taken to be silent."""


def split_plan(plan: Plan, root: PlanNode, world: World) -> PushdownPlan:
    """What of a query may run on motes; nothing but sampling where their sensors are not known, or nothing is to move.

    What its conditions exclude all sites from runs nowhere, and nobody samples for it.
    """
    if world.deployment is None or world.moves is PushdownPolicy.NOTHING:
        return PushdownPlan(deliver_everything(root), (), ())
    found = plan_pushdown(plan, root, raw_ranges(world.deployment, world.catalog), mtu=world.deployment.mtu)
    readings = tuple(each for each in found.readings if _somewhere(each, world))
    feeds = tuple(feed for feed in found.fold_candidates if _somewhere(feed.fold, world))
    return replace(found, readings=readings, fold_candidates=feeds)


def _somewhere(operator: Placeable, world: World) -> bool:
    """Whether there is a site that its conditions do not exclude."""
    sites = {name: world.catalog.find(name).sites or () for name in extents_of(operator)}
    return any(find_required_sites([operator], sites).values())


def find_renewed_extents(query: QueryRecord, world: World) -> set[str]:
    """The extents of which a query wants readings that motes may filter so far, for queries that run or have gone."""
    wanted = set(live_deliveries(world))
    return {
        new.extent for new in query.deliveries if new not in wanted and not any(_covers(each, new) for each in wanted)
    }


def find_report_starts(query: QueryRecord, world: World, now: int) -> dict[str, int]:
    """By extent, from which tick on what motes report as filtered does not pass a query that comes now either.

    It is that of a query that wants the same, or all, for as long as it did; else they have not asked its conditions yet.
    """
    found: dict[str, int] = {}
    for new in query.deliveries:
        alike = [
            other.reports_from[new.extent]
            for other in world.live.values()
            if any(each == new or _covers(each, new) for each in other.deliveries)
        ]
        found[new.extent] = max(min(alike, default=now), found.get(new.extent, 0))
    return found


def select_valid_reports(sampling: Sampling, reports: Batch, world: World) -> Batch:
    """Those of a sampling's reports that speak for all queries there are now.

    A mote that has not heard of a new query yet filters by the conditions of those before; so a query that wants what
    was filtered renews the sampling, and from the new one's first tick on the old one's reports count no more, whenever they come.
    """
    samplings = list(world.scheduled.samplings.values())
    later = samplings[samplings.index(sampling) + 1 :]
    ends = [each.epochs.start for each in later if each.extent == sampling.extent]
    return reports.take(reports.tick < min(ends)) if ends else reports


def place_all(world: World) -> tuple[PlacedOperator, ...]:
    """Everything that is to run on motes, and where. A mote that has begun to merge goes on as long as the fold runs."""
    wanted = dict.fromkeys(live_deliveries(world))
    readings = (_placed(operator, world.catalog.find(operator.extent).sites) for operator in wanted)
    return *readings, *(_reaching(fold, world) for fold in world.running.values())


def merge_schedules(
    world: World, tick: int, anew: Collection[str] = (), asking: Iterable[QueryRecord] = ()
) -> ScheduleSet:
    """One schedule per site for all live queries, and those that are asking. Nobody samples what all of them exclude."""
    queries = [query for query in (*world.live.values(), *asking) if query.needs]
    needs = [need for query in queries for need in query.needs]
    operators = [
        each for query in queries for each in (*query.all_deliveries, *(fed.fold for fed in query.all_partial_sources))
    ]
    sites = {extent.name: extent.sites or () for extent in world.catalog}  # where nobody lists them, sharing says so
    sent = find_sending_sites([each for query in queries for each in query.all_deliveries], sites)
    sent_by = {need.extent: sent.get(need.extent, {}) for need in needs}
    return build_schedules(
        needs, world.catalog, world.scheduled, tick, anew, find_required_sites(operators, sites), sent_by
    )


def compile_all(
    running: Sequence[PlacedOperator], world: World, scheduled: ScheduleSet
) -> tuple[Sequence[PlacedOperator], list[MoteProgram]]:
    """What of it is run, and the programs of all motes; where one has no room, none asks any condition of what it delivers.

    ProgramError where one has no room for what is left.
    """
    schedules = tuple(scheduled.schedules.values())
    try:
        return _fitting(running, world, schedules)
    except ProgramError:
        folds = [each for each in running if each.number]
        acquires = [acquire for operator in live_deliveries(world) for acquire in find_acquires(operator).values()]
        everything = [Deliver(acquire, acquire.extent, acquire.sampled) for acquire in acquires]
        sites = {operator.extent: world.catalog.find(operator.extent).sites for operator in everything}
        return _fitting([*place_at_all_sites(everything, sites), *folds], world, schedules)


def _fitting(
    running: Sequence[PlacedOperator], world: World, schedules: Sequence[Schedule]
) -> tuple[Sequence[PlacedOperator], list[MoteProgram]]:
    """All of it; a mote that has come to be on the way of a fold, and has no room for it, passes on what it does not merge."""
    while True:
        try:
            return running, compile_programs(running, schedules, mote_processors(world))
        except ProgramError as error:
            new = [each for each in running if each.number and _is_new(error.site, each, world)]
            if not new:
                raise
            largest = max(new, key=lambda each: each.room * each.shape.group_bytes)
            less = replace(largest, merging=tuple(site for site in largest.merging if site != error.site))
            running = [less if each is largest else each for each in running]


def _is_new(site: int | None, fold: PlacedOperator, world: World) -> bool:
    """Whether a site is to merge that has not been told to. One that has would drop what comes of a fold that it lets go of."""
    return site in fold.merging and site not in world.folds[fold.number].merging


def mote_processors(world: World) -> dict[int, Processor]:
    """What each mote computes with, as far as that is known."""
    motes = {} if world.deployment is None else world.deployment.motes
    return {number: load_hardware(mote.hardware).processor for number, mote in motes.items()}


def live_deliveries(world: World) -> list[Deliver]:
    """What live queries want to have here."""
    return [operator for query in world.live.values() for operator in query.all_deliveries]


def find_silence_limits(world: World) -> dict[int, int]:
    """For how many ticks a site may say nothing before it is silent, by what it is to deliver; of a fold one partial may be lost."""
    found: dict[int, int] = {}
    for each in place_all(world):
        pause = longest_pause(each.operator)
        most = (2 * pause if each.number else pause) + MISSED_EPOCHS * _interval(each.operator)
        for site in _told_of(each, world):
            found[site] = min(most, found.get(site, most))
    return found


def _told_of(each: PlacedOperator, world: World) -> Iterable[int]:
    """The sites of which it is told that something came. Where partials count who is in them, who hands them over, and no other."""
    if not each.number or each.shape.has_bitmap:
        return each.sites
    return (site for site in each.sites if world.tree.parent.get(site) in world.tree.roots)


def _covers(all_of: Deliver, operator: Deliver) -> bool:
    """Whether one has every reading delivered that another might want."""
    same = all_of.extent == operator.extent and not conditions(all_of)
    return same and _interval(operator) % _interval(all_of) == 0


def _placed(operator: Deliver, sites: tuple[int, ...]) -> PlacedOperator:
    """At the sites that its conditions do not exclude. What one extent's conditions exclude is still due of another (12.3)."""
    return PlacedOperator(operator, select_sites(operator, sites) if len(extents_of(operator)) == 1 else sites)


def _reaching(fold: PlacedOperator, world: World) -> PlacedOperator:
    """A fold that also merges at the motes that its partials pass through now."""
    passing = sites_below(world.tree, fold.sites).keys() - {*fold.sites, *fold.merging}
    return replace(fold, merging=(*fold.merging, *sorted(passing))) if passing else fold


def _interval(operator: Placeable) -> int:
    return find_acquires(operator)[operator.extent].interval

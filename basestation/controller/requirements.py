"""Requirements: what the live queries together require of motes: operators, sites, samplings, schedules and programs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from acquisition.batch import Batch
from acquisition.schedule import Sampling
from basestation.algebra.node import PlanNode
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.world import World
from basestation.planner.lowering import deliver_everything
from basestation.planner.plan import Plan
from basestation.planner.pushdown import PushdownPlan, plan_pushdown
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.raw_ranges import raw_ranges
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
    place_at_all_sites,
    select_sites,
)
from innet.placement.slot_rounds import longest_pause
from innet.program.mote_program import MoteProgram

MISSED_EPOCHS = 6
"""A site counts as silent after this many epochs late or lost."""

Compile: TypeAlias = Callable[[Sequence[PlacedOperator]], list[MoteProgram]]
"""Compiles placed operators to programs; ProgramError where a mote has no room."""


# --- what one query requires -----------------------------------------------------------------------------------------


def split_plan(plan: Plan, root: PlanNode, world: World) -> PushdownPlan:
    """Find the part of a plan that motes can run.

    Without a deployment, or if nothing is to be pushed down, that is sampling alone. An operator whose conditions exclude
    every site runs nowhere, and no mote samples for it.
    """
    if world.deployment is None or world.pushdown is PushdownPolicy.NOTHING:
        return PushdownPlan(deliver_everything(root), (), ())
    ranges = raw_ranges(world.deployment, world.catalog)
    whole = frozenset(world.catalog.extents) if plan.options.whole_readings else frozenset[str]()
    found = plan_pushdown(plan, root, ranges, whole, mtu=world.deployment.mtu)
    readings = tuple(delivery for delivery in found.readings if _runs_somewhere(delivery, world))
    candidates = tuple(candidate for candidate in found.fold_candidates if _runs_somewhere(candidate.fold, world))
    return replace(found, readings=readings, fold_candidates=candidates)


def _runs_somewhere(operator: Placeable, world: World) -> bool:
    sites = {name: world.catalog.extents[name].sites or () for name in extents_of(operator)}
    return any(find_required_sites([operator], sites).values())


def find_renewed_extents(query: QueryRecord, world: World) -> set[str]:
    """The extents of which a query needs readings that motes may filter out for the queries that run so far."""
    delivered = set(live_deliveries(world))
    return {
        new.extent for new in query.deliveries if new not in delivered and not any(_covers(d, new) for d in delivered)
    }


def find_report_starts(query: QueryRecord, world: World, now: int) -> dict[str, int]:
    """By extent, the tick from which on filter reports of motes also hold for a query that is submitted now.

    If a running query has the same conditions, or none, the tick of that query holds; otherwise motes do not test the
    conditions of the new query yet.
    """
    found: dict[str, int] = {}
    for new in query.deliveries:
        same = [
            other.reports_from[new.extent]
            for other in world.live.values()
            if any(delivery == new or _covers(delivery, new) for delivery in other.deliveries)
        ]
        found[new.extent] = max(min(same, default=now), found.get(new.extent, 0))
    return found


def _covers(broad: Deliver, delivery: Deliver) -> bool:
    """Whether one delivery has every reading that another may need."""
    same = broad.extent == delivery.extent and not conditions(broad)
    return same and _interval(delivery) % _interval(broad) == 0


# --- what all of them require ----------------------------------------------------------------------------------------


def live_deliveries(world: World) -> list[Deliver]:
    """The deliveries of all live queries."""
    return [operator for query in world.live.values() for operator in query.all_deliveries]


def place_all(world: World) -> tuple[PlacedOperator, ...]:
    """Place everything that runs on motes. A mote that has begun to merge a fold goes on as long as the fold runs."""
    deliveries = dict.fromkeys(live_deliveries(world))
    readings = (_place(delivery, world.catalog.extents[delivery.extent].sites or ()) for delivery in deliveries)
    return *readings, *(_extend_merging(fold, world) for fold in world.running.values())


def _place(operator: Deliver, sites: tuple[int, ...]) -> PlacedOperator:
    """Place a delivery at the sites that its conditions admit.

    A reading that one extent's conditions exclude is still due for another extent (semantics 12.3).
    """
    return PlacedOperator(operator, select_sites(operator, sites) if len(extents_of(operator)) == 1 else sites)


def _extend_merging(fold: PlacedOperator, world: World) -> PlacedOperator:
    """Let a fold also merge at the motes that its partials pass in the routing tree of now."""
    passed = sites_below(world.tree, fold.sites).keys() - {*fold.sites, *fold.merging}
    return replace(fold, merging=(*fold.merging, *sorted(passed))) if passed else fold


def compile_all(
    requested: Sequence[PlacedOperator], world: World, compile_placed: Compile
) -> tuple[tuple[PlacedOperator, ...], list[MoteProgram]]:
    """Compile one program per mote; return the operators that run, and the programs.

    Where a mote has no room for the conditions of deliveries, all motes deliver unfiltered readings. ProgramError where a
    mote has no room even for that.
    """
    try:
        return _fit_merging(requested, world, compile_placed)
    except ProgramError:
        folds = [placed for placed in requested if placed.number]
        acquires = [acquire for operator in live_deliveries(world) for acquire in find_acquires(operator).values()]
        everything = [Deliver(acquire, acquire.extent, acquire.sampled) for acquire in acquires]
        sites = {operator.extent: world.catalog.extents[operator.extent].sites or () for operator in everything}
        return _fit_merging([*place_at_all_sites(everything, sites), *folds], world, compile_placed)


def _fit_merging(
    requested: Sequence[PlacedOperator], world: World, compile_placed: Compile
) -> tuple[tuple[PlacedOperator, ...], list[MoteProgram]]:
    """Compile all of it. A mote that is newly on the path of a fold and has no room for it forwards partials unmerged."""
    running = tuple(requested)
    while True:
        try:
            return running, compile_placed(running)
        except ProgramError as error:
            new = [fold for fold in running if fold.number and _is_new(error.site, fold, world)]
            if not new:
                raise
            largest = max(new, key=lambda fold: fold.room * fold.shape.group_bytes)
            smaller = replace(largest, merging=tuple(site for site in largest.merging if site != error.site))
            running = tuple(smaller if fold is largest else fold for fold in running)


def _is_new(site: int | None, fold: PlacedOperator, world: World) -> bool:
    """Whether a site would merge a fold that it does not merge yet; one that already merges would lose partials it holds."""
    return site in fold.merging and site not in world.folds[fold.number].merging


def mote_processors(world: World) -> dict[int, Processor]:
    """The processor of each mote, as far as it is declared."""
    motes = {} if world.deployment is None else world.deployment.motes
    return {number: load_hardware(mote.hardware).processor for number, mote in motes.items()}


# --- what the motes report -------------------------------------------------------------------------------------------


def select_valid_reports(sampling: Sampling, reports: Batch, world: World) -> Batch:
    """Select the filter reports of a sampling that hold for all queries of now.

    A mote that does not know a new query yet filters by the conditions of the earlier ones. So a query that needs filtered
    readings renews the sampling; from the first tick of the new sampling on, reports of the old one do not count.
    """
    samplings = list(world.scheduled.samplings.values())
    later = samplings[samplings.index(sampling) + 1 :]
    ends = [other.epochs.start for other in later if other.extent == sampling.extent]
    return reports.take(reports.tick < min(ends)) if ends else reports


def find_silence_limits(world: World) -> dict[int, int]:
    """By site, the number of ticks without a frame after which it counts as silent. One partial of a fold may get lost."""
    found: dict[int, int] = {}
    for placed in place_all(world):
        pause = longest_pause(placed.operator)
        limit = (2 * pause if placed.number else pause) + MISSED_EPOCHS * _interval(placed.operator)
        for site in _visible_sites(placed, world):
            found[site] = min(limit, found.get(site, limit))
    return found


def find_reporting_waits(world: World) -> dict[int, int]:
    """By site, the number of ticks between two frames of it, with the wait for a late one; None of it may get lost."""
    found: dict[int, int] = {}
    for placed in place_all(world):
        pause = longest_pause(placed.operator)
        wait = (2 * pause if placed.number else pause) + world.catalog.extents[placed.operator.extent].wait
        for site in _visible_sites(placed, world):
            found[site] = min(wait, found.get(site, wait))
    return found


def _visible_sites(placed: PlacedOperator, world: World) -> Iterable[int]:
    """The sites of which frames show that they sent. A partial without a contributor bitmap shows only its last sender."""
    if not placed.number or placed.shape.has_bitmap:
        return placed.sites
    return (site for site in placed.sites if world.tree.parent.get(site) in world.tree.roots)


def _interval(operator: Placeable) -> int:
    """The ticks between two samplings for an operator."""
    return find_acquires(operator)[operator.extent].interval

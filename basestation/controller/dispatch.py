"""Dispatch: the state that each mote should have for all live queries together, and when motes change to it.

A duty-cycled network changes in one tick, when the agenda begins that has room for the change. Until then motes go on as
before, so running queries lose nothing. While an agenda is pending, further changes are deferred.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import acquisition.downlink
import innet.downlink
from basestation.controller.agenda import is_agenda_pending, latest_begin, must_defer, with_agenda
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import find_renewed_extents, find_silence_limits
from basestation.controller.world import World
from gateway.desired_state import DesiredState
from gateway.frame import MoteId


def dispatch(world: World, plans: PlanCache, renewed: Collection[str] = ()) -> World:
    """The world with the desired state of each mote, or with the change deferred while an agenda is pending.

    Call it when queries start, end or migrate, and when the routing tree changed, because motes then send to other parents.
    `renewed` are extents that get new samplings.
    """
    return defer_if_waiting(world, plan_desired_state(world, plans, renewed), plans.now)


def on_agenda_start(world: World, plans: PlanCache) -> World:
    """The world after motes changed to their agenda: a deferred change is dispatched now."""
    return dispatch(world, plans) if world.is_deferred else replace(world, silence_limits=find_silence_limits(world))


def defer_if_waiting(world: World, target: World, now: int) -> World:
    """The target, or the world as it is with the change marked as deferred."""
    return replace(world, is_deferred=True) if must_defer(world, now) else target


def plan_desired_state(world: World, plans: PlanCache, renewed: Collection[str] = ()) -> World:
    """The world with schedules, agenda and programs for all live queries.

    A new agenda brings all changes with it, because the one before has no room for them. An agenda for another tree begins at
    once, and so do changes that were to begin later.
    """
    now, everything = plans.now, [extent.name for extent in world.catalog]
    plan = plans.plan(world, now, everything if world.is_deferred else renewed)
    timed = with_agenda(world, plan, plans)
    begin = timed.agenda.begin if timed.agenda is not None and is_agenda_pending(timed, now) else None
    if begin is not None or is_agenda_pending(world, now):
        plan = plans.plan(world, now if begin is None else begin, everything)
    running, compiled = plan.installation
    programs = innet.downlink.make_images(compiled, world.tree, plan.scheduled.schedules, timed.agenda)
    schedules = acquisition.downlink.encode_images(plan.scheduled.schedules)
    desired = {
        MoteId(site): DesiredState(schedules.get(site), programs.get(site))
        for site in sorted(schedules.keys() | programs.keys())
    }
    folds = {placed.number: placed for placed in running if placed.number}
    limits = find_silence_limits(world)
    limits = limits if begin is None else _longer_limits(world.silence_limits, limits)
    target = replace(
        timed, scheduled=plan.scheduled, demand=plan.demand, desired=desired, silence_limits=limits, is_deferred=False
    )
    return target.with_folds(folds)


def _longer_limits(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Silence limits for a time in which a site may follow the old or the new plan."""
    return {site: max(before[site], after[site]) for site in before.keys() & after.keys()}


def find_reporting_starts(query: QueryRecord, world: World, target: World, now: int) -> dict[str, int]:
    """By extent, the tick from which on filter reports hold for a new query: not before motes test its conditions.

    Where it comes amid a tick, reports of that tick may be here already, of motes that did not know it. `world` is the
    world without the query, `target` the one with its desired state.
    """
    found = dict(query.reports_from)
    for extent in find_renewed_extents(query, world):
        if world.agenda is not None and must_defer(world, now):
            begin = latest_begin(world, query, world.agenda)
        else:
            sampling = target.scheduled.current(extent)
            begin = now if sampling is None else sampling.epochs.start
        found[extent] = max(found[extent], begin, world.unreported_from.get(extent, 0))
    return found

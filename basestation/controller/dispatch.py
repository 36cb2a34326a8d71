"""Commanding: what each mote should have for all live queries together, and when motes begin with it.

Where motes sleep, what they are told begins with the agenda that has room for it, in one tick for all of them: until then they
do what they did, and queries that run lose nothing. Nobody is told a third thing meanwhile.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import acquisition.downlink
import innet.downlink
from basestation.controller.agenda import is_agenda_pending, latest_begin, must_defer, with_agenda
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import (
    compile_all,
    find_renewed_extents,
    find_silence_limits,
    merge_schedules,
    place_all,
)
from basestation.controller.world import World
from gateway.desired_state import DesiredState


def dispatch(world: World, tick: int, anew: Collection[str] = ()) -> World:
    """The world with schedules and programs for all live queries together: what each mote should have.

    To be asked for when queries come, go or are fed in another way, and when the routing tree has changed, for motes are to send
    to their new parents. `anew` are extents that get new samplings. Nobody is told anything while motes are told of an agenda.
    """
    return defer_if_waiting(world, plan_desired_state(world, tick, anew), tick)


def on_agenda_start(world: World, tick: int) -> World:
    """After motes have changed to their agenda: what has waited for that is told."""
    return dispatch(world, tick) if world.is_deferred else replace(world, silence_limits=find_silence_limits(world))


def defer_if_waiting(world: World, ordered: World, tick: int) -> World:
    return replace(world, is_deferred=True) if must_defer(world, tick) else ordered


def plan_desired_state(world: World, tick: int, anew: Collection[str]) -> World:
    """Motes that get another agenda begin with it all that they are told, since the one before has no room for that; and at once
    where it is for another tree, also with what was to begin later."""
    everything = [extent.name for extent in world.catalog]
    scheduled = merge_schedules(world, tick, everything if world.is_deferred else anew)
    running = place_all(world)
    timed = with_agenda(world, running, scheduled.schedules, tick)
    later = is_agenda_pending(timed, tick)
    if later or is_agenda_pending(world, tick):
        scheduled = merge_schedules(world, timed.agenda.begin if later else tick, everything)
    running, made = compile_all(running, world, scheduled)
    programs = innet.downlink.make_images(made, world.tree, scheduled.schedules, timed.agenda)
    schedules = acquisition.downlink.encode_images(scheduled.schedules)
    desired = {
        site: DesiredState(schedules.get(site), programs.get(site))
        for site in sorted(schedules.keys() | programs.keys())
    }
    folds = {each.number: each for each in running if each.number}
    most = _longest(world.silence_limits, find_silence_limits(world)) if later else find_silence_limits(world)
    return replace(timed, scheduled=scheduled, desired=desired, silence_limits=most, is_deferred=False).with_folds(
        folds
    )


def _longest(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """The patience with sites that do something else soon, and nobody knows which of both yet."""
    return {site: max(before[site], after[site]) for site in before.keys() & after.keys()}


def find_reporting_starts(query: QueryRecord, world: World, ordered: World, now: int) -> dict[str, int]:
    """By extent, from which tick on reports speak for a query that comes to a world and is ordered then: not before motes ask
    its conditions."""
    found = dict(query.reports_from)
    for extent in find_renewed_extents(query, world):
        waiting = must_defer(world, now)
        begin = latest_begin(world, query, now) if waiting else ordered.scheduled.current(extent).epochs.start
        found[extent] = max(found[extent], begin)
    return found

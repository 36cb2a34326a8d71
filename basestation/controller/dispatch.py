"""Commanding: what each mote should have for all live queries together, and when motes begin with it.

Where motes sleep, what they are told begins with the agenda that has room for it, in one tick for all of them: until then they
do what they did, and queries that run lose nothing. Nobody is told a third thing meanwhile.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import acquisition.downlink
import innet.downlink
from basestation.controller.agenda import begin_at_last, pending, waits, with_agenda
from basestation.controller.query_lifecycle import Query
from basestation.controller.requirements import compiled, patience, placed, renewed, shared
from basestation.controller.world import World
from gateway.desired_state import Desired


def commanded(world: World, tick: int, anew: Collection[str] = ()) -> World:
    """The world with schedules and programs for all live queries together: what each mote should have.

    To be asked for when queries come, go or are fed in another way, and when the routing tree has changed, for motes are to send
    to their new parents. `anew` are extents that get new samplings. Nobody is told anything while motes are told of an agenda.
    """
    return unless_it_waits(world, ordered(world, tick, anew), tick)


def begun(world: World, tick: int) -> World:
    """After motes have changed to their agenda: what has waited for that is told."""
    return commanded(world, tick) if world.waiting else replace(world, patience=patience(world))


def unless_it_waits(world: World, ordered: World, tick: int) -> World:
    return replace(world, waiting=True) if waits(world, tick) else ordered


def ordered(world: World, tick: int, anew: Collection[str]) -> World:
    """Motes that get another agenda begin with it all that they are told, since the one before has no room for that; and at once
    where it is for another tree, also with what was to begin later."""
    everything = [extent.name for extent in world.catalog]
    scheduled = shared(world, tick, everything if world.waiting else anew)
    running = placed(world)
    timed = with_agenda(world, running, scheduled.schedules, tick)
    later = pending(timed, tick)
    if later or pending(world, tick):
        scheduled = shared(world, timed.agenda.begin if later else tick, everything)
    running, made = compiled(running, world, scheduled)
    programs = innet.downlink.images(made, world.tree, scheduled.schedules, timed.agenda)
    schedules = acquisition.downlink.images(scheduled.schedules)
    desired = {
        site: Desired(schedules.get(site), programs.get(site)) for site in sorted(schedules.keys() | programs.keys())
    }
    folds = {each.number: each for each in running if each.number}
    most = _longest(world.patience, patience(world)) if later else patience(world)
    return replace(timed, scheduled=scheduled, desired=desired, patience=most, waiting=False).with_folds(folds)


def _longest(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """The patience with sites that do something else soon, and nobody knows which of both yet."""
    return {site: max(before[site], after[site]) for site in before.keys() & after.keys()}


def reporting(query: Query, world: World, ordered: World, now: int) -> dict[str, int]:
    """By extent, from which tick on reports speak for a query that comes to a world and is ordered then: not before motes ask
    its conditions."""
    found = dict(query.reports_from)
    for extent in renewed(query, world):
        waiting = waits(world, now)
        begin = begin_at_last(world, query, now) if waiting else ordered.scheduled.current(extent).epochs.start
        found[extent] = max(found[extent], begin)
    return found

"""Passing: a query whose time is over (FOR, SEMANTICS 11) wants no more readings; the engine has it, for what comes late."""

from basestation.controller.agenda import under_way
from basestation.controller.dispatch import commanded
from basestation.controller.query_lifecycle import Event, Query
from basestation.controller.world import World


def passed(world: World, now: int) -> World:
    """After queries have passed whose last readings are here or waited for no more: motes stop what only they needed."""
    over = [query for query in world.live.values() if _is_over(query, world, now)]
    for query in over:
        world = world.with_query(query.after(Event.PASS))
    return commanded(world, now) if over else world


def _is_over(query: Query, world: World, now: int) -> bool:
    return query.last is not None and now > query.last + under_way(query, world)

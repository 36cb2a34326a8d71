"""Passing: a query whose time is over (FOR, SEMANTICS 11) wants no more readings; the engine has it, for what comes late."""

from basestation.controller.agenda import transit_ticks
from basestation.controller.dispatch import dispatch
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord
from basestation.controller.world import World


def expire_queries(world: World, now: int) -> World:
    """After queries have passed whose last readings are here or waited for no more: motes stop what only they needed."""
    over = [query for query in world.live.values() if _is_over(query, world, now)]
    for query in over:
        world = world.with_query(query.transition(QueryEvent.EXPIRE))
    return dispatch(world, now) if over else world


def _is_over(query: QueryRecord, world: World, now: int) -> bool:
    return query.last_tick is not None and now > query.last_tick + transit_ticks(query, world)

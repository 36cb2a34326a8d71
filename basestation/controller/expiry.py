"""Expiry: a query needs no more readings after the end of FOR (semantics 11). The engine keeps it for late readings."""

from basestation.controller.agenda import transit_ticks
from basestation.controller.dispatch import dispatch
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord
from basestation.controller.world import World


def expire_queries(world: World, plans: PlanCache) -> World:
    """The world after the queries expired whose last readings have arrived or are not waited for any more."""
    over = [query for query in world.live.values() if _is_over(query, world, plans.now)]
    for query in over:
        world = world.with_query(query.transition(QueryEvent.EXPIRE, query.reason))
    return dispatch(world, plans) if over else world


def _is_over(query: QueryRecord, world: World, now: int) -> bool:
    return query.last_tick is not None and now > query.last_tick + transit_ticks(query, world)

"""DOOR DOWN: the text of a query -> a plan for the engine, and messages for the motes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from basestation.controller.admission import bind_single_query, rejecting_errors
from basestation.controller.aggregate_placement import AggregatePlacement
from basestation.controller.dispatch import defer_if_waiting, dispatch, find_reporting_starts, plan_desired_state
from basestation.controller.forecast import add_query
from basestation.controller.lifetime import check_lifetimes, fit_lifetime, without_lifetime
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord
from basestation.controller.reoptimization import plan_jointly
from basestation.controller.requirements import find_renewed_extents
from basestation.controller.world import World
from basestation.execution.engine import Engine


@dataclass(frozen=True, slots=True)
class QueryChange:
    """The world with the change in it, and the query that changed it."""

    world: World
    query: QueryRecord


def deploy(text: str, world: World, engine: Engine) -> QueryChange:
    """Accept a query: from its first window after now on the engine answers it. Refused says why it cannot be."""
    plan, now = bind_single_query(text, world), engine.clock + 1
    with rejecting_errors(text, plan):
        plan, number = fit_lifetime(plan, world, now), world.next_number()
        changed, feeding = add_query(plan, number, world, now, text)
        changed, feedings = plan_jointly(changed, {number: feeding}, now)
        before = replace(world, live={n: query for n, query in world.live.items() if n not in feedings})
        told = plan_desired_state(
            changed, now, set().union(*(find_renewed_extents(each.query, before) for each in feedings.values()))
        )
        check_lifetimes(told)
        come = {
            n: replace(f.query, reports_from=find_reporting_starts(f.query, before, told, now))
            for n, f in feedings.items()
        }
        register_queries(number, come, feedings, engine, world)
    awaited = [site for site, each in told.desired.items() if world.desired.get(site) != each]
    changed = defer_if_waiting(changed, told, now)
    for query in come.values():
        changed = changed.with_query(query.with_awaited(awaited))
    return QueryChange(changed, changed.live[number])


def register_queries(
    new: int,
    queries: Mapping[int, QueryRecord],
    feedings: Mapping[int, AggregatePlacement],
    engine: Engine,
    world: World,
) -> None:
    """Tell the engine of a query that comes, and of what else feeds those now that came in the same clock tick."""
    folds = {number: placed.operator for each in feedings.values() for number, placed in each.begin.items()}
    for number in (new, *sorted(queries.keys() - {new})):
        query = queries[number]
        if number != new:
            engine.remove(number)
        engine.add(
            number,
            without_lifetime(query.plan, world),
            query.partial_sources,
            folds,
            query.reports_from,
            query.read_columns,
        )
        folds = {}


def withdraw(number: int, world: World, engine: Engine) -> QueryChange:
    """Stop a query: the engine forgets it, the motes stop what only it needed."""
    engine.remove(number)
    return end_query(number, QueryEvent.STOP, world, engine)


def end_query(number: int, event: QueryEvent, world: World, engine: Engine) -> QueryChange:
    """A query, which the engine has forgotten, is over by an event: the motes stop what only it needed."""
    query = world.queries[number].transition(event)
    return QueryChange(dispatch(world.with_query(query), engine.clock + 1), query)

"""DOOR DOWN: the text of a query -> a plan for the engine, and messages for the motes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from basestation.controller.admission import one_query, refusing
from basestation.controller.aggregate_placement import Feeding
from basestation.controller.dispatch import commanded, ordered, reporting, unless_it_waits
from basestation.controller.forecast import added
from basestation.controller.lifetime import check_promises, decided, lasting
from basestation.controller.query_lifecycle import Event, Query
from basestation.controller.reoptimization import together
from basestation.controller.requirements import renewed
from basestation.controller.world import World
from basestation.execution.engine import Engine


@dataclass(frozen=True, slots=True)
class Deployment:
    """The world with the change in it, and the query that changed it."""

    world: World
    query: Query


def deploy(text: str, world: World, engine: Engine) -> Deployment:
    """Accept a query: from its first window after now on the engine answers it. Refused says why it cannot be."""
    plan, now = one_query(text, world), engine.clock + 1
    with refusing(text, plan):
        plan, number = lasting(plan, world, now), world.next_number()
        changed, feeding = added(plan, number, world, now, text)
        changed, feedings = together(changed, {number: feeding}, now)
        before = replace(world, live={n: query for n, query in world.live.items() if n not in feedings})
        told = ordered(changed, now, set().union(*(renewed(each.query, before) for each in feedings.values())))
        check_promises(told)
        come = {n: replace(f.query, reports_from=reporting(f.query, before, told, now)) for n, f in feedings.items()}
        enter(number, come, feedings, engine, world)
    awaited = [site for site, each in told.desired.items() if world.desired.get(site) != each]
    changed = unless_it_waits(changed, told, now)
    for query in come.values():
        changed = changed.with_query(query.waiting_for(awaited))
    return Deployment(changed, changed.live[number])


def enter(
    new: int, queries: Mapping[int, Query], feedings: Mapping[int, Feeding], engine: Engine, world: World
) -> None:
    """Tell the engine of a query that comes, and of what else feeds those now that came in the same clock tick."""
    folds = {number: placed.operator for each in feedings.values() for number, placed in each.begin.items()}
    for number in (new, *sorted(queries.keys() - {new})):
        query = queries[number]
        if number != new:
            engine.remove(number)
        engine.add(number, decided(query.plan, world), query.fed, folds, query.reports_from, query.reads)
        folds = {}


def withdraw(number: int, world: World, engine: Engine) -> Deployment:
    """Stop a query: the engine forgets it, the motes stop what only it needed."""
    engine.remove(number)
    return release(number, Event.STOP, world, engine)


def release(number: int, event: Event, world: World, engine: Engine) -> Deployment:
    """A query, which the engine has forgotten, is over by an event: the motes stop what only it needed."""
    query = world.queries[number].after(event)
    return Deployment(commanded(world.with_query(query), engine.clock + 1), query)

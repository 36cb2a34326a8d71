"""Query changes: how queries of a station pause, resume, drain, end and replace one another.

A replacement starts and its predecessor drains at one clock tick: the old query answers all windows up to it, the new one all
after it (docs/decisions/0171).
"""

from dataclasses import replace

from basestation.algebra.converters import Converter
from basestation.controller.dispatch import dispatch
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryEvent, QueryState, QueryStateError
from basestation.controller.world import World
from basestation.downlink import QueryChange, deploy
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import start_tick
from basestation.planner.plan import Plan


def check_name(name: str | None, world: World) -> None:
    """QueryStateError if another query has a name."""
    if name is not None and (other := world.named(name)) is not None:
        raise QueryStateError(
            f"query {other.number} has the name `{name}`", "choose another name, or replace that query"
        )


def withdraw(number: int, world: World, engine: Engine) -> QueryChange:
    """Stop a query: remove it from the engine, and from motes all that only it needs."""
    query = world.queries[number]
    query.transition(QueryEvent.STOP)
    if query.live or query.state is QueryState.FINISHED:
        engine.remove(number)
    return end_query(number, QueryEvent.STOP, world, engine)


def end_query(number: int, event: QueryEvent, world: World, engine: Engine, reason: str = "") -> QueryChange:
    """End a query that the engine no longer has: motes stop what only it needs."""
    query = world.queries[number].transition(event, reason)
    return QueryChange(dispatch(world.with_query(query), PlanCache(engine.clock + 1)), query)


def pause(number: int, world: World, engine: Engine) -> QueryChange:
    """Let a query run no more until it is resumed; its answers stay as they are."""
    world.queries[number].transition(QueryEvent.PAUSE)  # raises before the engine forgets the query
    engine.remove(number)
    return end_query(number, QueryEvent.PAUSE, world, engine)


def resume(number: int, world: World, engine: Engine) -> QueryChange:
    """Run a paused or failed query again, under its number, for the windows from now on. The end of FOR stays where it was."""
    before = world.queries[number]
    before.transition(QueryEvent.RESUME)
    now = engine.clock + 1
    if before.last_tick is not None and before.last_tick < now:
        raise QueryStateError(f"the time of query {number} (FOR) is over", "submit its text again")
    change = deploy(before.text, world, engine, before.name, number, before.last_tick)
    query = replace(change.query, submitted_at=before.submitted_at)
    if start_tick(query.plan.options, now) is not None:  # windows since then have been answered
        engine.limit(number, now, NEVER)
    return QueryChange(change.world.with_query(query), query)


def drain(number: int, world: World, engine: Engine, reason: str = "") -> QueryChange:
    """Let a query answer the windows up to now, and no more. Readings of these windows that arrive later still count."""
    query = world.queries[number].transition(QueryEvent.DRAIN, reason)
    engine.limit(number, -NEVER, engine.clock)
    last = engine.clock if query.last_tick is None else min(engine.clock, query.last_tick)
    query = replace(query, last_tick=last)
    return QueryChange(world.with_query(query), query)


def is_plain_stream(plan: Plan) -> bool:
    """Whether a query begins and ends by the arrival of tuples, not by windows (semantics 11)."""
    return plan.kind == "stream" and not isinstance(plan.root, Converter)


def supersede(number: int, text: str, world: World, engine: Engine, name: str | None = None) -> QueryChange:
    """Start a query in the place of another at one clock tick; it takes the name over unless it gets one of its own.

    The old query answers the windows up to this tick and is still revised; a plain stream ends, because the new one gives all
    tuples that arrive from now on. DiagnosticError if the new one cannot run: then nothing has changed.
    """
    before = world.queries[number]
    before.transition(QueryEvent.DRAIN)
    if name not in (None, before.name):
        check_name(name, world)
    change = deploy(text, world, engine, name or before.name)
    reason = f"replaced by query {change.query.number}"
    if is_plain_stream(before.plan):
        engine.remove(number)
        return QueryChange(end_query(number, QueryEvent.STOP, change.world, engine, reason).world, change.query)
    return QueryChange(drain(number, change.world, engine, reason).world, change.query)

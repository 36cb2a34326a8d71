"""Query changes: how queries of a station pause, resume, drain, end and replace one another.

A replacement starts and its predecessor drains at one clock tick: the old query answers all windows up to it, the new one all
after it (docs/decisions/0171).
"""

from dataclasses import replace

from basestation.algebra.converters import Converter
from basestation.controller.active_hours import OUTSIDE, ActiveHours
from basestation.controller.admission import bind_single_query
from basestation.controller.dispatch import dispatch
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord, QueryState, QueryStateError
from basestation.controller.world import World
from basestation.downlink import QueryChange, deploy
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.engine import Engine
from basestation.execution.past_windows import PastRange, counts_from_start, find_overlap
from basestation.execution.plan_checks import start_tick
from basestation.planner.plan import Plan
from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source


def check_name(name: str | None, world: World) -> None:
    """QueryStateError if another query has a name."""
    if name is not None and (other := world.named(name)) is not None:
        raise QueryStateError(
            f"query {other.number} has the name `{name}`", "choose another name, or replace that query"
        )


def with_hours(change: QueryChange, active: ActiveHours | None) -> QueryChange:
    """The change after which the query has active hours."""
    query = replace(change.query, active=active)
    return QueryChange(change.world.with_query(query), query)


def withdraw(number: int, world: World, engine: Engine, reason: str = "") -> QueryChange:
    """Stop a query: remove it from the engine, and from motes all that only it needs."""
    query = world.queries[number]
    query.transition(QueryEvent.STOP)
    if query.live or query.state is QueryState.FINISHED:
        engine.remove(number)
    return end_query(number, QueryEvent.STOP, world, engine, reason)


def end_query(number: int, event: QueryEvent, world: World, engine: Engine, reason: str = "") -> QueryChange:
    """End a query that the engine no longer has: motes stop what only it needs."""
    query = world.queries[number].transition(event, reason)
    return QueryChange(dispatch(world.with_query(query), PlanCache(engine.clock + 1)), query)


def fail(number: int, world: World, engine: Engine, reason: str) -> QueryChange:
    """End a query that exceeds a limit; it can be resumed."""
    query = world.queries[number]
    query.transition(QueryEvent.FAIL)
    if query.state is not QueryState.PAUSED:  # the engine has no paused one
        engine.remove(number)
    return end_query(number, QueryEvent.FAIL, world, engine, reason)


def pause(number: int, world: World, engine: Engine, reason: str = "") -> QueryChange:
    """Let a query run no more until it is resumed; its answers stay as they are."""
    query = world.queries[number]
    if query.state is QueryState.PAUSED and OUTSIDE in (query.reason, reason):  # it stays paused, by another's will
        query = replace(query, reason=reason)
        return QueryChange(world.with_query(query), query)
    query.transition(QueryEvent.PAUSE)  # raises before the engine forgets the query
    engine.remove(number)
    return end_query(number, QueryEvent.PAUSE, world, engine, reason)


def find_hours_change(query: QueryRecord, now_ms: int) -> str | None:
    """The command that the active hours of a query ask for at a time: `leave hours`, `enter hours` or None."""
    if query.active is None:
        return None
    if query.active.is_active(now_ms):
        return "enter hours" if query.state is QueryState.PAUSED and query.reason == OUTSIDE else None
    return "leave hours" if query.state in (QueryState.DEPLOYING, QueryState.RUNNING) else None


def defer_resume(kind: str, query: QueryRecord, now_ms: int) -> str:
    """The command in place of `kind`: a query that is resumed outside its active hours waits until they begin."""
    is_early = query.active is not None and not query.active.is_active(now_ms)
    return "leave hours" if kind == "resume" and is_early and query.state is QueryState.PAUSED else kind


def enter_hours(number: int, world: World, engine: Engine, past: PastRange | None = None) -> QueryChange:
    """Resume a query whose active hours begin; end it, with the reason, where it cannot run any more."""
    try:
        return resume(number, world, engine, past)
    except QueryStateError as why:
        return withdraw(number, world, engine, str(why))
    except DiagnosticError as why:
        return end_query(number, QueryEvent.FAIL, world, engine, str(why))


def plan_resumption(query: QueryRecord, world: World, now: int) -> Plan:
    """The plan of a query that runs again from a tick on: the begin by SINCE and the end of FOR stay where they were.

    Where its answers do not count from that begin, it begins now: then the log has more of what it reads.
    """
    plan = bind_single_query(query.text, world)
    options, begin = plan.options, start_tick(plan.options, query.submitted_at)
    rest = None if query.last_tick is None else query.last_tick - now
    if begin is None:
        options = replace(options, run_for=rest)
    elif begin < now and not counts_from_start(plan):
        since = max(begin, now - find_overlap(plan))
        options = replace(options, since=since, since_ago=None, run_for=None if rest is None else rest + now - since)
    else:
        options = replace(options, since=begin, since_ago=None)
    return replace(plan, options=options)


def resume(number: int, world: World, engine: Engine, past: PastRange | None = None) -> QueryChange:
    """Run a paused or failed query again, under its number, for the windows from now on. The end of FOR stays where it was.

    With a `past`, an engine of its own answers it. DiagnosticError if it counts from a tick that neither that nor the log has.
    """
    before = world.queries[number]
    before.transition(QueryEvent.RESUME)
    now = engine.clock + 1
    if before.last_tick is not None and before.last_tick < now:
        raise QueryStateError(f"the time of query {number} (FOR) is over", "submit its text again")
    plan = plan_resumption(before, world, now)
    since = plan.options.since
    if since is not None and past is None:
        engine.prune()
        if since < engine.first_tick(plan):
            message = f"query {number} counts from tick {since}, which neither the log nor the archive can give back"
            where = Source(before.text), plan.statement.span
            raise DiagnosticError([Diagnostic("SN434", f"{message}; submit a text that begins later", *where)])
    change = deploy(before.text, world, engine, before.name, number, plan, past)
    query = replace(change.query, submitted_at=before.submitted_at, active=before.active)
    if since is not None and since < now:  # windows since then have been answered
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


def supersede(
    number: int,
    text: str,
    world: World,
    engine: Engine,
    name: str | None = None,
    active: ActiveHours | None = None,
    past: PastRange | None = None,
) -> QueryChange:
    """Start a query in the place of another at one clock tick; it takes name and active hours over unless it gets others.

    The old query answers the windows up to this tick and is still revised; a plain stream ends, because the new one gives all
    tuples that arrive from now on. With SINCE the new one answers the windows since then too. Windows in the `past` are left to
    others. DiagnosticError if the new one cannot run: then nothing has changed.
    """
    before = world.queries[number]
    before.transition(QueryEvent.DRAIN)
    if name not in (None, before.name):
        check_name(name, world)
    change = with_hours(deploy(text, world, engine, name or before.name, past=past), active or before.active)
    reason = f"replaced by query {change.query.number}"
    if is_plain_stream(before.plan):
        engine.remove(number)
        return QueryChange(end_query(number, QueryEvent.STOP, change.world, engine, reason).world, change.query)
    return QueryChange(drain(number, change.world, engine, reason).world, change.query)

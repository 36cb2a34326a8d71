"""DOOR DOWN: the text of a query -> a plan for the engine, and the state that each mote should have.

Queries start, pause, resume, drain and end here. A replacement starts and its predecessor drains at one clock tick: the old query
answers all windows up to it, the new one all after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from basestation.algebra.converters import Converter
from basestation.controller.admission import bind_single_query, rejecting_errors
from basestation.controller.aggregate_placement import AggregatePlacement, add_query
from basestation.controller.dispatch import defer_if_waiting, dispatch, find_reporting_starts, plan_desired_state
from basestation.controller.lifetime import check_lifetimes, fit_lifetime, without_lifetime
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord, QueryState, QueryStateError
from basestation.controller.reoptimization import plan_jointly
from basestation.controller.requirements import find_renewed_extents
from basestation.controller.world import World
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import start_tick
from basestation.planner.plan import Plan

Placements = Mapping[int, AggregatePlacement]


@dataclass(frozen=True, slots=True)
class QueryChange:
    """The world after a query started or ended, and that query."""

    world: World
    query: QueryRecord


def deploy(text: str, world: World, engine: Engine, name: str | None = None) -> QueryChange:
    """Accept a query; the engine answers it from its first window after now on.

    DiagnosticError if it cannot run, QueryStateError if another query has its name.
    """
    _check_name(name, world)
    return _deploy(text, world.next_number(), world, engine, name)


def _check_name(name: str | None, world: World) -> None:
    if name is not None and (other := world.named(name)) is not None:
        raise QueryStateError(
            f"query {other.number} has the name `{name}`", "choose another name, or replace that query"
        )


def _deploy(
    text: str, number: int, world: World, engine: Engine, name: str | None, end: int | None = None
) -> QueryChange:
    """`end` is the last tick of FOR where the query ran before."""
    plans = PlanCache(engine.clock + 1)
    bound = bind_single_query(text, world)
    if end is not None and start_tick(bound.options, plans.now) is None:
        bound = replace(bound, options=replace(bound.options, run_for=end - plans.now))
    with rejecting_errors(text, bound):
        plan = fit_lifetime(bound, world, plans)
        added = add_query(plan, world, plans, text, number)
        candidate = plan_jointly(added, plans)
        before = _without(world, candidate.placements)
        target = plan_desired_state(candidate.world, plans, _find_renewed(candidate.placements, before))
        check_lifetimes(candidate.world, plans)
        queries = _set_report_starts(candidate.placements, before, target, plans.now)
        queries[number] = replace(queries[number], name=name)
        register_queries(number, queries, candidate.placements, engine, world)
    return _commit(number, queries, candidate.world, target, world, plans.now)


def _without(world: World, placements: Placements) -> World:
    """The world as if the queries that are placed now were not live."""
    return replace(world, live={number: query for number, query in world.live.items() if number not in placements})


def _find_renewed(placements: Placements, before: World) -> set[str]:
    """The extents that need new samplings."""
    return set[str]().union(*(find_renewed_extents(placement.query, before) for placement in placements.values()))


def _set_report_starts(placements: Placements, before: World, target: World, now: int) -> dict[int, QueryRecord]:
    """The queries that are placed now, with the ticks from which on filter reports hold for them."""
    return {
        number: replace(placed.query, reports_from=find_reporting_starts(placed.query, before, target, now))
        for number, placed in placements.items()
    }


def register_queries(
    new: int, queries: Mapping[int, QueryRecord], placements: Placements, engine: Engine, world: World
) -> None:
    """Let the engine run a new query, and anew the queries of the same tick whose placement changed with it."""
    folds = {number: fold for placed in placements.values() for number, fold in placed.new_folds.items()}
    for number in (new, *sorted(queries.keys() - {new})):
        query = queries[number]
        if number != new:
            engine.remove(number)
        plan = without_lifetime(query.plan, world)
        engine.add(number, plan, query.partial_sources, folds, query.reports_from, query.read_columns)
        folds = {}


def _commit(
    new: int, queries: Mapping[int, QueryRecord], planned: World, target: World, world: World, now: int
) -> QueryChange:
    """The world with the new queries; they await the motes whose desired state changes."""
    awaited = [site for site, desired in target.desired.items() if world.desired.get(site) != desired]
    changed = defer_if_waiting(planned, target, now)
    for query in queries.values():
        changed = changed.with_query(query.with_awaited(awaited))
    return QueryChange(changed, changed.live[new])


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
    change = _deploy(before.text, number, world, engine, before.name, before.last_tick)
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
        _check_name(name, world)
    change = _deploy(text, world.next_number(), world, engine, name or before.name)
    reason = f"replaced by query {change.query.number}"
    if is_plain_stream(before.plan):
        engine.remove(number)
        return QueryChange(end_query(number, QueryEvent.STOP, change.world, engine, reason).world, change.query)
    return QueryChange(drain(number, change.world, engine, reason).world, change.query)

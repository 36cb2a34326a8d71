"""DOOR DOWN: the text of a query -> a plan for the engine, and the state that each mote should have."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from basestation.controller.admission import bind_single_query, rejecting_errors
from basestation.controller.aggregate_placement import AggregatePlacement, Candidate, add_query
from basestation.controller.dispatch import defer_if_waiting, find_reporting_starts, plan_desired_state
from basestation.controller.lifetime import check_lifetimes, fit_lifetime, without_lifetime
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.reoptimization import plan_jointly
from basestation.controller.requirements import find_renewed_extents
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.execution.past_windows import PastRange, from_seam
from basestation.planner.plan import Plan

Placements = Mapping[int, AggregatePlacement]


@dataclass(frozen=True, slots=True)
class QueryChange:
    """The world after a query started or ended, and that query."""

    world: World
    query: QueryRecord


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A candidate state with a new query, the desired states in it (`target`), and the queries that are placed anew, by number."""

    candidate: Candidate
    target: World
    queries: Mapping[int, QueryRecord]
    plans: PlanCache


def deploy(
    text: str,
    world: World,
    engine: Engine,
    name: str | None = None,
    number: int | None = None,
    resumed: Plan | None = None,
    past: PastRange | None = None,
) -> QueryChange:
    """Accept a query; the engine answers it from its first window after now on. DiagnosticError if it cannot run.

    A query that ran before has its `number`, and a plan, `resumed`, of what it answers now. Windows in the `past` are left to others.
    """
    number = world.next_number() if number is None else number
    planned = plan_query(text, world, engine.clock + 1, number, resumed, past)
    queries = {**planned.queries, number: replace(planned.queries[number], name=name)}
    with rejecting_errors(text, planned.queries[number].plan):
        register_queries(number, queries, planned.candidate.placements, engine, world)
    return _commit(number, queries, planned.candidate.world, planned.target, world, engine.clock + 1)


def plan_query(
    text: str, world: World, now: int, number: int, resumed: Plan | None = None, past: PastRange | None = None
) -> PlannedQuery:
    """Plan a query beside those that run; nothing changes. DiagnosticError if it cannot run. `resumed` and `past` are as for `deploy`."""
    plans = PlanCache(now)
    bound = bind_single_query(text, world) if resumed is None else resumed
    if past is not None:
        bound = from_seam(bound, past)
    with rejecting_errors(text, bound):
        plan = fit_lifetime(bound, world, plans)
        added = add_query(plan, world, plans, text, number)
        candidate = plan_jointly(added, plans)
        unplaced = {number: query for number, query in world.live.items() if number not in candidate.placements}
        before = replace(world, live=unplaced)
        renewed = set[str]().union(*(find_renewed_extents(p.query, before) for p in candidate.placements.values()))
        target = plan_desired_state(candidate.world, plans, renewed)
        check_lifetimes(candidate.world, plans)
        queries = {  # with the ticks from which on filter reports hold for them
            new: replace(placed.query, reports_from=find_reporting_starts(placed.query, before, target, now))
            for new, placed in candidate.placements.items()
        }
    return PlannedQuery(candidate, target, queries, plans)


def register_queries(
    new: int, queries: Mapping[int, QueryRecord], placements: Placements, engine: Engine, world: World
) -> None:
    """Let the engine run a new query, and anew those of its tick that are placed anew; a fold begins with the first that takes it."""
    folds = {number: fold for placed in placements.values() for number, fold in placed.new_folds.items()}
    for number in (new, *sorted(queries.keys() - {new})):
        query, sources = queries[number], queries[number].partial_sources
        if number != new:
            engine.remove(number)
        begin = {source.number: folds.pop(source.number) for source in sources if source.number in folds}
        plan = without_lifetime(query.plan, world)
        engine.add(number, plan, sources, begin, query.reports_from, query.read_columns)


def _commit(
    new: int, queries: Mapping[int, QueryRecord], planned: World, target: World, world: World, now: int
) -> QueryChange:
    """The world with the new queries; they await the motes whose desired state changes."""
    awaited = [site for site, desired in target.desired.items() if world.desired.get(site) != desired]
    changed = defer_if_waiting(planned, target, now)
    for query in queries.values():
        changed = changed.with_query(query.with_awaited(awaited))
    return QueryChange(changed, changed.live[new])

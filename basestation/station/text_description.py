"""Text descriptions: what a station says of a query text that it does not run: its errors, its plan, and its costs here.

All of it reads the world, which is never changed in place, so any thread may call it.
"""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

from basestation.controller.admission import bind_single_query, rejecting_errors
from basestation.controller.lifetime import without_lifetime
from basestation.controller.network_plan import INFEASIBLE, NetworkPlan
from basestation.controller.world import World
from basestation.downlink import PlannedQuery, plan_query
from basestation.execution.engine import Engine
from basestation.execution.past_windows import find_past, reads_past
from basestation.explain import explain_statement, render_statement
from basestation.explain.marginal_cost import HourlyCost
from basestation.planner.binder import bind_text
from basestation.planner.plan import Correction, Plan
from basestation.results.wire import columns_as_json
from basestation.station.past_reader import MOST_RECALLED
from gateway.diagnostics import DiagnosticError

Json = Mapping[str, Any]


def check_text(text: str, world: World) -> Json:
    """Every error in a text, each with its place; of a correct text, its statements with their columns."""
    try:
        bound = bind_text(text, world.catalog)
    except DiagnosticError as wrong:
        return {"ok": False, "diagnostics": [each.as_json() for each in wrong.diagnostics], "statements": []}
    statements = [
        {"type": "query", "kind": each.kind, "once": each.is_one_off, "columns": columns_as_json(each.root.columns)}
        if isinstance(each, Plan)
        else {"type": "correction", "how": each.how, "extent": each.extent.name}
        for each in bound
    ]
    return {"ok": True, "diagnostics": [], "statements": statements}


def explain_text(text: str, world: World, pasts: Sequence[Json | None]) -> list[tuple[Json, str]]:
    """Each statement of a text as JSON and as text: meaning, rewrites, operators, its work on the declared motes, and its past.

    DiagnosticError: the text has errors.
    """
    explained = [
        {**explain_statement(each, number, world.deployment, world.catalog, world.statistics), "past": past}
        for number, (each, past) in enumerate(zip(bind_text(text, world.catalog), pasts, strict=True), 1)
    ]
    return [(each, render_statement(each)) for each in explained]


def describe_plan(number: int, text: str, world: World) -> tuple[Json, str]:
    """The plan of a query that the station has or had, as JSON and as text.

    A query that is over left no plan: it is planned anew. DiagnosticError: its text does not fit the extents of now.
    """
    record = world.queries.get(number)
    plan = bind_single_query(text, world) if record is None else record.plan
    found = explain_statement(plan, number, world.deployment, world.catalog, world.statistics)
    return found, render_statement(found)


def describe_past(plan: Plan | Correction, engine: Engine) -> Json | None:
    """Where the past of a query would come from by what the engine keeps now, and why; None where it has none.

    Nothing changes. Only the station's thread may call it.
    """
    if not isinstance(plan, Plan) or not reads_past(plan):
        return None
    past = find_past(plan, engine)
    if past is None:
        reason = (
            "it has every tuple that the query reads, or the query reads an index or answers before late readings "
            "come, which the archive cannot give back"
        )
        return {"source": "log", "seam": None, "reason": reason}
    if past.is_replayed:
        reason = (
            "the query counts from its begin, follows the order of arrival or reads HISTORY, so an engine of its own takes "
            "the archived deliveries in their order, and then the live ones"
        )
    else:
        reason = (
            f"the log lacks tuples of windows before tick {past.seam}; these depend on the tuples in their ranges alone, so the "
            "engine answers them slice by slice"
        )
    limit = f"Spark is not used: for more than {MOST_RECALLED:,} tuples the query is refused, and `moteloom history` asks Spark"
    return {"source": "archive", "seam": None if past.is_replayed else past.seam, "reason": f"{reason}. {limit}"}


def describe_dry_run(text: str, world: World, clock: int) -> tuple[Json, PlannedQuery]:
    """The effect that a submission would have now, and the plan behind it. DiagnosticError: it would be refused."""
    number = world.next_number()
    planned = plan_query(text, world, clock + 1, number)
    plan = planned.queries[number].plan
    changed = sorted(site for site, state in planned.target.desired.items() if world.desired.get(site) != state)
    return {
        "dry_run": True,
        "plan": explain_statement(plan, number, world.deployment, world.catalog, world.statistics),
        "cost": _compare_costs(planned, world),
        "changed_motes": changed,
    }, planned  # fmt: skip


def check_start(text: str, planned: PlannedQuery, world: World, engine: Engine) -> None:
    """DiagnosticError where the engine would refuse a planned query. Only the station's thread may call it."""
    plan = planned.queries[world.next_number()].plan
    with rejecting_errors(text, plan):
        engine.check(without_lifetime(plan, world))


def _compare_costs(planned: PlannedQuery, world: World) -> Json | None:
    """The hourly work of the motes for the queries that run, and with the new one; None where the motes are not declared."""
    if world.deployment is None:
        return None
    plans = planned.plans
    return {"now": _cost(plans.plan(world)), "with_query": _cost(plans.plan(planned.candidate.world))}


def _cost(plan: NetworkPlan) -> Json:
    if not plan.queries:
        return {"messages": 0.0, "bytes": 0.0, "joules": 0.0, "days": None}
    try:
        cost = HourlyCost.of(plan.prediction)
    except INFEASIBLE as why:
        return {"refused": str(why)}
    days = None if isinf(cost.days) else cost.days
    return {"messages": cost.messages, "bytes": cost.bytes, "joules": cost.joules, "days": days}

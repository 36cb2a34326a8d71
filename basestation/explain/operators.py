"""The operators that run for a query: EXPLAIN builds them with the engine, by the rules of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from acquisition.batch import Batch
from basestation.algebra.node import PlanNode
from basestation.algebra.vector import Vector
from basestation.execution.description import LOGGED, RunningOperator, StateDescription, held_states, sum_state
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import UnsupportedPlanError
from basestation.planner.executable_rules import EXECUTABLE_RULES, select_rules
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from basestation.planner.rewriter import RewriteStep, rewrite
from innet.operators.fold import Fold

if TYPE_CHECKING:
    from basestation.controller.network_plan import NetworkPlan

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EngineInput:
    """Recorded data for a trial run: batches of streams by extent, and versions of tables by extent and tick."""

    batches: Mapping[str, Batch]
    versions: Mapping[str, Sequence[tuple[int, Mapping[str, Vector]]]]


@dataclass(frozen=True, slots=True)
class ExecutablePlan:
    """The work of the engine for a query: the rewritten tree, the steps to it, and its operators from the output down.

    `refused` is the reason why the engine cannot run the query; then there are no operators.
    """

    root: PlanNode
    steps: tuple[RewriteStep, ...]
    operators: tuple[RunningOperator, ...] = ()
    refused: str | None = None
    analyzed: bool = False  # the operators have run over recorded data


def build_executable_plan(
    plan: Plan, planned: "NetworkPlan | None" = None, recorded: EngineInput | None = None
) -> ExecutablePlan:
    """The executable plan of a query, built by an engine that runs nothing else.

    `planned` is what motes do for it: partials of motes feed the aggregations that they fold. With `recorded` data the engine
    also runs the query over it, so that operators have counters; not if partials feed it, which no recording has.
    """
    submitted = plan
    folds: dict[int, Fold] = {}
    sources: tuple[PartialSource, ...] = ()
    if planned is not None:
        record = planned.world.live[1]
        submitted, sources = record.plan, record.partial_sources
        running = planned.world.running
        folds = {number: each.operator for number, each in running.items() if isinstance(each.operator, Fold)}
    submitted = _without_past(submitted)
    better, steps = rewrite(submitted, select_rules(EXECUTABLE_RULES, [source.node for source in sources]))
    engine = Engine(submitted.catalog, live=planned is not None and recorded is None, timer=perf_counter_ns)
    try:
        engine.add(1, submitted, sources, folds)
    except UnsupportedPlanError as error:
        return ExecutablePlan(better.root, steps, refused=str(error))
    if recorded is not None and not sources:
        _run(engine, recorded)
        return ExecutablePlan(better.root, steps, engine.describe(1), analyzed=True)
    return ExecutablePlan(better.root, steps, engine.describe(1))


def _run(engine: Engine, recorded: EngineInput) -> None:
    """Run the queries of an engine over recorded data."""
    last = 0
    for name, versions in recorded.versions.items():
        for tick, columns in versions:
            engine.load(name, tick, dict(columns))
            last = max(last, tick)
    for name, batch in recorded.batches.items():
        if len(batch):
            engine.deliver(name, batch.take(np.argsort(batch.arrival, kind="stable")))
            last = max(last, int(batch.arrival.max()))
    engine.on_clock(last)


def _without_past(plan: Plan) -> Plan:
    """The plan without clauses that are for the controller, and with SINCE at the first tick of the empty record."""
    since = None if plan.options.since is None and plan.options.since_ago is None else 0
    return replace(plan, options=replace(plan.options, since=since, since_ago=None, lifetime=None))


def explain_operators(operators: Sequence[RunningOperator], analyzed: bool = False) -> list[Json]:
    """The operators as JSON, from the output down; with counters if they have run."""
    return [
        {"depth": o.depth, "operator": o.name, "how": o.how, "state": _state(o.state), "repeated": o.repeated}
        | ({"measured": _measured(o)} if analyzed else {})
        for o in operators
    ]


def _measured(operator: RunningOperator) -> Json | None:
    """Rows, state and time of an operator after a run; None of a stage, which its operator includes."""
    counters, state = operator.counters, operator.state
    if counters is None or operator.repeated:
        return None
    return {
        "rows_in": counters.rows_in, "rows_out": counters.rows_out, "inserted": counters.inserted,
        "purged": counters.purged, "probed": counters.probed, "ms": counters.time / 1e6,
        "entries": None if state is None else state.entries, "bytes": None if state is None else state.bytes,
    }  # fmt: skip


_SAME = {LOGGED: "tuples"}
"""Kinds of entries that are the same tuples, held at another place."""


def explain_memory(operators: Sequence[RunningOperator]) -> Json:
    """The bytes of all states with a bound, and the bytes per entry of the others: for the tuples of an extent the sum of all."""
    known, _ = sum_state(operators)
    per_entry: dict[str, int] = {}
    held = {id(line) for line in held_states(operators)}
    for at, line in enumerate(operators):
        if line.state is not None and line.state.limit is None and id(line) in held:
            what = _with_source(_SAME.get(line.state.what, line.state.what), operators[at:])
            per_entry[what] = per_entry.get(what, 0) + line.state.entry_bytes
    return {"bytes": known, "and_per": [{"what": what, "bytes": size} for what, size in per_entry.items()]}


def _with_source(what: str, lines: Sequence[RunningOperator]) -> str:
    """The entries of the first operator of `lines`, with the extent that it reads if it reads only one."""
    below = takewhile(lambda line: line.depth > lines[0].depth, lines[1:])
    names = {name for line in (lines[0], *below) if (name := line.name.removeprefix("acquire ").removeprefix("receive "))
             != line.name}  # fmt: skip
    return f"{what} of {names.pop()}" if len(names) == 1 else what


def _state(state: StateDescription | None) -> Json | None:
    if state is None:
        return None
    return {"what": state.what, "count": state.limit, "bytes_each": state.entry_bytes, "bytes": state.limit_bytes}


# --- as text ---------------------------------------------------------------------------------------------------------


def operator_lines(operators: Sequence[Json]) -> list[str]:
    """A line for each operator: its name, how it works and its state."""
    left = ["  " * o["depth"] + o["operator"] for o in operators]
    width = min(100, max(map(len, left)))
    return [f"{text:<{width}}  -- {_details(o)}".rstrip(" -") for text, o in zip(left, operators, strict=True)]


def _details(operator: Json) -> str:
    if operator["repeated"]:
        return "as above"
    parts = operator["how"], _state_text(operator["state"]), _measured_text(operator.get("measured"))
    return "; ".join(part for part in parts if part)


def _measured_text(measured: Json | None) -> str:
    """The counters that are not 0."""
    if measured is None:
        return ""
    names = ("rows_in", "in"), ("rows_out", "out"), ("inserted", "inserted"), ("purged", "purged"), ("probed", "probed")
    rows = [f"{measured[key]:,} {name}" for key, name in names if measured[key]]
    held = [f"holds {measured['entries']:,} in {measured['bytes']:,} B"] if measured["entries"] else []
    return "measured: " + ", ".join([*rows, *held, f"{measured['ms']:.1f} ms"])


def _state_text(state: Json | None) -> str:
    if state is None:
        return ""
    if state["count"] is None:
        return f"{state['bytes_each']} B for each of the {state['what']}"
    return f"{state['count']:,} {state['what']} x {state['bytes_each']} B"


def memory_line(memory: Json) -> str:
    """The bytes of all states of a plan."""
    each = "".join(f" + {m['bytes']} B for each of the {m['what']}" for m in memory["and_per"])
    return f"{memory['bytes']:,} B{each}"

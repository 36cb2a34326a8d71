"""Explains one statement at every level: syntax, algebra, rewrites, pushdown, motes, running operators, memory."""

import difflib
from typing import Any, TypeAlias

from acquisition.extent import Catalog
from basestation.algebra.expression_text import format_expression
from basestation.algebra.node import PlanNode
from basestation.algebra.notation import notation, outline
from basestation.explain.motes import MotePlan, explain_motes, fit_sampling, mote_lines, plan_motes
from basestation.explain.operators import (
    EngineInput,
    build_executable_plan,
    explain_memory,
    explain_operators,
    memory_line,
    operator_lines,
)
from basestation.explain.text_layout import format_paragraph, wrap_prose
from basestation.language.printer import print_statement
from basestation.planner.extensions import list_extensions
from basestation.planner.plan import Correction, Plan
from basestation.planner.pushdown import plan_pushdown
from basestation.planner.raw_ranges import raw_ranges
from basestation.planner.rewriter import rewrite
from basestation.results.wire import columns_as_json
from gateway.frame import MAX_FRAME
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics

Json: TypeAlias = dict[str, Any]
_OPTIONS = {
    "since": ("since", "begins at tick {0}"), "since_ago": ("since_ago", "begins {1} before now"),
    "acquire_every": ("acquire_every", "sampled every {1}"), "deliver_within": ("deliver_within", "answered within {1}"),
    "run_for": ("lasting", "for {1}"), "lifetime": ("lifetime", "for motes that last {1}"),
}  # fmt: skip
"""For each field of QueryOptions its key in JSON and its text: {0} is the number, {1} the number with its unit."""
_MAX_COMPARED = 300 * 300
"""Pairs of operators. Comparison is cubic where many operators are equal: a larger plan is shown as one change."""


def explain_statement(
    bound: Plan | Correction,
    number: int = 1,
    deployment: Deployment | None = None,
    catalog: Catalog | None = None,
    statistics: Statistics = GUESS,
    recorded: EngineInput | None = None,
) -> Json:
    """A plan or correction as JSON. With a deployment and its `catalog`, also the work of its motes.

    `statistics` are those of the deployment's readings. With `recorded` data the engine runs the query over it, and its
    operators have counters.
    """
    if isinstance(bound, Plan):
        return _explain_plan(bound, number, deployment, catalog or bound.catalog, statistics, recorded)
    changes = [f"{column.name} = {format_expression(e)}" for column, e in bound.changes]
    return {
        "type": "correction", "query": number, "syntax": print_statement(bound.statement), "how": bound.how,
        "extent": bound.extent.name, "changes": changes, "rows": len(bound.rows),
        "where": None if bound.predicate is None else format_expression(bound.predicate),
        "additions": [{"section": section, "what": what} for section, what in list_extensions(bound.statement)],
    }  # fmt: skip


def _explain_plan(
    plan: Plan,
    number: int,
    deployment: Deployment | None,
    catalog: Catalog,
    statistics: Statistics,
    recorded: EngineInput | None,
) -> Json:
    found, motes, raw, mtu = MotePlan(), None, None, MAX_FRAME
    if deployment is not None:
        plan = fit_sampling(plan, deployment, catalog, statistics)
        found = plan_motes([plan], deployment, catalog, statistics)
        motes = explain_motes([plan], found, deployment)
        raw, mtu = raw_ranges(deployment, catalog), deployment.mtu
    executable = build_executable_plan(plan, found.plan, recorded)
    pushdown = plan_pushdown(plan, rewrite(plan)[0].root, raw, mtu=mtu)
    return {
        "type": "plan",
        "query": number,
        "kind": plan.kind,
        "once": plan.is_one_off,
        "syntax": print_statement(plan.statement),
        "columns": columns_as_json(plan.root.columns),
        "asked": {
            key: value for name, (key, _) in _OPTIONS.items() if (value := getattr(plan.options, name)) is not None
        },
        "additions": [{"section": section, "what": what} for section, what in plan.extensions],
        "algebra": notation(plan.root),
        "rewrites": [
            {
                "rule": step.rule,
                "reason": step.reason,
                "before": notation(step.before),
                "after": notation(step.after),
                "changes": _diff(step.before, step.after),
            }
            for step in executable.steps
        ],
        "network": [
            {"operator": d.operator, "moves": d.is_pushed_down, "code": d.code, "reason": d.reason}
            for d in pushdown.decisions
        ],
        "motes": motes,
        "refused": executable.refused,
        "physical": explain_operators(executable.operators, executable.analyzed),
        "memory": explain_memory(executable.operators),
    }


def _diff(before: PlanNode, after: PlanNode) -> list[str]:
    """The difference of two trees, operator by operator: `-` removed, `+` added, in the shape of the new tree.

    The comparison ignores depth, or a change would mark everything below it.
    """
    old, new = outline(before), outline(after)
    if len(old) * len(new) > _MAX_COMPARED:
        codes = [("replace", 0, len(old), 0, len(new))]
    else:
        matcher = difflib.SequenceMatcher(None, [text for _, text in old], [text for _, text in new], autojunk=False)
        codes = list(matcher.get_opcodes())
    lines = []
    for what, i, i_end, j, j_end in codes:
        if what == "equal":
            lines += [f"  {'  ' * depth}{text}" for depth, text in new[j:j_end]]
        else:
            lines += [f"- {'  ' * depth}{text}" for depth, text in old[i:i_end]]
            lines += [f"+ {'  ' * depth}{text}" for depth, text in new[j:j_end]]
    return lines


# --- as text ---------------------------------------------------------------------------------------------------------


def render_statement(explained: Json) -> str:
    """The same as text: a paragraph for each level."""
    if explained["type"] == "correction":
        return _render_correction(explained)
    kind = "one-off query" if explained["once"] else f"{explained['kind']} query"
    parts = [
        format_paragraph(f"query {explained['query']}: {kind}", [explained["syntax"]]),
        format_paragraph("result", [", ".join(f"{c['name']}:{c['type']}" for c in explained["columns"])]),
    ]
    if explained["asked"]:
        parts.append(format_paragraph("options", option_lines(explained)))
    extensions = ", ".join(f"{a['what']} ({a['section']})" for a in explained["additions"])
    parts.append(format_paragraph("beyond the paper", [extensions or "nothing"]))
    parts.append(format_paragraph("algebra", explained["algebra"].splitlines()))
    for number, step in enumerate(explained["rewrites"], 1):
        parts.append(
            format_paragraph(f"rewrite {number}: {step['rule']}", [*wrap_prose(step["reason"]), *step["changes"]])
        )
    if past := explained.get("past"):  # a station knows it
        parts.append(format_paragraph("past", wrap_prose(f"from the {past['source']}: {past['reason']}")))
    if explained["network"]:
        parts.append(format_paragraph("in the network", _pushdown_lines(explained["network"])))
    if motes := explained["motes"]:
        parts.append(format_paragraph(f"on the motes of {motes['deployment']}", mote_lines(motes)))
    parts.append(format_paragraph("physical plan", physical_lines(explained)))
    parts.append(format_paragraph("memory", [memory_line(explained["memory"])]))
    return "\n".join(parts)


def _render_correction(explained: Json) -> str:
    lines = [f"{explained['how']} {explained['extent']}"]
    lines += [f"set {change}" for change in explained["changes"]]
    if explained["how"] == "insert":
        lines.append(f"{explained['rows']} rows")
    else:
        lines.append(f"where {explained['where'] or 'every tuple'}")
    head = f"statement {explained['query']}: correction"
    return "\n".join([format_paragraph(head, [explained["syntax"]]), format_paragraph("effect", lines)])


def option_lines(explained: Json) -> list[str]:
    """The clauses of a query about time and the network, a line each."""
    texts = dict(_OPTIONS.values())
    return [texts[key].format(value, count_ticks(value)) for key, value in explained["asked"].items()]


def count_ticks(count: int) -> str:
    """A number of ticks in words."""
    return "1 tick" if count == 1 else f"{count} ticks"


def _pushdown_lines(decisions: list[Json]) -> list[str]:
    """For each operator over sensed extents, whether motes may run it, and why."""
    lines = []
    for d in decisions:
        verdict = "may run on motes" if d["moves"] else f"stays at the base station ({d['code']})"
        lines += [d["operator"], *wrap_prose(f"{verdict}: {d['reason']}", "  ")]
    return lines


def physical_lines(explained: Json) -> list[str]:
    """The operators that run, or the reason why the engine cannot run the query."""
    return operator_lines(explained["physical"]) if explained["refused"] is None else wrap_prose(explained["refused"])

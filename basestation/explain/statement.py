"""Levels: one statement at every level: syntax, algebra, rewrites, physical plan, memory; as text or as one JSON object."""

import difflib

from basestation.algebra.expression_text import format_expression
from basestation.algebra.notation import notation, outline
from basestation.explain.motes import explain_motes, fit_sampling, mote_lines
from basestation.explain.text_layout import format_paragraph, wrap_prose
from basestation.language.printer import print_statement
from basestation.planner.extensions import list_extensions
from basestation.planner.physical_plan import plan_operators, sum_memory
from basestation.planner.plan import Plan
from basestation.planner.pushdown import plan_pushdown, raw_ranges
from basestation.planner.rewriter import rewrite
from gateway.frame import MAX_FRAME
from innet.placement.statistics import GUESS

_OPTIONS = {
    "since": "begins at tick {0}", "since_ago": "begins {1} before now", "acquire_every": "sampled every {1}",
    "deliver_within": "answered within {1}", "lasting": "for {1}", "lifetime": "for motes that last {1}",
}  # fmt: skip


_COMPARED = 300 * 300


def explain_statement(bound, number=1, deployment=None, catalog=None, statistics=GUESS):
    """What there is to say of a Plan or a Correction, as one dictionary that JSON can hold.

    With a deployment, whose extents the `catalog` has, also of what its motes would do; `statistics` are of its readings.
    """
    if isinstance(bound, Plan):
        if deployment is not None:
            bound = fit_sampling(bound, deployment, catalog, statistics)
        return _plan(bound, number, deployment, catalog, statistics)
    change = [f"{column.name} = {format_expression(e)}" for column, e in bound.changes]
    return {
        "type": "correction", "query": number, "syntax": print_statement(bound.statement), "how": bound.how,
        "extent": bound.extent.name, "changes": change, "rows": len(bound.rows),
        "where": None if bound.predicate is None else format_expression(bound.predicate),
        "additions": [{"section": section, "what": what} for section, what in list_extensions(bound.statement)],
    }  # fmt: skip


def _plan(plan, number, deployment, catalog, statistics):
    better, steps = rewrite(plan)
    raw, mtu = (None, MAX_FRAME) if deployment is None else (raw_ranges(deployment, catalog), deployment.mtu)
    operators = plan_operators(better.root)
    known, open_ended = sum_memory(operators)
    return {
        "type": "plan",
        "query": number,
        "kind": plan.kind,
        "once": plan.is_one_off,
        "syntax": print_statement(plan.statement),
        "columns": [
            {"name": c.label, "type": str(c.type)}
            | {k: v for k, v in (("scale", c.scale), ("unit", c.unit)) if v is not None}
            for c in plan.root.columns
        ],
        "asked": {name: value for name in _OPTIONS if (value := getattr(plan.options, name)) is not None},
        "additions": [{"section": section, "what": what} for section, what in plan.extensions],
        "algebra": notation(plan.root),
        "rewrites": [
            {
                "rule": s.rule,
                "reason": s.reason,
                "before": notation(s.before),
                "after": notation(s.after),
                "changes": _changes(s.before, s.after),
            }
            for s in steps
        ],
        "network": [
            {"operator": d.operator, "moves": d.is_pushed_down, "code": d.code, "reason": d.reason}
            for d in plan_pushdown(plan, better.root, raw, mtu=mtu).decisions
        ],
        "motes": None if deployment is None else explain_motes([plan], deployment, catalog, statistics),
        "physical": [
            {"depth": o.depth, "operator": o.label, "how": o.how, "state": _state(o.state)} for o in operators
        ],
        "memory": {"bytes": known, "and_per": [{"what": s.what, "bytes": s.each} for s in open_ended]},
    }


def _changes(before, after):
    """What a rewrite did, operator by operator: `-` gone, `+` come, in the shape that the plan has now.

    Operators are compared without regard to their depth, or all below a change would count as changed.
    """
    old, new = outline(before), outline(after)
    matcher = difflib.SequenceMatcher(None, [text for _, text in old], [text for _, text in new], autojunk=False)
    # Comparing is cubic where many operators are alike: of a plan that large, what changed is told as a whole.
    large = len(old) * len(new) > _COMPARED
    codes = [("replace", 0, len(old), 0, len(new))] if large else matcher.get_opcodes()
    lines = []
    for what, i, i_end, j, j_end in codes:
        if what == "equal":
            lines += [f"  {'  ' * depth}{text}" for depth, text in new[j:j_end]]
        else:
            lines += [f"- {'  ' * depth}{text}" for depth, text in old[i:i_end]]
            lines += [f"+ {'  ' * depth}{text}" for depth, text in new[j:j_end]]
    return lines


def _state(state):
    if state is None:
        return None
    return {"what": state.what, "count": state.count, "bytes_each": state.each, "bytes": state.bytes}


# --- as people read it -----------------------------------------------------------------------------------------------


def render_statement(told):
    """The same as text: a paragraph for each level."""
    if told["type"] == "correction":
        return _correction_text(told)
    what = "one-off query" if told["once"] else f"{told['kind']} query"
    parts = [
        format_paragraph(f"query {told['query']}: {what}", [told["syntax"]]),
        format_paragraph("result", [", ".join(f"{c['name']}:{c['type']}" for c in told["columns"])]),
    ]
    if told["asked"]:
        parts.append(format_paragraph("asked", option_lines(told)))
    beyond = ", ".join(f"{a['what']} ({a['section']})" for a in told["additions"])
    parts.append(format_paragraph("beyond the paper", [beyond or "nothing"]))
    parts.append(format_paragraph("algebra", told["algebra"].splitlines()))
    for number, step in enumerate(told["rewrites"], 1):
        parts.append(
            format_paragraph(f"rewrite {number}: {step['rule']}", [*wrap_prose(step["reason"]), *step["changes"]])
        )
    if told["network"]:
        parts.append(format_paragraph("in the network", _network_lines(told["network"])))
    if told["motes"]:
        parts.append(format_paragraph(f"on the motes of {told['motes']['deployment']}", mote_lines(told["motes"])))
    parts.append(format_paragraph("physical plan", physical_lines(told)))
    parts.append(format_paragraph("memory", [memory_line(told)]))
    return "\n".join(parts)


def _correction_text(told):
    does = [f"{told['how']} {told['extent']}"]
    does += [f"set {change}" for change in told["changes"]]
    does += [f"{told['rows']} rows"] if told["how"] == "insert" else [f"where {told['where'] or 'every tuple'}"]
    return "\n".join(
        [format_paragraph(f"statement {told['query']}: correction", [told["syntax"]]), format_paragraph("does", does)]
    )


def option_lines(told):
    """What a query asks of time and of the network, a line each."""
    return [_OPTIONS[name].format(value, ticks(value)) for name, value in told["asked"].items()]


def ticks(count):
    """So many of them, in words."""
    return "1 tick" if count == 1 else f"{count} ticks"


def _network_lines(decisions):
    """Each operator that motes might run, and why they may or may not."""
    lines = []
    for d in decisions:
        verdict = "may run on motes" if d["moves"] else f"stays at the base station ({d['code']})"
        lines += [d["operator"], *wrap_prose(f"{verdict}: {d['reason']}", "  ")]
    return lines


def physical_lines(told):
    """The operators of the physical plan, how each is carried out and what it keeps."""
    operators = told["physical"]
    left = ["  " * o["depth"] + o["operator"] for o in operators]
    width = min(100, max(map(len, left)))
    return [f"{text:<{width}}  -- {o['how']}{_state_text(o['state'])}" for text, o in zip(left, operators, strict=True)]


def _state_text(state):
    if state is None:
        return ""
    if state["count"] is None:
        return f"; {state['bytes_each']} B for each of the {state['what']}"
    return f"; {state['count']:,} {state['what']} x {state['bytes_each']} B"


def memory_line(told):
    """What the states of a plan take together."""
    memory = told["memory"]
    each = "".join(f" + {m['bytes']} B for each of the {m['what']}" for m in memory["and_per"])
    return f"{memory['bytes']:,} B{each}"

"""Together: several queries on the same motes: what each costs alone, and what it adds to the others."""

from dataclasses import asdict
from math import isfinite

from basestation.explain.motes import describe_forecast, memory_lines, running_lines, worst_lines
from basestation.explain.text_layout import format_paragraph, format_table, wrap_prose
from basestation.planner.plan import Plan
from innet.placement.statistics import GUESS

_COLUMNS = ("messages/h", "bytes/h", "J/h", "days")


def explain_workload(bound, deployment, catalog, statistics=GUESS):
    """Of the plans of a text, one dictionary that JSON can hold; None where there is nothing that they could share."""
    from basestation.explain.marginal_cost import HourlyCost, predict_workload  # as in motes.py

    plans = {number: plan for number, plan in enumerate(bound, 1) if isinstance(plan, Plan)}
    found = predict_workload(plans, deployment, catalog, statistics)
    if found is None:
        return None
    refused = isinstance(found.placed, str)
    return {
        "type": "together",
        "queries": [
            {"query": number, "alone": _hourly(each.alone), "added": _hourly(each.added)}
            for number, each in found.each.items()
        ],
        "all": found.placed if refused else _hourly(HourlyCost.of(found.placed.prediction)),
        "motes": None if refused else describe_forecast(found.placed, deployment),
    }


def _hourly(told):
    """The figures of an hour, or why there are none. Who is on the mains has no days, and nothing is taken from those."""
    if isinstance(told, str):
        return told
    return {name: value if isfinite(value) else None for name, value in asdict(told).items()}


def render_workload(told):
    motes = told["motes"]
    if motes is None:
        return format_paragraph("together on the motes", wrap_prose(f"cannot be run there: {told['all']}"))
    lines = [*running_lines(motes), *_table(told), *worst_lines(motes), *memory_lines(motes["memory"])]
    return format_paragraph(f"together on the motes of {motes['deployment']}", lines)


def _table(told):
    """A line for each query: alone, on top of the others; days are those until the first battery is empty."""
    rows = [("query", *_COLUMNS, *(f"+{name}" for name in _COLUMNS))]
    rows += [(str(each["query"]), *_cells(each["alone"]), *_cells(each["added"], "+")) for each in told["queries"]]
    rows.append(("all", *_cells(told["all"]), *[""] * len(_COLUMNS)))
    said = "alone, and, with +, on top of the others; days until the first battery is empty"
    return [*wrap_prose(said), *format_table(rows)]


def _cells(figures, sign=""):
    if isinstance(figures, str):
        return ["-"] * len(_COLUMNS)
    days = figures["days"]
    shown = "mains" if days is None else f"{round(days, 1) + 0.0:{sign},.1f}"
    return [
        f"{figures['messages']:{sign},.1f}",
        f"{figures['bytes']:{sign},.0f}",
        f"{figures['joules']:{sign}.4g}",
        shown,
    ]

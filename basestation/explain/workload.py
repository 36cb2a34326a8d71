"""Explains a workload of several queries on the same motes: what each costs alone and adds to the others."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from acquisition.extent import Catalog
from basestation.explain.motes import describe_forecast, memory_lines, running_lines, worst_lines
from basestation.explain.text_layout import format_paragraph, format_table, wrap_prose
from basestation.planner.plan import Correction, Plan
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics

if TYPE_CHECKING:
    from basestation.explain.marginal_cost import HourlyCost

Json: TypeAlias = dict[str, Any]
_COLUMNS = ("messages/h", "bytes/h", "J/h", "days")


def explain_workload(
    bound: Sequence[Plan | Correction], deployment: Deployment, catalog: Catalog, statistics: Statistics = GUESS
) -> Json | None:
    """The workload of the plans of a text as JSON; None if motes work for fewer than two of them."""
    from basestation.explain.marginal_cost import HourlyCost, predict_workload  # loaded only with a deployment

    plans = {number: plan for number, plan in enumerate(bound, 1) if isinstance(plan, Plan)}
    found = predict_workload(plans, deployment, catalog, statistics)
    if found is None:
        return None
    placed = found.placed
    return {
        "type": "together",
        "queries": [
            {"query": number, "alone": _hourly(each.alone), "added": _hourly(each.added)}
            for number, each in found.each.items()
        ],
        "all": placed if isinstance(placed, str) else _hourly(HourlyCost.of(placed.prediction)),
        "motes": None if isinstance(placed, str) else describe_forecast(placed, deployment),
    }


def _hourly(cost: "HourlyCost | str") -> Json | str:
    """The costs of an hour as JSON, or the reason why there are none. Without batteries, `days` is null."""
    if isinstance(cost, str):
        return cost
    return {name: value if isfinite(value) else None for name, value in asdict(cost).items()}


def render_workload(workload: Json) -> str:
    """The same as text."""
    motes = workload["motes"]
    if motes is None:
        return format_paragraph("together on the motes", wrap_prose(f"these motes cannot run them: {workload['all']}"))
    lines = [*running_lines(motes), *_table(workload), *worst_lines(motes), *memory_lines(motes["memory"])]
    return format_paragraph(f"together on the motes of {motes['deployment']}", lines)


def _table(workload: Json) -> list[str]:
    """A line for each query: its cost alone, and what it adds to the others."""
    rows = [("query", *_COLUMNS, *(f"+{name}" for name in _COLUMNS))]
    rows += [(str(each["query"]), *_cells(each["alone"]), *_cells(each["added"], "+")) for each in workload["queries"]]
    rows.append(("all", *_cells(workload["all"]), *[""] * len(_COLUMNS)))
    legend = "cost alone; with +, cost added to the other queries; days until the first battery is empty"
    return [*wrap_prose(legend), *format_table(rows)]


def _cells(figures: Mapping[str, Any] | str, sign: str = "") -> list[str]:
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

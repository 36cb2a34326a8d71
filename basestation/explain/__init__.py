"""EXPLAIN: what a query means, how it runs and what it costs, as JSON and as text."""

from basestation.explain.motes import explain_motes, plan_motes
from basestation.explain.operators import EngineInput, memory_line
from basestation.explain.routing_map import draw_map
from basestation.explain.statement import explain_statement, option_lines, physical_lines, render_statement
from basestation.explain.workload import explain_workload, render_workload

__all__ = [
    "EngineInput",
    "draw_map",
    "explain_motes",
    "explain_statement",
    "explain_workload",
    "memory_line",
    "option_lines",
    "physical_lines",
    "plan_motes",
    "render_statement",
    "render_workload",
]

"""EXPLAIN: what a query means, how it runs and what it costs, as JSON and as text."""

from basestation.explain.motes import explain_motes
from basestation.explain.routing_map import draw_map
from basestation.explain.statement import explain_statement, memory_line, option_lines, physical_lines, render_statement
from basestation.explain.workload import explain_workload, render_workload

__all__ = [
    "draw_map",
    "explain_motes",
    "explain_statement",
    "explain_workload",
    "memory_line",
    "option_lines",
    "physical_lines",
    "render_statement",
    "render_workload",
]

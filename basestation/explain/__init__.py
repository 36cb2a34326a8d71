"""Explain: what a query means, how it would be run and what that would cost, as dictionaries that JSON can hold and as text."""

from basestation.explain.motes import on_motes
from basestation.explain.routing_map import drawn
from basestation.explain.statement import as_text, asked_lines, explained, memory_line, physical_lines
from basestation.explain.workload import explained_together, together_text

__all__ = [
    "as_text", "asked_lines", "drawn", "explained", "explained_together", "memory_line", "on_motes", "physical_lines", "together_text",
]  # fmt: skip

"""Draws an answer over time: a panel for each number, a line for each site and group."""

from collections.abc import Iterator

import pyarrow as pa

from acquisition.ticks import rfc3339_of
from basestation.history.output import SYSTEM
from basestation.planner.plan import Plan
from basestation.results.line_chart import Line, Panel, draw_panels, thin

NAMED = ("site", "_site")
"""Whole numbers that name a line; others are drawn."""


def is_drawable(plan: Plan) -> bool:
    """Whether a query gives a number that can become a panel."""
    return any(column.type.numeric and column.label not in NAMED for column in plan.root.columns)


def draw_answer(title: str, table: pa.Table, tick_ms: int) -> str:
    """The SVG of an answer with `_tick`."""
    columns = [f.name for f in table.schema if f.name not in (*SYSTEM, *NAMED) and _is_number(f.type)]
    if not table.num_rows:
        return draw_panels(f"{title}: no rows", [], 1, [])
    ticks = table.column("_tick").to_pylist()
    first, last = min(ticks), max(ticks)
    ms = [(tick - first) * tick_ms for tick in ticks]
    labels = list(_labels(table))
    names = list(dict.fromkeys(labels))
    panels = []
    for column in columns:
        points: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for at, label, value in zip(ms, labels, table.column(column).to_pylist(), strict=True):
            if value is not None:
                points[label].append((at, float(value)))
        lines: list[Line] = [(name or column, thin(found)) for name, found in points.items() if found]
        values = [value for _, found in lines for _, value in found]
        panels.append(Panel(column, lines, min(values, default=0.0), max(values, default=0.0)))
    heading = f"{title}: {rfc3339_of(first, tick_ms)} to {rfc3339_of(last, tick_ms)}"
    return draw_panels(heading, panels, max(1, (last - first) * tick_ms), names if any(names) else columns)


def _labels(table: pa.Table) -> Iterator[str]:
    """The name of the line of each row: its texts, and its site."""
    texts = [
        [None if value is None else f"site {value}" if f.name in NAMED else str(value) for value in table.column(f.name).to_pylist()]
        for f in table.schema
        if f.name in NAMED or pa.types.is_string(f.type)
    ]  # fmt: skip
    for at in range(table.num_rows):
        yield ", ".join(text for column in texts if (text := column[at]) is not None)


def _is_number(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))

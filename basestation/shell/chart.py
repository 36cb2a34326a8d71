"""Chart: numbers over time as lines of blocks, one line for each column and group."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from basestation.shell.answer_source import Line

BLOCKS = "▁▂▃▄▅▆▇█"
MOST_SERIES = 20


def sparkline(values: Sequence[float], width: int) -> str:
    """Values as blocks from the least to the greatest; the mean of neighbours where there are more than `width`."""
    if len(values) > width:
        edges = [i * len(values) // width for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(values), max(values)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in values)


class Chart:
    """The current answer of a query over time. Rows of several sites, or other groups, are several lines."""

    def __init__(self) -> None:
        self._columns: list[dict[str, Any]] = []
        self._rows: dict[tuple[Any, ...], list[list[Any]]] = {}  # by window or tick

    def add(self, line: Line) -> None:
        """Take a schema, or an update: a revision replaces the rows of its window."""
        match line["type"]:
            case "schema":
                self._columns = list(line["columns"])
            case "window":
                rows = self._rows.setdefault((line["tick"], line["n"], repr(line.get("t"))), [])
                for row in line.get("removed", ()):
                    rows.remove(row)
                rows += line.get("rows", line.get("added", ()))
            case "tuple" if line["weight"] > 0:
                self._rows.setdefault((line["tick"],), []).append(line["row"])
            case "tuple":
                self._rows[(line["tick"],)].remove(line["row"])

    def lines(self, width: int) -> list[str]:
        """A line for each numeric column of each group: name, least value, blocks, greatest value, last value."""
        series: dict[str, list[float]] = {}
        for _, name, value in self._points():
            series.setdefault(name, []).append(value)
        if not series:
            return ["no numbers yet"]
        longest = max(map(len, series))
        found = []
        for name, values in list(series.items())[:MOST_SERIES]:
            low, high, last = (f"{value:.4g}" for value in (min(values), max(values), values[-1]))
            room = max(8, width - longest - len(low) - len(high) - len(last) - 10)
            found.append(f"{name.ljust(longest)}  {low} {sparkline(values, room)} {high}  last {last}")
        if len(series) > MOST_SERIES:
            found.append(f"… and {len(series) - MOST_SERIES} more")
        return found

    def _points(self) -> Iterator[tuple[tuple[Any, ...], str, float]]:
        """(window, name of the series, value) in the order of time."""
        group = self._find_group()
        for key in sorted(self._rows):
            for row in self._rows[key]:
                label = "" if group is None else f"{self._columns[group]['name']} {row[group]} "
                for at, column in enumerate(self._columns):
                    if at != group and column["type"] in ("integer", "float") and row[at] is not None:
                        yield key, f"{label}{column['name']}", float(row[at])

    def _find_group(self) -> int | None:
        """The column that tells rows of one time apart: `site`, or the first string."""
        names = [str(column["name"]).rpartition(".")[2] for column in self._columns]
        if len(names) < 2:
            return None
        if "site" in names:
            return names.index("site")
        return next((at for at, column in enumerate(self._columns) if column["type"] == "string"), None)

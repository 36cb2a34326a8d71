"""Answer: the current rows of a query, for Arrow, pandas, Polars and notebooks."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moteloom.client.results import Update

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SHOWN = 20
"""Rows that a notebook shows."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an answer: the time of its window or tuple, and how many of the due readings it was computed from."""

    line: Mapping[str, Any]
    values: tuple[Any, ...]

    @property
    def used_and_due(self) -> tuple[int | None, int | None]:
        """The coverage of all sensed extents together; None without one."""
        counted = [of for of in self.line.get("coverage", {}).values() if of is not None]
        return (sum(of[0] for of in counted), sum(of[1] for of in counted)) if counted else (None, None)


class UpdateSum:
    """The rows of windows and ticks after the updates so far.

    With `is_cut` there were earlier updates, which are not in the sum. Revisions and retractions of their rows are left out then.
    """

    def __init__(self, is_cut: bool) -> None:
        self._is_cut = is_cut
        self._found: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[list[Any]]]] = {}

    def add(self, updates: Iterable[Update]) -> None:
        """Add updates in the order of their numbers."""
        found = self._found
        for update in updates:
            if update.kind not in ("window", "tuple"):
                continue
            line = update.line
            key = (update.tick, line["n"], repr(line.get("t"))) if update.kind == "window" else (update.tick, 0, "")
            if update.kind == "window" and update.revision and key not in found:
                continue
            rows = found[key][1] if key in found else []
            for row in update.removed:
                if row in rows or not self._is_cut:  # else the tuple came before the first update
                    rows.remove(row)
            found[key] = line, rows + update.rows

    def keep_newest(self, count: int) -> None:
        """Drop all but the newest windows or ticks; later updates about the others are left out."""
        if len(self._found) > count:
            self._is_cut = True
            for key in sorted(self._found)[:-count]:
                del self._found[key]

    def rows(self) -> list[Row]:
        """All rows, the oldest first."""
        return [Row(line, tuple(row)) for _, (line, rows) in sorted(self._found.items()) for row in rows]


class Answer:
    """The sum of updates: revised windows and retracted tuples are in it once, as they are now.

    `first` is the number of the first update in it, None for a live answer, which begins with a sum. A window whose first version is not among them is left out.
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]], updates: Sequence[Update]) -> None:
        self.columns = list(columns)
        first = updates[0].number if updates else 1
        self.first: int | None = first
        total = UpdateSum(is_cut=first > 1)
        total.add(updates)
        self.rows = total.rows()

    @classmethod
    def of(cls, columns: Sequence[Mapping[str, Any]], total: UpdateSum) -> "Answer":
        """The answer of a sum that goes on; later updates of that do not change it."""
        answer = cls(columns, ())
        answer.first, answer.rows = None, total.rows()
        return answer

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary for each row: `_time`, `_used`, `_due`, and the columns; a name that occurs again gets a number."""
        names = self._names()
        return [
            {"_time": row.line["time"], "_used": row.used_and_due[0], "_due": row.used_and_due[1]}
            | dict(zip(names, row.values, strict=True))
            for row in self.rows
        ]

    def to_arrow(self) -> "pyarrow.Table":
        """An Arrow table. Needs pyarrow."""
        import pyarrow as pa

        types = {"integer": pa.int64(), "float": pa.float64(), "string": pa.string(), "time": pa.int64()}
        times = [row.line["time"] for row in self.rows]
        counts = [row.used_and_due for row in self.rows]
        arrays = {
            "_time": pa.array(times, pa.string()).cast(pa.timestamp("ms", "UTC")),
            "_used": pa.array([used for used, _ in counts], pa.int64()),
            "_due": pa.array([due for _, due in counts], pa.int64()),
        }
        for at, (name, column) in enumerate(zip(self._names(), self.columns, strict=True)):
            kind = pa.float64() if column.get("scale") else types[column["type"]]
            arrays[name] = pa.array([row.values[at] for row in self.rows], kind)
        return pa.table(arrays)

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame of pandas. Needs pyarrow and pandas."""
        found: pandas.DataFrame = self.to_arrow().to_pandas()
        return found

    def to_polars(self) -> "polars.DataFrame":
        """A data frame of Polars. Needs pyarrow and Polars."""
        import polars

        found = polars.from_arrow(self.to_arrow())
        assert isinstance(found, polars.DataFrame)
        return found

    def _names(self) -> list[str]:
        names: list[str] = []
        for column in self.columns:
            name, number = str(column["name"]), 1
            while name in names:
                number += 1
                name = f"{column['name']}_{number}"
            names.append(name)
        return names

    def __repr__(self) -> str:
        return f"<Answer of {len(self)} rows: {', '.join(self._names())}>"

    def _repr_html_(self) -> str:
        """The last rows as a table, and a line for each number over all rows."""
        rows = self.to_dicts()
        names = ["_time", *self._names(), "_used", "_due"]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(row[name]))}</td>' for name in names)}</tr>" for row in rows[-SHOWN:]
        )
        plots = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{_plot([row[name] for row in rows if row[name] is not None])}</td></tr>"
            for name, column in zip(self._names(), self.columns, strict=True)
            if column["type"] in ("integer", "float")
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{len(rows)} rows</p><table>{plots}</table>"


def _plot(values: Sequence[float]) -> str:
    """Values as a line in an SVG, with the least and the greatest."""
    if not values:
        return "no values"
    low, high, width, height = min(values), max(values), 400, 60
    span, last = (high - low) or 1, max(1, len(values) - 1)
    points = " ".join(f"{i * width / last:.1f},{height - (v - low) / span * height:.1f}" for i, v in enumerate(values))
    line = f'<polyline points="{points}" fill="none" stroke="currentColor"/>'
    return f'{low:g} <svg width="{width}" height="{height}" viewBox="0 -2 {width} {height + 4}">{line}</svg> {high:g}'

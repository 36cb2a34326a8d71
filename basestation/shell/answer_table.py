"""AnswerTable: lines of answers as a table that grows, or one column a line (`\\x`)."""

from collections.abc import Iterator, Sequence
from typing import Any

from basestation.replay.table_output import format_cell
from basestation.shell.answer_source import Line


class AnswerTable:
    """The rows of one query. Rows that a revision removes begin with `-`, those that it adds with `+`."""

    def __init__(self, is_expanded: bool = False) -> None:
        self._is_expanded = is_expanded
        self._labels: list[tuple[str, bool]] = []  # of each column, and whether it is a number
        self._widths: list[int] = []

    def lines(self, line: Line) -> Iterator[str]:
        """The lines of text for a line of answers. Complete marks of epochs have none."""
        match line["type"]:
            case "schema":
                columns = [(each["name"], each["type"] != "string") for each in line["columns"]]
                self._labels = [("time", False), *columns, ("coverage", False)]
                self._widths = []
            case "tuple":
                yield from self._rows(line, [("" if line["weight"] > 0 else "-", line["row"])], "")
            case "window":
                rows = [("-", row) for row in line.get("removed", ())]
                rows += [("+", row) for row in line.get("added", ())]
                rows += [("", row) for row in line.get("rows", ())]
                coverage = _coverage(line["coverage"])
                if rows:
                    yield from self._rows(line, rows, coverage)
                else:
                    none = "the same rows" if line["revision"] else "no rows"
                    yield f"  {_time(line)}  {none}{f'  {coverage}' if coverage else ''}"
            case "ended":
                yield f"  {_time(line)}  ended: {line['code']}: {line['message']}"

    def _rows(self, line: Line, rows: Sequence[tuple[str, Sequence[Any]]], coverage: str) -> Iterator[str]:
        texts = [(sign, [_time(line), *map(format_cell, row), coverage]) for sign, row in rows]
        if self._is_expanded:
            width = max(len(label) for label, _ in self._labels)
            for sign, cells in texts:
                yield f"{sign or ' '}[ {cells[0]} ]{'-' * 20}"
                for (label, _), cell in list(zip(self._labels, cells, strict=True))[1:]:
                    if label != "coverage" or cell:
                        yield f"{label.ljust(width)} | {cell}"
            return
        if not self._widths:
            self._widths = [len(label) for label, _ in self._labels]
            self._widen(texts)
            yield f"  {self._aligned([label for label, _ in self._labels])}"
        self._widen(texts)
        yield from (f"{sign or ' '} {self._aligned(cells)}" for sign, cells in texts)

    def _widen(self, texts: Sequence[tuple[str, list[str]]]) -> None:
        for _, cells in texts:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]

    def _aligned(self, cells: Sequence[str]) -> str:
        placed = zip(cells, self._widths, self._labels, strict=True)
        return "  ".join(c.rjust(w) if is_number else c.ljust(w) for c, w, (_, is_number) in placed).rstrip()


def _time(line: Line) -> str:
    return str(line.get("time", line["tick"]))


def _coverage(coverage: dict[str, list[int] | None]) -> str:
    return ", ".join(f"{name} {of[0]} of {of[1]}" for name, of in coverage.items() if of)

"""Output: the answer of a query over history as a table, CSV, JSON lines or Parquet."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.ticks import rfc3339_of

SYSTEM = ("_tick", "_n", "_t")
MOST_WIDE = 60
"""Characters of a column of a table that are laid out; longer values push the rest of their line."""


def write_answer(table: pa.Table, output: str, path: Path | None, is_one_off: bool, tick_ms: int) -> None:
    """Write to a file, or to standard output. An answer over time has `_time`, and no number where each tick has one window."""
    table = add_time(table, is_one_off, tick_ms)
    if output == "parquet":
        if path is None:
            raise ValueError("Parquet needs a file")
        pq.write_table(table, path, compression="zstd")
        return
    if path is None:
        write_text(table, output, sys.stdout)
        return
    with path.open("w", encoding="utf-8") as file:
        write_text(table, output, file)


def write_stream(table: pa.Table, path: Path) -> None:
    """Write an Arrow IPC stream."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def add_time(table: pa.Table, is_one_off: bool, tick_ms: int) -> pa.Table:
    """An answer as users read it: `_time` beside its ticks, without columns that say nothing here."""
    if is_one_off:
        return table.drop_columns([name for name in SYSTEM if name in table.column_names])
    ticks = table.column("_tick")
    first = pa.array([rfc3339_of(tick, tick_ms) for tick in ticks.to_pylist()], pa.string())
    if "_n" in table.column_names and not any(n != 1 for n in table.column("_n").to_pylist()):
        table = table.drop_columns(["_n"])
    return table.add_column(0, "_time", first)


def write_text(table: pa.Table, output: str, file: IO[str]) -> None:
    """Write `csv`, `json` (one object a line) or `table`."""
    if output == "csv":
        file.write(",".join(map(_csv_field, table.column_names)) + "\n")
        file.writelines(",".join(map(_csv_field, row)) + "\n" for row in _rows(table))
    elif output == "json":
        for row in _rows(table):
            file.write(json.dumps(dict(zip(table.column_names, row, strict=True)), ensure_ascii=False) + "\n")
    else:
        _write_table(table, file)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv_field(value: Any) -> str:
    """Null is an empty field, and the empty string a quoted one, as in the files that a replay reads."""
    if value is None:
        return ""
    text = str(value)
    return text if text and not set(text) & set(',"\r\n') else '"' + text.replace('"', '""') + '"'


def _write_table(table: pa.Table, file: IO[str]) -> None:
    names = [name for name in table.column_names if name != "_tick" or "_time" not in table.column_names]
    cells = [["" if v is None else str(v) for v in table.column(name).to_pylist()] for name in names]
    headings = [name.removeprefix("_") if name in ("_time", "_n", "_t", "_change") else name for name in names]
    widths = [
        min(MOST_WIDE, max(map(len, [heading, *column]))) for heading, column in zip(headings, cells, strict=True)
    ]
    is_number = [pa.types.is_integer(table.column(n).type) or pa.types.is_floating(table.column(n).type) for n in names]
    for line in [headings, *zip(*cells, strict=True)]:
        laid = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ]
        file.write("  ".join(laid).rstrip() + "\n")

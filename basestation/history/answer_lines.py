"""The answer of a query over history, and differences of answers, as lines of JSON: those that a replay gives, without windows that have no rows."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import IO, Any

import pyarrow as pa

from acquisition.ticks import rfc3339_of
from basestation.history.differences import ADDED, REMOVED
from basestation.planner.plan import Plan
from basestation.results.schema import schema_of
from basestation.results.wire import schema_as_json

_KEY = "_tick", "_n", "_t"


def write_lines(table: pa.Table, plan: Plan, file: IO[str]) -> None:
    """Write the schema, and a line for each window or tuple. Rows of a window follow each other in `table`."""

    _write(file, schema_as_json(schema_of(1, plan)))
    for line, values in _read_keys(table, plan):
        if plan.kind == "window":
            _write(file, {"type": "window", **line, "revision": 0, "coverage": {}, "rows": values})
        else:
            for row in values:
                _write(file, {"type": "tuple", **line, "weight": 1, "row": row})


def write_differences(table: pa.Table, plan: Plan, file: IO[str]) -> None:
    """Write the schema, and differences as a revision: of each window the rows removed and added, of a stream each tuple with its weight."""
    _write(file, schema_as_json(schema_of(1, plan)))
    for line, values in _read_keys(table, plan):
        removed, added = ([row for change, *row in values if change == of] for of in (REMOVED, ADDED))
        if plan.kind == "window":
            _write(file, {"type": "window", **line, "revision": 1, "coverage": {}, "removed": removed, "added": added})
        else:
            for weight, rows in ((-1, removed), (1, added)):
                for row in rows:
                    _write(file, {"type": "tuple", **line, "weight": weight, "row": row})


def _write(file: IO[str], line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _read_keys(table: pa.Table, plan: Plan) -> Iterator[tuple[dict[str, Any], list[list[Any]]]]:
    """Of each window or tick what its line begins with, and the rows. Rows of a window follow each other in `table`."""
    keys = [name for name in _KEY if name in table.column_names]
    rows = (row for batch in table.to_batches() for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    at = len(keys)
    if table.column_names[:at] != keys:
        raise ValueError(f"expected the columns {keys} first, found {table.column_names}")
    for key, found in groupby(rows, key=lambda row: row[:at]):
        line = {name.removeprefix("_"): value for name, value in zip(keys, key, strict=True)} | {"query": 1}
        line["time"] = rfc3339_of(line["tick"], plan.catalog.tick_ms)
        yield line, [list(row[at:]) for row in found]

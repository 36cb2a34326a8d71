"""The answer of a query over history as lines of JSON: those that a replay gives, without windows that have no rows."""

import json
from itertools import groupby
from typing import IO, Any

import pyarrow as pa

from acquisition.ticks import rfc3339_of
from basestation.planner.plan import Plan
from basestation.results.schema import schema_of
from basestation.results.wire import schema_as_json

_KEY = "_tick", "_n", "_t"


def write_lines(table: pa.Table, plan: Plan, file: IO[str]) -> None:
    """Write the schema, and a line for each window or tuple. Rows of a window follow each other in `table`."""

    def write(line: dict[str, Any]) -> None:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")

    write(schema_as_json(schema_of(1, plan)))
    keys = [name for name in _KEY if name in table.column_names]
    rows = (row for batch in table.to_batches() for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    at = len(keys)
    if table.column_names[:at] != keys:
        raise ValueError(f"expected the columns {keys} first, found {table.column_names}")
    for key, found in groupby(rows, key=lambda row: row[:at]):
        line = {name.removeprefix("_"): value for name, value in zip(keys, key, strict=True)} | {"query": 1}
        line["time"] = rfc3339_of(line["tick"], plan.catalog.tick_ms)
        values = [list(row[at:]) for row in found]
        if plan.kind == "window":
            write({"type": "window", **line, "revision": 0, "coverage": {}, "rows": values})
        else:
            for row in values:
                write({"type": "tuple", **line, "weight": 1, "row": row})

"""Formats of results: a page of updates as CSV or an Arrow stream of rows, and the sum of updates as the current answer.

Rows are those of `basestation.results.flat`: `_weight` 1 adds a row, -1 takes one back.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from basestation.rest.control import JsonObject, ResultPage
from basestation.results.flat import flat_objects
from basestation.results.schema import make_unique

_SYSTEM = {
    "window": {"_time": "time", "_query": "integer", "_number": "integer", "_revision": "integer", "_weight": "integer",
               "_used": "integer", "_due": "integer"},
    "stream": {"_time": "time", "_query": "integer", "_number": "integer", "_index": "integer", "_weight": "integer"},
}  # fmt: skip
_TYPES = {"integer": pa.int64(), "time": pa.string(), "float": pa.float64(), "string": pa.string()}


def columns_of(page: ResultPage) -> dict[str, str]:
    """Name and type of each column of the rows of a query."""
    columns = page.schema["columns"]
    names = make_unique(column["name"] for column in columns)
    loops = {"_t": "integer"} if page.schema.get("loops") else {}
    types = {
        name: "integer" if column["type"] == "time" else column["type"]
        for name, column in zip(names, columns, strict=True)
    }
    return _SYSTEM[page.schema["kind"]] | loops | types


def rows_of(page: ResultPage) -> Iterator[dict[str, Any]]:
    """The rows of a page. Updates without rows, such as marks, have none."""
    names = make_unique(column["name"] for column in page.schema["columns"])
    for line in page.lines:
        yield from flat_objects(json.loads(line), names)


def encode_json_page(page: ResultPage) -> bytes:
    """A JSON object with the schema, the updates, and where to go on."""
    head = json.dumps({"query": page.query, "epoch": page.epoch, **page.schema})[:-1]
    return f'{head}, "updates": [{", ".join(page.lines)}], "next": {page.next}}}'.encode()


def encode_json_lines(page: ResultPage) -> bytes:
    """An update on each line."""
    return "".join(f"{line}\n" for line in page.lines).encode()


def to_csv(page: ResultPage) -> bytes:
    """A header and a line for each row; null is an empty field, the empty string is `""`."""
    columns = columns_of(page)
    lines = [",".join(map(_field, columns))]
    lines += [",".join(_field(row.get(name)) for name in columns) for row in rows_of(page)]
    return ("\r\n".join(lines) + "\r\n").encode()


def _field(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    if not text or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def to_arrow(page: ResultPage) -> bytes:
    """The rows as an Arrow IPC stream."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns_of(page).items()])
    rows = list(rows_of(page))
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(pa.Table.from_arrays(arrays, schema=schema))
    written: bytes = sink.getvalue().to_pybytes()
    return written


def sum_updates(lines: Iterable[str], last: int) -> dict[str, list[JsonObject]]:
    """The newest `last` windows after all their revisions, or the newest tuples that no update took back.

    A window whose first answer is not among the lines is left out.
    """
    windows: dict[tuple[int, int, int], dict[str, Any]] = {}
    tuples: dict[int, JsonObject] = {}
    for line in map(json.loads, lines):
        if line["type"] == "tuple":
            if line["weight"] > 0:
                tuples[line["index"]] = _without(line, ("type", "query", "number", "weight"))
            else:
                tuples.pop(line["index"], None)
        elif line["type"] == "window":
            key = line["tick"], line["n"], line.get("t", 0)  # windows of a loop may share tick and number
            if line["revision"] == 0:
                windows[key] = _without(line, ("type", "query", "number"))
            elif key in windows:
                rows = _revise(windows[key]["rows"], line["removed"], line["added"])
                windows[key] |= {"revision": line["revision"], "coverage": line["coverage"], "rows": rows}
    return {
        "windows": list(deque((windows[key] for key in sorted(windows)), last)),
        "tuples": list(deque((tuples[index] for index in sorted(tuples)), last)),
    }


def _without(line: JsonObject, names: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in names}


def _revise(rows: list[Any], removed: list[Any], added: list[Any]) -> list[Any]:
    """The rows after a revision: of equal rows the last one is removed (semantics 12.1)."""
    kept = rows[::-1]
    for row in removed:
        kept.remove(row)
    return [*kept[::-1], *added]

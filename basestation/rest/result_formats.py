"""Formats of results: rows as CSV or an Arrow stream, a page of updates as JSON.

Rows are those of `basestation.results.flat`: `_weight` 1 adds a row, -1 takes one back.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
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
_TYPES = {
    "integer": pa.int64(), "integers": pa.list_(pa.int64()), "time": pa.string(), "float": pa.float64(), "string": pa.string(),
}  # fmt: skip


def columns_of(page: ResultPage) -> dict[str, str]:
    """Name and type of each column of the rows of a query."""
    columns = page.schema["columns"]
    loops = {"_t": "integers" if page.schema.get("several_loops") else "integer"} if page.schema.get("loops") else {}
    types = {
        name: "integer" if column["type"] == "time" else column["type"]
        for name, column in zip(names_of(page), columns, strict=True)
    }
    return _SYSTEM[page.schema["kind"]] | loops | types


def names_of(page: ResultPage) -> list[str]:
    """The names of the columns of a query, each once."""
    return make_unique(column["name"] for column in page.schema["columns"])


def rows_of(page: ResultPage) -> Iterator[dict[str, Any]]:
    """The rows of a page. Updates without rows, such as marks, have none."""
    names = names_of(page)
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
    """The rows of a page as CSV."""
    return encode_csv(columns_of(page), rows_of(page))


def to_arrow(page: ResultPage) -> bytes:
    """The rows of a page as an Arrow IPC stream."""
    return encode_arrow(columns_of(page), rows_of(page))


def encode_csv(columns: Iterable[str], rows: Iterable[JsonObject]) -> bytes:
    """A header and a line for each row; null is an empty field, the empty string is `""`."""
    names = list(columns)
    lines = [",".join(map(_field, names))]
    lines += [",".join(_field(row.get(name)) for name in names) for row in rows]
    return ("\r\n".join(lines) + "\r\n").encode()


def _field(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    if not text or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def encode_arrow(columns: Mapping[str, str], rows: Iterable[JsonObject]) -> bytes:
    """The rows as an Arrow IPC stream; `columns` has the type of each."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])
    found = list(rows)
    arrays = [pa.array([row.get(field.name) for row in found], field.type) for field in schema]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(pa.Table.from_arrays(arrays, schema=schema))
    written: bytes = sink.getvalue().to_pybytes()
    return written

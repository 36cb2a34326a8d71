"""Rows as JSON: an object on each line, or an array of objects.

Arrow reads blocks of lines whose values have the types of their attributes. A block with anything else is read line by line, so
that each wrong line has its own error.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.schema import Attribute, Type
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.value_conversion import quote_value
from gateway.source import did_you_mean

BLOCK_BYTES = 1 << 20
DEEPEST_LINE = 1_000_000
"""Bytes of one line; Python reads nested values of a longer one too slowly."""
Reject = Callable[[int, str | None, str, str], None]
"""Takes row, column, code and message of a wrong row."""
_SYSTEM = "_tick", "_time"


def read_json_lines(body: bytes, extent: Extent, reject: Reject) -> Iterator[tuple[RecordedTable, IntArray]]:
    """The rows of a body, block by block, each with its line number. An array of objects counts as a line for each."""
    if body[:64].lstrip()[:1] == b"[":
        yield from _read_objects(enumerate(_parse_array(body), 1), extent, reject)
        return
    begin, line = 0, 1
    while begin < len(body):
        end = body.find(b"\n", min(begin + BLOCK_BYTES, len(body))) + 1 or len(body)
        block = body[begin:end]
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        table = _parse_block(block, extent)
        if table is not None and table.num_rows == count:
            columns = dict(zip(table.schema.names, table.columns, strict=True))
            yield RecordedTable("body", columns, count, partial=True), np.arange(line, line + count)
        else:
            yield from _read_objects(_parse_lines(block, line, reject), extent, reject)
        begin, line = end, line + count


def _parse_block(block: bytes, extent: Extent) -> Any:
    """The block as an Arrow table; None where a line is not an object of the attributes with values of their types."""
    if b'""' in block.replace(b':""', b"").replace(b': ""', b""):
        return None  # Arrow takes an attribute without a name
    for time in pa.int64(), pa.string():
        fields = [(attribute.name, _arrow_type(attribute, time)) for attribute in extent.schema]
        fields += [(name, time) for name in _SYSTEM if b'"' + name.encode() + b'"' in block]
        parse = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="error")
        try:
            return pj.read_json(pa.BufferReader(block), pj.ReadOptions(False, len(block) + 1), parse)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _arrow_type(attribute: Attribute, time: Any) -> Any:
    if attribute.type is Type.STRING:
        return pa.string()
    if attribute.type is Type.TIME:
        return time
    return pa.int64() if attribute.type.whole else pa.float64()


def _parse_array(body: bytes) -> list[object]:
    try:
        found = json.loads(body, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InputError("SN502", f"is not JSON: {error}", "body") from None
    return list(found)


def _parse_lines(block: bytes, first: int, reject: Reject) -> Iterator[tuple[int, object]]:
    """(line number, value) of each line that is JSON; blank lines are none."""
    for number, line in enumerate(block.split(b"\n"), first):
        if not line.strip():
            continue
        if len(line) > DEEPEST_LINE:
            reject(number, None, "SN502", f"a line has at most {DEEPEST_LINE:,} bytes")
            continue
        try:
            yield number, json.loads(line, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
            reject(number, None, "SN502", f"is not JSON: {error}")


def _reject_constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON number")


def _read_objects(
    found: Iterator[tuple[int, object]], extent: Extent, reject: Reject
) -> Iterator[tuple[RecordedTable, IntArray]]:
    """The objects as rows; others are rejected, and those with a key that is no attribute."""
    known = [*extent.schema.names, *_SYSTEM]
    rows: list[dict[str, object]] = []
    numbers: list[int] = []
    for number, value in found:
        if not isinstance(value, dict):
            reject(number, None, "SN502", f"expected an object such as {_example(extent)}")
            continue
        unknown = next((key for key in value if key not in known), None)
        if unknown is not None:
            help = did_you_mean(unknown, known) or "attributes are " + ", ".join(f"`{name}`" for name in known)
            quoted = quote_value(unknown)  # it may hold half a character, which no answer can
            reject(number, quoted[1:-1], "SN504", f"unknown column {quoted}; {help}")
            continue
        rows.append(value)
        numbers.append(number)
    names = [name for name in known if any(name in row for row in rows)]
    if rows:
        columns = {name: [row.get(name) for row in rows] for name in names}
        yield RecordedTable("body", columns, len(rows), partial=True), np.array(numbers)


def _example(extent: Extent) -> str:
    first = next(iter(extent.schema))
    return json.dumps({first.name: "text" if first.type is Type.STRING else 1})

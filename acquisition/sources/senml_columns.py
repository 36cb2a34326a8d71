"""SenML packs read as columns: those that devices send day by day, in which no record needs a look of its own.

Arrow reads the records as lines. A pack with other fields, with wrong records, or with values that are no numbers or texts of their
attributes is read record by record instead (`acquisition.sources.senml`), with the same tuples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from acquisition.arrays import BoolArray, FloatArray, IntArray
from acquisition.extent import Extent
from acquisition.schema import Attribute, Type
from acquisition.sources.arrow_arrays import mask_to_numpy
from acquisition.sources.recorded_table import RecordedTable

SEPARATORS = ":/_."
_FIELDS = pa.schema([
    ("bn", pa.string()), ("bt", pa.float64()), ("bu", pa.string()), ("bver", pa.int64()), ("n", pa.string()), ("u", pa.string()),
    ("t", pa.float64()), ("v", pa.float64()), ("vs", pa.string()),
])  # fmt: skip
_EXACT = 2.0**53


@dataclass(frozen=True, slots=True)
class TimeRules:
    """Seconds below `relative` count from `now_ms`; none is beyond `largest`."""

    relative: int
    largest: int
    tick_ms: int
    now_ms: int


def read_columns(
    body: bytes, extent: Extent, device: str | None, rules: TimeRules
) -> tuple[RecordedTable, IntArray] | None:
    """The tuples of a pack, each with the number of its first record; None where the records have to be read one by one.

    `device` is the attribute that gets the name before that of the attribute, if there is one.
    """
    records = _parse(body)
    if records is None or not len(records) or not _has_values(records) or not _has_units(records, extent):
        return None
    devices = _read_devices(records)
    seconds = _fill_down(records["bt"]) + _numbers(records["t"])
    if devices is None or not (np.abs(seconds) <= rules.largest).all():
        return None
    since = np.where(seconds < rules.relative, rules.now_ms, 0)
    has_tick, tick = seconds != 0, np.floor((seconds * 1_000 + since) / rules.tick_ms).astype(np.int64)
    rows, first = _number_tuples(devices[0], np.where(has_tick, tick, np.iinfo(np.int64).min))
    columns: dict[str, Any] = {}
    for attribute in extent.schema:
        at = mask_to_numpy(pc.equal(records["n"], attribute.name))
        if at.any():
            column = _read_column(records, attribute, at, rows, len(first))
            if column is None:
                return None
            columns[attribute.name] = column
    if device is not None:
        columns[device] = devices[1].take(pa.array(devices[0][first]))
    columns["_tick"] = pa.array(tick[first], mask=~has_tick[first])
    return RecordedTable("body", columns, len(first), partial=True), first + 1


def _parse(body: bytes) -> Any:
    """The records as an Arrow table; None where they have other fields, values of other types, or bytes that are no UTF-8.

    A text that has the marks between two records in it is cut there, which leaves a line that is no JSON.
    """
    try:
        body.decode()
    except UnicodeDecodeError:  # Arrow takes it for a text, and fails when that is read
        return None
    lines = body.strip()
    if not (lines.startswith(b"[") and lines.endswith(b"]")) or b"null" in lines or b"\n" in lines or b"\\" in lines:
        return None
    lines = lines[1:-1].replace(b"}, {", b"}\n{").replace(b"},{", b"}\n{")
    parse = pj.ParseOptions(explicit_schema=_FIELDS, unexpected_field_behavior="error")
    try:
        table = pj.read_json(pa.BufferReader(lines), pj.ReadOptions(False, len(lines) + 1), parse)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if table.num_rows != lines.count(b"\n") + 1:
        return None
    columns = {name: column.combine_chunks() for name, column in zip(table.schema.names, table.columns, strict=True)}
    return pa.RecordBatch.from_arrays([_whole(column) for column in columns.values()], list(columns))


def _whole(column: Any) -> Any:
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def _has_values(records: Any) -> bool:
    """Whether each record has one value, and a name."""
    both = pc.and_(records["v"].is_valid(), records["vs"].is_valid())
    one = pc.or_(records["v"].is_valid(), records["vs"].is_valid())
    return records["n"].null_count == 0 and pc.all(one).as_py() and not pc.any(both).as_py()


def _has_units(records: Any, extent: Extent) -> bool:
    """Whether each name is that of an attribute, and each unit that of its attribute."""
    units = pc.coalesce(records["u"], pc.fill_null_forward(records["bu"]))
    pairs = pa.table({"n": records["n"], "u": units}).group_by(["n", "u"]).aggregate([]).to_pylist()
    for pair in pairs:
        attribute = extent.schema.find(pair["n"])
        if attribute is None or any(mark in pair["n"] for mark in SEPARATORS):
            return False
        if None not in (attribute.unit, pair["u"]) and attribute.unit != pair["u"]:
            return False
    return True


def _read_devices(records: Any) -> tuple[IntArray, Any] | None:
    """The device of each record as a position among those that there are; None where a base name ends with no separator."""
    filled = pc.fill_null_forward(records["bn"])
    if filled.null_count:
        return None
    coded = filled.dictionary_encode()
    names = coded.dictionary
    if not pc.all(pc.match_substring_regex(names, f"[{SEPARATORS}]$")).as_py():
        return None
    devices = pc.utf8_slice_codeunits(names, 0, -1).dictionary_encode()  # `a/` and `a:` are one
    codes = np.asarray(devices.indices)[np.asarray(coded.indices)]
    return codes.astype(np.int64), devices.dictionary


def _fill_down(column: Any) -> FloatArray:
    return _numbers(pc.fill_null_forward(column))


def _numbers(column: Any) -> FloatArray:
    found: FloatArray = np.asarray(pc.fill_null(column, 0.0))
    return found


def _number_tuples(devices: IntArray, ticks: IntArray) -> tuple[IntArray, IntArray]:
    """The tuple of each record, numbered as they begin, and the position of the first record of each."""
    times = np.unique(ticks, return_inverse=True)[1]
    keys = devices * (int(times.max()) + 1) + times
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


def _read_column(records: Any, attribute: Attribute, at: BoolArray, rows: IntArray, count: int) -> Any:
    """The values of an attribute, null where a tuple has none; None where some have another type."""
    values = records["vs" if attribute.type is Type.STRING else "v"].filter(pa.array(at))
    if values.null_count or attribute.type is Type.TIME:
        return None
    last = np.full(count, -1)
    last[rows[at]] = np.arange(len(values))  # of several values of a tuple the last one counts
    if attribute.type.whole:
        numbers = np.asarray(values)
        if not (np.abs(numbers) < _EXACT).all() or (numbers != np.floor(numbers)).any():
            return None
        values = pa.array(numbers.astype(np.int64))
    return values.take(pa.array(last, mask=last < 0))

"""The layout of archive files: columns, types and folders, for writers and readers.

    archive/extent=<name>/date=<UTC day>/part-<entry>-<random>.zstd.parquet
    reports/extent=<name>/date=<UTC day>/…    readings that motes filtered: keys alone, weight 0

A file has the columns of SYSTEM and one column per attribute, sorted by site and tick. An attribute with a scale is a
decimal of that scale: exact for every reader, and 64-bit multiples inside the file. `_index` counts the tuples of an
extent in the order of their delivery. A correction has the `_index` of the pushed tuple that it changes and a `_revision` above
0; its `_weight` is -1 where it retracts the tuple, and with `_index` 0 it names a reading by its tick and site.
"""

import hashlib
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.batch import Batch, add_missing_columns, dtype_of, mask_of
from acquisition.extent import Extent
from acquisition.schema import Attribute, Type
from acquisition.ticks import date_of
from basestation.archive.manifest import ArchiveFile
from basestation.archive.numbering import INDEX, REVISION
from basestation.archive.reports import TREES
from gateway.errors import MoteloomError

SUFFIX = ".zstd.parquet"
DIGITS = 18  # the most decimal digits that Parquet stores in 64 bits
SYSTEM = (
    pa.field("_tick", pa.int64(), nullable=False),
    pa.field("_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("_site", pa.int64(), nullable=False),
    pa.field("_index", pa.int64(), nullable=False),
    pa.field("_arrival", pa.int64(), nullable=False),
    pa.field("_weight", pa.int8(), nullable=False),
    pa.field("_revision", pa.int32(), nullable=False),
)
LAYOUT = "2"
"""In the metadata of each file; files of layout 1 have no `_index` and no `_revision`."""
ASCENDING = ("_tick", "_time", "_site", "_index", "_arrival")
"""Columns whose differences are written, since each is almost the one before it."""
ROW_GROUP = 131_072
"""Rows of a group: a reader skips groups by the least and greatest site and tick in them."""

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Of the years 1 and 9999: ticks outside them stand under the first or the last date."""

_SYSTEM_NAMES = ("_tick", "_site", "_arrival", "_weight")


class ArchiveSchemaError(MoteloomError):
    """A file of the archive has columns that do not fit; the message names both."""


def extent_folder(root: Path, extent: str) -> Path:
    """The folder of an extent; `reports/lab` has the filter reports of the extent `lab`."""
    tree, _, name = extent.rpartition("/")
    return root / (tree or TREES[0]) / f"extent={name}"


def day_folder(root: Path, extent: str, day: str) -> Path:
    return extent_folder(root, extent) / f"date={day}"


def arrow_type(attribute: Attribute) -> pa.DataType:
    if attribute.scale is not None:
        return pa.decimal128(DIGITS, attribute.scale)
    if attribute.type is Type.STRING:
        return pa.string()
    return pa.int64() if attribute.type.whole else pa.float64()


def arrow_schema(extent: Extent, tick_ms: int) -> pa.Schema:
    """The schema of an extent's files, with units, the length of a tick and the version of the schema in the metadata."""
    fields = [pa.field(a.name, arrow_type(a), metadata={"unit": a.unit} if a.unit else None) for a in extent.schema]
    metadata = {
        "moteloom.extent": extent.name,
        "moteloom.kind": str(extent.kind),
        "moteloom.tick_ms": str(tick_ms),
        "moteloom.layout": LAYOUT,
        "moteloom.schema": schema_version(fields),
    }
    return pa.schema([*SYSTEM, *fields], metadata=metadata)


def schema_version(fields: Iterable[pa.Field]) -> str:
    """A short digest of the attributes: equal for equal names, types, scales and units."""
    parts = [f"{field.name} {field.type} {(field.metadata or {}).get(b'unit', b'').decode()}" for field in fields]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def read_tick_ms(root: Path, file: ArchiveFile) -> int:
    """The length of a tick by which a file counts, in ms. OSError where it cannot be read."""
    path = day_folder(root, file.extent, file.day) / file.name
    try:
        metadata = pq.read_schema(path).metadata or {}
        return int(metadata[b"moteloom.tick_ms"])
    except (pa.ArrowException, KeyError, ValueError) as why:
        raise OSError(f"{path} is damaged: {why}") from why


def table_of(extent: Extent, batch: Batch, tick_ms: int) -> pa.Table:
    """A numbered batch (`basestation.archive.numbering`) as an Arrow table, as it is written to a file."""
    index, revision = batch.columns[INDEX], batch.columns[REVISION]
    batch = add_missing_columns(extent.schema, batch)
    schema = arrow_schema(extent, tick_ms)
    time = pa.array(dated_ticks(batch.tick, tick_ms) * (tick_ms * 1000), pa.int64()).cast(SYSTEM[1].type)
    weight = pa.array(batch.weight.astype(np.int8))
    arrays = [pa.array(batch.tick), time, pa.array(batch.site), pa.array(index), pa.array(batch.arrival), weight]
    arrays.append(pa.array(revision.astype(np.int32)))
    arrays += [_array(batch.columns[a.name], mask_of(batch, a.name), a) for a in extent.schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def batch_of(extent: Extent, table: pa.Table) -> Batch:
    """A table of a file as a batch."""
    columns, valid = {}, {}
    for a in extent.schema:
        array = table.column(a.name).combine_chunks()
        mask = np.asarray(array.is_valid())
        columns[a.name] = _values(array, a)
        if not mask.all():
            valid[a.name] = mask
    tick, site, arrival, weight = (np.asarray(table.column(name)).astype(np.int64) for name in _SYSTEM_NAMES)
    return Batch(tick, site, arrival, weight, columns, valid)


def conform(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The rows of a file under a newer schema: a column that it lacks is null, a narrower one is widened.

    ArchiveSchemaError where a column of the file does not fit, as where its unit is another.
    """
    arrays = []
    for field in schema:
        at = table.schema.get_field_index(field.name)
        if at < 0:
            absent = None if field.nullable else 0  # layout 1 has no `_index` and no `_revision`
            arrays.append(pa.repeat(pa.scalar(absent, field.type), table.num_rows))
            continue
        found, column = table.schema.field(at), table.column(at)
        units = [((each.metadata or {}).get(b"unit") or b"").decode() or "no unit" for each in (found, field)]
        if units[0] != units[1]:
            raise ArchiveSchemaError(f"{name}: expected `{field.name}` in {units[1]}, found {units[0]}")
        try:
            arrays.append(column if found.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as why:
            raise ArchiveSchemaError(
                f"{name}: expected `{field.name}` as {field.type}, found {found.type}: {why}"
            ) from why
    return pa.Table.from_arrays(arrays, schema=schema)


def days_of(batch: Batch, tick_ms: int) -> list[tuple[date, Batch]]:
    """The tuples of each UTC day, in order."""
    tick, day = dated_ticks(batch.tick, tick_ms), day_numbers(batch.tick, tick_ms)
    each, first = np.unique(day, return_index=True)
    return [(date_of(int(tick[at]), tick_ms), batch.take(day == n)) for n, at in zip(each, first, strict=True)]


def day_numbers(tick: IntArray, tick_ms: int) -> IntArray:
    """The UTC day of each tick since 1970. A tick that spans midnight belongs to the day in which it begins."""
    return dated_ticks(tick, tick_ms) * tick_ms // 86_400_000


def dated_ticks(tick: IntArray, tick_ms: int) -> IntArray:
    """The ticks, or the nearest ones that have a date: a mote whose clock is wrong may send any."""
    return np.clip(tick, -(-FIRST_MS // tick_ms), LAST_MS // tick_ms)


def _array(column: AnyArray, mask: BoolArray, attribute: Attribute) -> pa.Array:
    if attribute.scale is None:
        return pa.array(column, arrow_type(attribute), mask=~mask)
    # A decimal of Arrow is 128 bits; the upper half of a 64-bit number is its sign, repeated.
    halves = np.stack([column, column >> 63], axis=1).astype("<i8")
    validity = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(arrow_type(attribute), len(column), [validity, pa.py_buffer(halves)])


def _values(array: pa.Array, attribute: Attribute) -> AnyArray:
    if attribute.scale is not None:
        lower = np.frombuffer(array.buffers()[1], "<i8")[::2][array.offset : array.offset + len(array)]
        return np.where(np.asarray(array.is_valid()), lower, 0)
    if attribute.type is Type.STRING:
        return np.array(array.to_pylist(), object)
    zero = 0 if attribute.type.whole else 0.0
    values: AnyArray = array.fill_null(zero).to_numpy(zero_copy_only=False).astype(dtype_of(attribute))
    return values

"""Transfer: readings of an archive as one table that a replay takes, and recorded readings as files of an archive."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.sources.batch_conversion import batches_of
from acquisition.sources.python_values import open_file
from basestation.archive.compaction import ArchiveDay, drop_copies, unify_schemas
from basestation.archive.layout import conform, days_of, table_of
from basestation.archive.manifest import ArchiveFile
from basestation.archive.numbering import INDEX, REVISION
from basestation.archive.parquet import ParquetArchive, read_listed

IMPORTED = 0
"""The entry in the names of imported files, and the `_index` of their tuples: no station counted them."""


def export_readings(root: Path, days: Sequence[ArchiveDay], first: int, last: int) -> pa.Table:
    """The readings of some days with first <= tick <= last, in the order of their delivery, copies of a delivery left out.

    A correction of a reading has `_replaces` 0, as an input of a replay has it. Pushed tuples, which an input cannot name by key,
    come as corrected. OSError names a file that cannot be read.
    """
    files = [file for day in days for file in day.files if file.first <= last and first <= file.last]
    tables, names = [read_listed(root, file) for file in files], [file.name for file in files]
    schema = unify_schemas([table.schema for table in tables], names)
    whole = in_delivery_order(
        [conform(table, schema, name) for table, name in zip(tables, names, strict=True)], first, last
    )
    corrects = pc.greater(whole["_revision"], 0)
    if not pc.any(corrects).as_py():
        return whole
    if (schema.metadata or {}).get(b"moteloom.kind") == b"pushed":
        return _apply_corrections(whole)
    names = pc.and_(corrects, pc.equal(whole["_index"], 0))  # others are insertions
    replaces = pc.if_else(names, pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
    return whole.append_column(pa.field("_replaces", pa.int64()), replaces)


def in_delivery_order(tables: Sequence[pa.Table], first: int, last: int) -> pa.Table:
    """The rows of tables of one schema with first <= tick <= last, in the order of their delivery, copies of a delivery left out."""
    whole = pa.concat_tables(tables)
    tick = whole["_tick"].to_numpy()
    whole = whole.filter(pa.array((tick >= first) & (tick <= last)))
    keys = [whole[name].to_numpy() for name in ("_site", "_tick", "_index", "_revision", "_arrival")]
    return drop_copies(whole.take(pa.array(np.lexsort(keys))).combine_chunks())


def _apply_corrections(table: pa.Table) -> pa.Table:
    """The tuples of a pushed extent with the values of their last correction, in the order and with the arrival of their delivery."""
    tick, index, arrival, revision, weight = (
        table[name].to_numpy() for name in ("_tick", "_index", "_arrival", "_revision", "_weight")
    )
    order = np.lexsort((revision, arrival, tick, index))
    begins = (revision[order] == 0) | (np.diff(index[order], prepend=-1) != 0) | (np.diff(tick[order], prepend=-1) != 0)
    first = order[begins]
    last = order[np.append(np.flatnonzero(begins)[1:], len(order)) - 1]
    kept = (weight[last] > 0) & (revision[first] == 0)
    kept = np.flatnonzero(kept)[np.argsort(first[kept])]
    delivered, corrected = table.take(pa.array(first[kept])), table.take(pa.array(last[kept]))
    for name in ("_arrival", "_revision"):
        corrected = corrected.set_column(corrected.schema.get_field_index(name), name, delivered[name])
    return corrected.cast(table.schema)


def latest_version(table: pa.Table) -> pa.Table:
    """The rows of the newest version among those of a stored extent, with its attributes alone."""
    tick = table["_tick"].to_numpy()
    is_row = (tick == tick.max()) & (table["_weight"].to_numpy() == 1)
    system = [name for name in table.column_names if name.startswith("_")]
    return table.filter(pa.array(is_row)).drop_columns(system)


def stage_recording(
    archive: ParquetArchive, extent: Extent, path: Path, tick_ms: int, present: Mapping[str, ArchiveDay]
) -> tuple[list[ArchiveFile], int]:
    """Stage the tuples of a recorded file, by day; (the files, how many readings are in the archive already).

    `present` has the days of the extent. Raises InputError where the file cannot be read, or has corrections.
    """
    batches = [empty_batch(extent.schema), *batches_of(open_file(path), extent, tick_ms)]
    if any(batch.replaces is not None or (batch.weight != 1).any() for batch in batches):
        raise InputError(
            "SN509", "an archive takes no corrections: leave out `_replaces` and negative `_weight`", str(path)
        )
    files, known = [], 0
    try:
        for date, tuples in days_of(concatenate(batches), tick_ms):
            day = date.isoformat()
            if extent.kind is ExtentKind.SENSED and day in present:
                is_new = ~_is_present(archive.root, present[day], tuples)
                known += int((~is_new).sum())
                tuples = tuples.take(is_new)
            if len(tuples):
                zeros = np.zeros(len(tuples), np.int64)
                columns = {**tuples.columns, INDEX: zeros, REVISION: zeros}
                numbered = Batch(tuples.tick, tuples.site, tuples.arrival, tuples.weight, columns, tuples.valid)
                files.append(archive.stage_table(IMPORTED, extent.name, day, table_of(extent, numbered, tick_ms)))
    except BaseException:
        archive.discard(files)
        raise
    return files, known


def _is_present(root: Path, day: ArchiveDay, tuples: Batch) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which readings have a tick and site that the archive has already."""
    keys: set[tuple[int, int]] = set()
    for file in day.files:
        table = read_listed(root, file)
        keys.update(zip(table["_tick"].to_pylist(), table["_site"].to_pylist(), strict=True))
    pairs = zip(tuples.tick.tolist(), tuples.site.tolist(), strict=True)
    return np.array([pair in keys for pair in pairs], bool)

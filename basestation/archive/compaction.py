"""Compaction: one file in the place of the many that an extent's day has.

    python -m basestation.archive.compaction ROOT < job        # a process of its own beside a running station

The merge only reads files that never change and writes a staged one. The caller lists the new file and strikes the old
ones off in one transaction, and settles the tree.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.arrays import BoolArray
from basestation.archive.layout import SYSTEM, ArchiveSchemaError, conform, schema_version
from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import STAGING, file_name, read_listed, sort_rows, write_file

AT_ONCE = 500_000
"""Rows that are sorted together: more are in memory only as they were read."""
NICE = 10
"""Added to the niceness of a merge: frames and answers come first."""


@dataclass(frozen=True, slots=True)
class ArchiveDay:
    """The files of an extent's UTC day."""

    extent: str
    day: str
    files: tuple[ArchiveFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def days_of_files(files: Iterable[ArchiveFile]) -> Iterator[ArchiveDay]:
    """The listed files by extent and day, without those that leave."""
    kept = sorted((f for f in files if not f.is_removed), key=lambda f: (f.extent, f.day, f.name))
    for (extent, day), of_day in groupby(kept, key=lambda f: (f.extent, f.day)):
        yield ArchiveDay(extent, day, tuple(of_day))


def merge_day(root: Path, day: ArchiveDay, name: str | None = None) -> ArchiveFile:
    """Stage one file, under a new name or the given one, with the rows of a day's files. ArchiveSchemaError, OSError where they cannot be merged.

    A reading or tuple that stands there twice, as after a restore, is kept once.
    """
    tables = [read_listed(root, file) for file in day.files]
    schema = unify_schemas([table.schema for table in tables], [file.name for file in day.files])
    is_sensed = (schema.metadata or {}).get(b"moteloom.kind") == b"sensed"
    tables = [sort_rows(conform(table, schema, file.name)) for table, file in zip(tables, day.files, strict=True)]
    entry = max(int(file.name.split("-")[1]) for file in day.files)
    path = root / STAGING / (name or file_name(entry))
    drop = drop_repeated if is_sensed else drop_copies
    parts = (drop(part) for part in merge_sorted(tables))
    return write_file(path, day.extent, day.day, schema, parts)


def merge_sorted(tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables that are sorted by site, in sorted parts of some AT_ONCE rows, each with all rows of its sites."""
    sites = [table["_site"].to_numpy() for table in tables]
    each, counts = np.unique(np.concatenate(sites), return_counts=True)
    part_of = (np.cumsum(counts) - counts) // AT_ONCE
    for number in np.unique(part_of):
        least, most = each[part_of == number][[0, -1]]
        bounds = [(np.searchsorted(site, least), np.searchsorted(site, most, "right")) for site in sites]
        slices = [table.slice(first, behind - first) for table, (first, behind) in zip(tables, bounds, strict=True)]
        yield sort_rows(pa.concat_tables(slices).combine_chunks())


def unify_schemas(schemas: list[pa.Schema], names: list[str]) -> pa.Schema:
    """The schema under which all files can be read: each attribute of any of them, as wide as the widest.

    The newest file is the last. ArchiveSchemaError where types do not fit or units differ.
    """
    newest = schemas[-1]
    try:
        bare = pa.unify_schemas([schema.remove_metadata() for schema in schemas], promote_options="permissive")
    except pa.ArrowException as why:
        raise ArchiveSchemaError(f"{names[0]} … {names[-1]} have attributes that do not fit: {why}") from why
    units: dict[str, dict[bytes, bytes] | None] = {}
    for schema in schemas:
        units |= {field.name: field.metadata for field in schema if field.metadata or field.name not in units}
    system = {field.name for field in SYSTEM}
    fields = [field.with_metadata(units[field.name]) for field in bare if field.name not in system]
    metadata = {**(newest.metadata or {}), b"moteloom.schema": schema_version(fields).encode()}
    return pa.schema([*SYSTEM, *fields], metadata=metadata)


def drop_repeated(table: pa.Table) -> pa.Table:
    """Sorted rows without those that repeat a reading of the same site and tick in every attribute."""
    return _drop(
        table, _is_repeated(table, [name for name in table.column_names if name not in ("_index", "_arrival")])
    )


def drop_copies(table: pa.Table) -> pa.Table:
    """Sorted rows without those that are one tuple again: a station gives each `_index` of an extent to one delivery.

    Tuples with `_index` 0 were not counted by a station, and stay.
    """
    is_counted = table["_index"].to_numpy()[1:] > 0
    return _drop(table, _is_repeated(table, table.column_names) & is_counted)


def _is_repeated(table: pa.Table, names: Sequence[str]) -> BoolArray:
    """Of each row but the first whether it has the values of the row before it."""
    count = len(table)
    repeats = np.ones(max(0, count - 1), bool)
    for name in names:
        before, after = table[name].slice(0, count - 1), table[name].slice(1)
        equal = pc.fill_null(pc.equal(before, after), False)
        both_null = pc.and_(pc.is_null(before), pc.is_null(after))
        repeats &= pc.or_(equal, both_null).to_numpy()
    return repeats


def _drop(table: pa.Table, repeats: BoolArray) -> pa.Table:
    return table.filter(pa.array(np.append([True], ~repeats)[: len(table)]))


def main() -> int:
    """Merge the day that standard input describes; print the staged file, or why there is none."""
    os.nice(NICE)
    job = json.load(sys.stdin)
    day = ArchiveDay(job["extent"], job["day"], tuple(ArchiveFile(**file) for file in job["files"]))
    try:
        print(json.dumps(asdict(merge_day(Path(sys.argv[1]), day, job["name"]))))
    except (ArchiveSchemaError, OSError) as why:
        print(json.dumps({"failure": str(why)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

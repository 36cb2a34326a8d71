"""Archive views: the Parquet files of a data directory and the versions of its tables, as views of a Spark session."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Type
from acquisition.sources.batch_conversion import table_of as table_of_file
from acquisition.sources.python_values import read_file
from basestation.algebra.vector import Vector
from basestation.archive.layout import SUFFIX, extent_folder, table_of
from basestation.archive.numbering import INDEX, REVISION
from basestation.history.statement import ArchiveView

if TYPE_CHECKING:
    from basestation.archive.spark.session import SparkSession

Version = tuple[int, Mapping[str, Vector]]
"""(first tick, columns) of a version of a table."""
_SYSTEM = "_tick BIGINT, _site BIGINT, _index BIGINT, _arrival BIGINT, _weight TINYINT, _revision INT"


@dataclass(frozen=True, slots=True)
class ExtentFiles:
    """The files of an extent: how many, their rows and bytes, days, and the first and last tick. From their footers alone."""

    extent: str
    files: int
    rows: int
    bytes: int
    days: tuple[str, ...]
    first: int
    last: int
    last_arrival: int
    corrections: int


def list_files(root: Path, extent: str) -> list[Path]:
    """The files of an extent, oldest day first."""
    return sorted(extent_folder(root, extent).glob(f"date=*/part-*{SUFFIX}"))


def describe_extent(root: Path, extent: str) -> ExtentFiles | None:
    """Read the footers of an extent's files; None without files. pyarrow.ArrowInvalid names a damaged file."""
    paths = list_files(root, extent)
    rows = size = 0
    ends: dict[str, list[int]] = {"_tick": [], "_arrival": [], "_revision": [0]}
    for path in paths:
        try:
            meta = pq.read_metadata(path)
        except pa.ArrowInvalid as why:
            raise pa.ArrowInvalid(f"{path} is no whole Parquet file: {why}") from why
        rows, size = rows + meta.num_rows, size + path.stat().st_size
        for group in (meta.row_group(at) for at in range(meta.num_row_groups)):
            for column in (group.column(at) for at in range(group.num_columns)):
                if column.path_in_schema in ends and column.is_stats_set:
                    ends[column.path_in_schema] += [column.statistics.min, column.statistics.max]
    if not ends["_tick"]:
        return None
    days = tuple(sorted({path.parent.name.removeprefix("date=") for path in paths}))
    ticks, arrivals = ends["_tick"], ends["_arrival"]
    return ExtentFiles(
        extent, len(paths), rows, size, days, min(ticks), max(ticks), max(arrivals), max(ends["_revision"])
    )


def open_views(
    session: "SparkSession",
    root: Path,
    catalog: Catalog,
    extents: Sequence[Extent],
    tables: Mapping[str, Sequence[Version]],
    prefix: str = "",
) -> dict[str, ArchiveView]:
    """A view for each extent, `prefix` before its name. Files of streams are read where a query needs them."""
    found = {e.name: name_source(e, tables.get(e.name, ()), prefix) for e in extents}
    for extent in extents:
        name = found[extent.name].name
        if extent.kind is ExtentKind.STORED:
            _open_table(session, extent, tables.get(extent.name, ()), name, catalog.tick_ms)
            continue
        folder = extent_folder(root, extent.name)
        schema = f"{_SYSTEM}, {', '.join(f'`{a.name}` {_sql_type(a)}' for a in extent.schema)}, `date` DATE"
        if list_files(root, extent.name):
            frame = session.read.schema(schema).option("basePath", str(folder)).parquet(str(folder))
        else:
            frame = session.createDataFrame([], schema)
        frame.createOrReplaceTempView(name)
        # Spark has listed the files by now: what is unique in the files of this moment is so in those that it listed.
        is_unique = has_unique_keys if extent.kind is ExtentKind.SENSED else has_unique_indexes
        found[extent.name] = replace(found[extent.name], is_unique=partial(is_unique, root, extent.name))
    return found


def has_unique_keys(root: Path, extent: str, first: date, last: date) -> bool:
    """Whether each (site, tick) of the days stands in one row of the files. Copies of a reading have its tick, so its day."""
    for table in _read_days(root, extent, first, last, ["_site", "_tick"]):
        site, tick = (np.asarray(table.column(name)) for name in ("_site", "_tick"))
        key = site * (int(tick.max()) - int(tick.min()) + 1) + tick - tick.min()
        if not (key[1:] > key[:-1]).all() and len(np.unique(key)) < len(key):
            return False
    return True


def has_unique_indexes(root: Path, extent: str, first: date, last: date) -> bool:
    """Whether each (index, arrival, tick) of the days stands in one row of the files, of the tuples that a station counted."""
    for table in _read_days(root, extent, first, last, ["_index", "_arrival", "_tick"]):
        if "_index" not in table.column_names:  # files of layout 1
            continue
        index, arrival, tick = (table.column(name).fill_null(0).to_numpy() for name in ("_index", "_arrival", "_tick"))
        order = np.lexsort((tick, arrival, index))
        order = order[index[order] > 0]
        differs = [column[order][1:] != column[order][:-1] for column in (index, arrival, tick)]
        if not np.logical_or.reduce(differs).all():
            return False
    return True


def _read_days(root: Path, extent: str, first: date, last: date, columns: list[str]) -> Iterator[pa.Table]:
    """Some columns of the files of each day."""
    of_day: dict[str, list[Path]] = {}
    for path in list_files(root, extent):
        of_day.setdefault(path.parent.name.removeprefix("date="), []).append(path)
    for day, paths in of_day.items():
        if first.isoformat() <= day <= last.isoformat():
            yield pa.concat_tables(
                (pq.read_table(path, columns=columns, partitioning=None) for path in paths), promote_options="default"
            )


def name_source(extent: Extent, versions: Sequence[Version] = (), prefix: str = "") -> ArchiveView:
    """The source of an extent, whose view need not exist yet."""
    return ArchiveView(extent, f"{prefix}e_{extent.name}", tuple(tick for tick, _ in versions))


def read_tables(catalog: Catalog, folder: Path) -> dict[str, list[Version]]:
    """The stored extents of a catalog, each from the file that its declaration names, relative to `folder`. Raises InputError."""
    found: dict[str, list[Version]] = {}
    for extent in catalog:
        if extent.kind is ExtentKind.STORED:
            found[extent.name] = []
            if extent.source is not None:
                columns, valid = table_of_file(read_file(folder / extent.source), extent, catalog.tick_ms)
                found[extent.name].append((0, {n: Vector(values, valid.get(n)) for n, values in columns.items()}))
    return found


def _open_table(session: "SparkSession", extent: Extent, versions: Sequence[Version], name: str, tick_ms: int) -> None:
    parts = []
    for tick, columns in versions or [(0, {})]:
        size = len(next(iter(columns.values()))) if columns else 0
        zero = np.zeros(size, np.int64)
        values = {a: vector.values for a, vector in columns.items()}
        valid = {a: vector.validity for a, vector in columns.items()}
        batch = Batch(zero, zero, zero, zero + 1, {**values, INDEX: zero, REVISION: zero}, valid)
        table = table_of(extent, batch, tick_ms).select([a.name for a in extent.schema])
        table = table.append_column("_version", pa.array(zero + tick))
        parts.append(table.append_column("_position", pa.array(np.arange(size, dtype=np.int64))))
    session.createDataFrame(pa.concat_tables(parts)).createOrReplaceTempView(name)


def _sql_type(attribute: Attribute) -> str:
    if attribute.scale is not None:
        return f"DECIMAL(18,{attribute.scale})"
    if attribute.type is Type.STRING:
        return "STRING"
    return "BIGINT" if attribute.type.whole else "DOUBLE"

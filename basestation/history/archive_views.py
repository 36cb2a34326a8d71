"""Archive views: the Parquet files of a data directory and the versions of its tables, as views of a Spark session."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial, reduce
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.batch import Batch
from acquisition.errors import InputError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Type
from acquisition.sources.batch_conversion import table_of as table_of_file
from acquisition.sources.python_values import read_file
from basestation.algebra.vector import Vector
from basestation.archive.layout import SUFFIX, extent_folder, table_of
from basestation.archive.numbering import INDEX, REVISION
from basestation.history.statement import ArchiveView
from basestation.history.stations import STATION, data_folders, find_stations
from gateway.errors import MoteloomError

if TYPE_CHECKING:
    from basestation.archive.spark.session import DataFrame, SparkSession

Version = tuple[int, Mapping[str, Vector]]
"""(first tick, columns) of a version of a table."""
_SYSTEM = "_tick BIGINT, _site BIGINT, _index BIGINT, _arrival BIGINT, _weight TINYINT, _revision INT"


class DamagedFileError(MoteloomError):
    """A file of the archive cannot be read."""

    code = "damaged-file"

    def __init__(self, path: Path, damage: str) -> None:
        super().__init__(f"{path} cannot be read: {damage}")
        self.path, self.damage = path, damage


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
    examples: tuple[Path, ...] = ()
    """One file for each schema."""
    largest: Mapping[str, float | Decimal] = field(default_factory=dict)
    """By number, the greatest absolute value; only of those for which each footer says it."""


def list_files(root: Path, extent: str, skipped: Collection[Path] = ()) -> list[Path]:
    """The files of an extent, oldest day first; of many stations, one station after the other. InputError for a folder that is no day."""
    found = []
    for folder in data_folders(root):
        for day in sorted(extent_folder(folder, extent).glob("date=*")):
            try:
                date.fromisoformat(day.name.removeprefix("date="))
            except ValueError:
                raise InputError(
                    "SN501", "expected a day such as `date=2026-11-19`; move it out of the archive", str(day)
                ) from None
            found += [path for path in sorted(day.glob(f"part-*{SUFFIX}")) if path not in skipped]
    return found


def describe_extent(
    root: Path, extent: str, skipped: Collection[Path] = (), ahead: int | None = None
) -> ExtentFiles | None:
    """Read the footers of an extent's files; None without files. Raises DamagedFileError.

    With `ahead`, a tuple stamped further ahead of its delivery is not the last one (semantics 1.5).
    """
    paths = list_files(root, extent, skipped)
    groups: list[tuple[int, Path, int]] = []
    examples: dict[tuple[bytes | None, ...], Path] = {}
    rows = size = 0
    largest: dict[str, float | Decimal] = {}
    unknown: set[str] = set()
    ends: dict[str, list[int]] = {"_tick": [], "_arrival": [], "_revision": [0]}
    for path in paths:
        try:
            meta = pq.read_metadata(path)
        except (pa.ArrowException, OSError) as why:
            raise DamagedFileError(path, str(why)) from why
        kinds = meta.metadata or {}
        examples.setdefault(
            tuple(kinds.get(f"moteloom.{key}".encode()) for key in ("extent", "tick_ms", "layout", "schema")), path
        )
        rows, size = rows + meta.num_rows, size + path.stat().st_size
        for at, group in enumerate(meta.row_group(at) for at in range(meta.num_row_groups)):
            for column in (group.column(at) for at in range(group.num_columns)):
                if column.path_in_schema == "_tick" and column.is_stats_set:
                    groups.append((column.statistics.max, path, at))
                if column.path_in_schema in ends and column.is_stats_set:
                    ends[column.path_in_schema] += [column.statistics.min, column.statistics.max]
                elif not column.path_in_schema.startswith("_"):
                    _widen(largest, unknown, column)
    if not ends["_tick"]:
        return None
    days = tuple(sorted({path.parent.name.removeprefix("date=") for path in paths}))
    ticks, arrivals = ends["_tick"], ends["_arrival"]
    last = max(ticks) if ahead is None else _find_last(groups, ahead, min(ticks))
    return ExtentFiles(
        extent, len(paths), rows, size, days, min(ticks), last, max(arrivals, default=0), max(ends["_revision"]),
        tuple(examples.values()), {name: value for name, value in largest.items() if name not in unknown},
    )  # fmt: skip


def _find_last(groups: list[tuple[int, Path, int]], ahead: int, otherwise: int) -> int:
    """The last tick of a tuple that is not stamped further ahead; it reads row groups, each with its last tick, from the last one on."""
    found = otherwise
    for last, path, at in sorted(groups, reverse=True):
        if last <= found:
            break
        try:
            with pq.ParquetFile(path) as file:
                tick, arrival = (
                    np.asarray(each) for each in file.read_row_group(at, columns=["_tick", "_arrival"]).columns
                )
        except (pa.ArrowException, OSError) as why:
            raise DamagedFileError(path, str(why)) from why
        found = max(found, int(tick[tick - arrival <= ahead].max(initial=otherwise)))
    return found


def _widen(largest: dict[str, float | Decimal], unknown: set[str], column: pq.ColumnChunkMetaData) -> None:
    """Take the statistics of a column of one row group in."""
    name, found = column.path_in_schema, column.statistics if column.is_stats_set else None
    if found is not None and found.has_min_max and isinstance(found.min, int | float | Decimal):
        largest[name] = max(largest.get(name, 0), abs(found.min), abs(found.max))
    elif found is None or found.null_count != column.num_values:
        unknown.add(name)


def open_views(
    session: "SparkSession",
    root: Path,
    catalog: Catalog,
    extents: Sequence[Extent],
    tables: Mapping[str, Sequence[Version]],
    prefix: str = "",
    skipped: Collection[Path] = (),
    arrived_by: int | None = None,
) -> dict[str, ArchiveView]:
    """A view for each extent, `prefix` before its name. Files of streams are read where a query needs them, but for those `skipped`.

    `arrived_by` leaves out what arrived after that tick, corrections too.
    """
    found = {e.name: name_source(e, tables.get(e.name, ()), prefix) for e in extents}
    for extent in extents:
        name = found[extent.name].name
        if extent.kind is ExtentKind.STORED:
            _open_table(session, extent, tables.get(extent.name, ()), name, catalog.tick_ms)
            continue
        frame = _open_stream(session, root, extent, skipped)
        arrived = frame if arrived_by is None else frame.where(f"_arrival <= {arrived_by}")
        arrived.createOrReplaceTempView(name)
        # Spark has listed the files by now: what is unique in the files of this moment is so in those that it listed.
        is_unique = has_unique_keys if extent.kind is ExtentKind.SENSED else has_unique_indexes
        each = [partial(is_unique, folder, extent.name, skipped=skipped) for folder in data_folders(root)]
        files = describe_extent(root, extent.name, skipped)
        found[extent.name] = replace(
            found[extent.name],
            is_unique=partial(_holds_for_all, each),
            is_corrected=files is not None and files.corrections > 0,
            rows=None if files is None else files.rows,
            largest={} if files is None else _whole_bounds(extent, files.largest),
        )
    return found


def _whole_bounds(extent: Extent, largest: Mapping[str, float | Decimal]) -> dict[str, int]:
    """By attribute of whole numbers, the greatest absolute value; of a scaled one its multiples."""
    return {
        a.name: ceil(largest[a.name] * 10 ** (a.scale or 0))
        for a in extent.schema
        if a.name in largest and (a.scale is not None or a.type.whole)
    }


def _holds_for_all(checks: Sequence[Callable[[date, date], bool]], first: date, last: date) -> bool:
    return all(check(first, last) for check in checks)


def _open_stream(session: "SparkSession", root: Path, extent: Extent, skipped: Collection[Path]) -> "DataFrame":
    """The files of a stream; of many stations, each row with the name of its station."""
    attributes = [f"`{a.name}` {_sql_type(a)}" for a in extent.schema if a.name != STATION]
    schema = ", ".join([_SYSTEM, *attributes, "`date` DATE"])
    stations: dict[str, Path] = find_stations(root)
    frames = []
    for station, data in stations.items() or [("", root)]:
        folder = extent_folder(data, extent.name)
        if files := list_files(data, extent.name, skipped):
            reader = (
                session.read.schema(schema).option("basePath", str(folder)).option("pathGlobFilter", f"part-*{SUFFIX}")
            )
            frame = reader.parquet(*(map(str, files) if skipped else [str(folder)]))
            frames.append(frame.selectExpr("*", f"'{station}' AS {STATION}") if stations else frame)
    if not frames:
        return session.createDataFrame([], f"{schema}, {STATION} STRING" if stations else schema)
    return reduce(lambda one, other: one.unionAll(other), frames)


def has_unique_keys(root: Path, extent: str, first: date, last: date, skipped: Collection[Path] = ()) -> bool:
    """Whether each (site, tick) of the days stands in one row of the files. Copies of a reading have its tick, so its day."""
    for table in _read_days(root, extent, first, last, ["_site", "_tick"], skipped):
        site, tick = (np.asarray(table.column(name)) for name in ("_site", "_tick"))
        key = site * (int(tick.max()) - int(tick.min()) + 1) + tick - tick.min()
        if not (key[1:] > key[:-1]).all() and len(np.unique(key)) < len(key):
            return False
    return True


def has_unique_indexes(root: Path, extent: str, first: date, last: date, skipped: Collection[Path] = ()) -> bool:
    """Whether each (index, arrival, tick) of the days stands in one row of the files, of the tuples that a station counted."""
    for table in _read_days(root, extent, first, last, ["_index", "_arrival", "_tick"], skipped):
        if "_index" not in table.column_names:  # files of layout 1
            continue
        index, arrival, tick = (table.column(name).fill_null(0).to_numpy() for name in ("_index", "_arrival", "_tick"))
        order = np.lexsort((tick, arrival, index))
        order = order[index[order] > 0]
        differs = [column[order][1:] != column[order][:-1] for column in (index, arrival, tick)]
        if not np.logical_or.reduce(differs).all():
            return False
    return True


def _read_days(
    root: Path, extent: str, first: date, last: date, columns: list[str], skipped: Collection[Path]
) -> Iterator[pa.Table]:
    """Some columns of the files of each day."""
    of_day: dict[str, list[Path]] = {}
    for path in list_files(root, extent, skipped):
        of_day.setdefault(path.parent.name.removeprefix("date="), []).append(path)
    for day, paths in of_day.items():
        if first.isoformat() <= day <= last.isoformat():
            yield pa.concat_tables((_read_columns(path, columns) for path in paths), promote_options="default")


def _read_columns(path: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (pa.ArrowException, OSError) as why:
        raise DamagedFileError(path, str(why)) from why


def name_source(
    extent: Extent, versions: Sequence[Version] = (), prefix: str = "", is_corrected: bool = False
) -> ArchiveView:
    """The source of an extent, whose view need not exist yet."""
    ticks = tuple(tick for tick, _ in versions)
    return ArchiveView(extent, f"{prefix}e_{extent.name}", ticks, is_corrected=is_corrected)


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
    # One piece: Spark reads no further than an empty one, which a version without rows would be.
    session.createDataFrame(pa.concat_tables(parts).combine_chunks()).createOrReplaceTempView(name)


def _sql_type(attribute: Attribute) -> str:
    if attribute.scale is not None:
        return f"DECIMAL(18,{attribute.scale})"
    if attribute.type is Type.STRING:
        return "STRING"
    return "BIGINT" if attribute.type.whole else "DOUBLE"

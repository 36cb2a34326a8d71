"""An archive of Parquet files, whose tree holds the files that the manifest of the station lists.

New files are staged and synced outside the tree. A transaction of the station's journal lists them in the manifest
(`basestation.archive.manifest`), and `settle` then brings the tree to what is listed. So a staged file appears only if it
was committed, each reading stands in the tree once, and a start finishes what a crash interrupted. Files never change.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.layout import (
    ASCENDING,
    ROW_GROUP,
    SUFFIX,
    arrow_schema,
    batch_of,
    conform,
    day_folder,
    days_of,
    extent_folder,
    table_of,
)
from basestation.archive.manifest import ArchiveFile
from basestation.archive.numbering import TupleNumbers
from basestation.archive.reports import REPORTS, TREES, report_extent
from basestation.archive.sync import exchange_folders, make_folder, sync_path

STAGING = "staging"
_NAME = re.compile(r"part-\d{12}-[0-9a-f]{8}" + re.escape(SUFFIX))
_DAY = "day-"
"""Begins the names of folders that are about to enter the tree or have left it; the time of their making in ms since 1970 follows."""
GRACE_MS = 60_000
"""A folder that has left the tree is deleted so much later: a reader that was listing it finds all files that it had."""


class ParquetArchive:
    """The tree is `root/archive`; new files are written in `root/staging`. A tick has `tick_ms` milliseconds."""

    def __init__(
        self, root: Path, tick_ms: int, grace_ms: int = GRACE_MS, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` gives seconds since 1970; folders that have left the tree are kept for `grace_ms`."""
        self.root, self._tick_ms = root, tick_ms
        self._grace_ms, self._clock = grace_ms, clock
        self.staging, self._appended = root / STAGING, 0
        self._numbers = TupleNumbers()
        self.reserved: set[str] = set()
        """Names of staged files that another process writes now; `settle` leaves them alone."""
        make_folder(self.staging)

    def append(self, extent: Extent, batch: Batch) -> None:
        """Write and publish readings at once, where no journal has a say."""
        self._append(extent, self._numbers.number(extent, batch))

    def append_corrections(self, extent: Extent, batch: Batch) -> None:
        """Write and publish corrections at once."""
        self._append(extent, self._numbers.number_corrections(extent, batch))

    def _append(self, extent: Extent, numbered: Batch) -> None:
        self._appended += 1
        staged = self.stage(self._appended, extent, numbered)
        try:
            self.settle(staged)
        except OSError:
            self.discard(staged)  # the caller appends them again, or does not
            raise

    def append_reports(self, extent: Extent, reports: Batch) -> None:
        """Write and publish filter reports at once."""
        self.append(report_extent(extent), reports)

    def stage(self, entry: int, extent: Extent, batch: Batch) -> list[ArchiveFile]:
        """Write the numbered readings of an extent durably, invisible to readers, one file for each day."""
        return [
            self.stage_table(entry, extent.name, day.isoformat(), table_of(extent, tuples, self._tick_ms))
            for day, tuples in days_of(batch, self._tick_ms)
        ]

    def stage_table(self, entry: int, extent: str, day: str, table: pa.Table) -> ArchiveFile:
        """Write the rows of an extent's day durably, invisible to readers."""
        path = self.staging / file_name(entry)
        try:
            return write_file(path, extent, day, table.schema, [sort_rows(table)])
        except OSError:
            with suppress(OSError):  # a staged file that no manifest lists never appears, so the first error counts
                path.unlink(missing_ok=True)
            raise

    def discard(self, files: Iterable[ArchiveFile]) -> None:
        """Delete staged files that are not listed. Those that cannot be deleted now never appear, and `settle` tries again."""
        for file in files:
            with suppress(OSError):
                (self.staging / file.name).unlink(missing_ok=True)

    def settle(self, listed: Sequence[ArchiveFile]) -> list[str]:
        """Bring the tree to what is listed, and delete all else that is staged; the names of removed files, which have left.

        A folder that loses files is replaced by one without them in one step, so a reader sees each reading once.
        """
        by_name = {file.name: file for file in listed}
        changed = {(file.extent, file.day) for file in listed if file.is_removed}
        for path in [path for path in self.staging.iterdir() if path.name not in self.reserved]:
            if path.name.startswith(_DAY):
                continue  # for `sweep`
            if (file := by_name.get(path.name)) is None or file.is_removed:
                path.unlink()
            else:
                changed.add((file.extent, file.day))
        for extent, day in sorted(changed):
            self._settle_day(
                day_folder(self.root, extent, day), [f for f in listed if (f.extent, f.day) == (extent, day)]
            )
        self.sweep()
        return [file.name for file in listed if file.is_removed]

    def sweep(self) -> None:
        """Delete the folders that left the tree long enough ago, or at a time that is still to come."""
        now = int(self._clock() * 1_000)
        for folder in self.staging.glob(f"{_DAY}*"):
            made = folder.name.split("-")[1]  # without a time in the names of older programs
            if not (made.isdecimal() and int(made) <= now < int(made) + self._grace_ms):
                shutil.rmtree(folder)

    def leaving_bytes(self) -> int:
        """The bytes that `sweep` will free: of files that stand only in folders which have left the tree."""
        found = [path.stat() for path in self.staging.glob(f"{_DAY}*/*")]
        return sum(each.st_size for each in found if each.st_nlink == 1)

    def adopt(self) -> tuple[list[ArchiveFile], list[Path]]:
        """The files of the tree as a manifest lists them, and those that cannot be read or are no files of an archive."""
        found, foreign = [], []
        for path in find_strangers(self.root, ()):
            file = describe_file(path)
            foreign.append(path) if file is None else found.append(file)
        return found, foreign

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        """The published tuples with first <= tick <= last, by tick, then site."""
        schema = arrow_schema(extent, self._tick_ms)
        in_range = (pc.field("_tick") >= first) & (pc.field("_tick") <= last)
        tables = [conform(pq.read_table(file, filters=in_range, partitioning=None), schema, str(file))
                  for file in self.files(extent)]  # fmt: skip
        found = concatenate([empty_batch(extent.schema), *(batch_of(extent, table) for table in tables)])
        return found.take(np.lexsort((found.site, found.tick)))

    def files(self, extent: Extent) -> list[Path]:
        """The files of an extent, oldest day first."""
        return sorted(extent_folder(self.root, extent.name).glob(f"date=*/part-*{SUFFIX}"))

    def _settle_day(self, folder: Path, files: Sequence[ArchiveFile]) -> None:
        staged = [self.staging / file.name for file in files if not file.is_removed]
        entering = [path for path in staged if path.exists()]
        present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        leaving = {file.name for file in files if file.is_removed} & present
        staying = present - leaving
        if not leaving:
            for path in entering:
                self._enter(path, folder)
        elif not staying and not entering:
            os.rename(folder, self._new_folder())
            sync_path(folder.parent)
        else:
            self._replace(folder, [folder / name for name in sorted(staying)], entering)
        for path in entering:
            path.unlink(missing_ok=True)

    def _enter(self, path: Path, folder: Path) -> None:
        make_folder(folder)
        path.rename(folder / path.name)
        sync_path(folder)

    def _replace(self, folder: Path, staying: Iterable[Path], entering: Iterable[Path]) -> None:
        """Let a folder with other files take the place of a folder, in one step."""
        fresh = self._new_folder()
        fresh.mkdir()
        for path in staying:
            os.link(path, fresh / path.name)
        for path in entering:
            if not (fresh / path.name).exists():
                os.link(path, fresh / path.name)
        sync_path(fresh)
        exchange_folders(fresh, folder)
        sync_path(folder.parent)
        sync_path(self.staging)

    def _new_folder(self) -> Path:
        return self.staging / f"{_DAY}{int(self._clock() * 1_000)}-{os.urandom(8).hex()}"


def file_name(entry: int) -> str:
    """A new name for a file. It has chance in it: after a restore, numbers of entries come again."""
    return f"part-{entry:012}-{os.urandom(4).hex()}{SUFFIX}"


def write_file(path: Path, extent: str, day: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> ArchiveFile:
    """Write rows that are sorted by site and tick, part by part, and sync them; the file as a manifest lists it."""
    ascending = {name: "DELTA_BINARY_PACKED" for name in ASCENDING}
    repeating = [name for name in schema.names if name not in ascending]
    rows, first, last = 0, 2**63 - 1, -(2**63)
    with path.open("wb") as file:
        with pq.ParquetWriter(
            file, schema, compression="zstd", use_dictionary=repeating, column_encoding=ascending,
            write_page_index=True, store_decimal_as_integer=True,
        ) as writer:  # fmt: skip
            for part in parts:
                tick = part["_tick"].to_numpy()
                rows, first, last = rows + len(tick), min(first, int(tick.min())), max(last, int(tick.max()))
                writer.write_table(part, row_group_size=ROW_GROUP)
        file.flush()
        os.fsync(file.fileno())
    sync_path(path.parent)
    return ArchiveFile(path.name, extent, day, rows, path.stat().st_size, first, last, digest_of(path))


def sort_rows(table: pa.Table) -> pa.Table:
    """The rows by site, tick, delivery, revision and index; the same table where they stand so."""
    keys = [table[name].to_numpy() for name in ("_index", "_revision", "_arrival", "_tick", "_site")]
    order = np.lexsort(keys)
    return table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_listed(root: Path, file: ArchiveFile) -> pa.Table:
    """The rows of a listed file. OSError names it where it is missing, or its bytes are not those that were written."""
    path = day_folder(root, file.extent, file.day) / file.name
    if digest_of(path) != file.digest:
        raise OSError(f"{path} is damaged; `moteloom archive verify` lists all such files")
    with pq.ParquetFile(path, pre_buffer=False) as opened:
        return opened.read(use_threads=False)


def find_strangers(root: Path, listed: Iterable[ArchiveFile]) -> list[Path]:
    """The files in the tree that are not listed."""
    known = {day_folder(root, file.extent, file.day) / file.name for file in listed}
    paths = (path for tree in TREES for path in (root / tree).rglob("*"))
    return sorted(path for path in paths if not path.is_dir() and path not in known)


def describe_file(path: Path) -> ArchiveFile | None:
    """A file of the tree as a manifest lists it; None where its place, name or content is not that of such a file."""
    extent, day = path.parent.parent.name.removeprefix("extent="), path.parent.name.removeprefix("date=")
    is_extent = path.parent.parent.name != extent
    if path.parent.parent.parent.name == REPORTS:
        extent = f"{REPORTS}/{extent}"
    if not is_extent or path.parent.name == day or not _NAME.fullmatch(path.name):
        return None
    try:
        with pq.ParquetFile(path) as file:
            ticks = pc.min_max(file.read(["_tick"])["_tick"])
            whose = (file.schema_arrow.metadata or {}).get(b"moteloom.extent")
    except (OSError, pa.ArrowException, KeyError):
        return None
    if whose != extent.encode() or not ticks["min"].is_valid:
        return None
    size, rows = path.stat().st_size, file.metadata.num_rows
    return ArchiveFile(path.name, extent, day, rows, size, ticks["min"].as_py(), ticks["max"].as_py(), digest_of(path))

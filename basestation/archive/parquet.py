"""An archive of Parquet files, one for each append and day.

Writing a file is atomic: the archive writes it in a staging folder, syncs it, renames it and syncs the folder. It does not
compact small files yet.
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.layout import SUFFIX, arrow_schema, batch_of, day_folder, days_of, extent_folder, table_of
from basestation.archive.sync import sync_path


class ParquetArchive:
    """`root` is a folder of its own; new files are written in `root/staging`, which readers ignore."""

    def __init__(self, root: Path, tick_ms: int) -> None:
        self.root, self._tick_ms = root, tick_ms
        self._staging = root / "staging"
        self._staging.mkdir(parents=True, exist_ok=True)
        self._next: dict[Path, int] = {}

    def append(self, extent: Extent, batch: Batch) -> None:
        for day, tuples in days_of(batch, self._tick_ms):
            ordered = tuples.take(np.lexsort((tuples.site, tuples.tick)))
            self._publish(table_of(extent, ordered, self._tick_ms), day_folder(self.root, extent.name, day))

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        schema = arrow_schema(extent, self._tick_ms)
        in_range = (pc.field("_tick") >= first) & (pc.field("_tick") <= last)
        tables = [
            pq.read_table(file, schema=schema, filters=in_range, partitioning=None) for file in self.files(extent)
        ]
        found = concatenate([empty_batch(extent.schema), *(batch_of(extent, table) for table in tables)])
        return found.take(np.lexsort((found.site, found.tick)))

    def files(self, extent: Extent) -> list[Path]:
        """The files of an extent, oldest day first."""
        return sorted(extent_folder(self.root, extent.name).glob(f"date=*/part-*{SUFFIX}"))

    def _publish(self, table: pa.Table, folder: Path) -> None:
        _make(folder)
        present = folder.glob(f"part-*{SUFFIX}")
        number = self._next.get(folder) or 1 + max((_number(file) for file in present), default=0)
        self._next[folder] = number + 1
        name = f"part-{number:06}{SUFFIX}"
        aside = self._staging / f"{folder.parent.name}.{folder.name}.{name}"
        with aside.open("wb") as file:
            pq.write_table(table, file, compression="zstd", write_page_index=True)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(folder / name)
        sync_path(folder)


def _number(file: Path) -> int:
    return int(file.name.removeprefix("part-").removesuffix(SUFFIX))


def _make(folder: Path) -> None:
    """Create a folder durably: it survives a power failure."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_path(folder.parent)

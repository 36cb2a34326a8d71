"""An archive of Parquet files, which appear in the tree when the journal of the station says so.

A roll is an entry of the station's journal. Its files are staged and synced before that entry is committed, and published
after. Staged names begin with the number of the entry, so a start knows those of a committed roll from those of one that
never was. A reader of the tree sees each reading once. Files never change.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.layout import SUFFIX, arrow_schema, batch_of, days_of, extent_folder, table_of
from basestation.archive.sync import sync_path

STAGING = "staging"


class ParquetArchive:
    """The tree is `root/archive`; new files are written in `root/staging`. A tick has `tick_ms` milliseconds."""

    def __init__(self, root: Path, tick_ms: int) -> None:
        self.root, self._tick_ms = root, tick_ms
        self._staging, self._appended = root / STAGING, 0
        self._discarded: set[str] = set()
        _make(self._staging)

    def append(self, extent: Extent, batch: Batch) -> None:
        """Write and publish readings at once, where no journal has a say."""
        self._appended += 1
        try:
            self.stage(self._appended, extent, batch)
            self.recover(self._appended)
        except OSError:
            self.discard(self._appended)  # the caller appends them again, or does not
            raise

    def stage(self, entry: int, extent: Extent, batch: Batch) -> None:
        """Write the readings of an extent durably, invisible to readers, for an entry that is about to be committed."""
        for day, tuples in days_of(batch, self._tick_ms):
            ordered = tuples.take(np.lexsort((tuples.site, tuples.tick)))
            path = self._staging / f"{entry:012}.{extent.name}.{day.isoformat()}{SUFFIX}"
            self._discarded.discard(path.name)
            with path.open("wb") as file:
                pq.write_table(table_of(extent, ordered, self._tick_ms), file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
        sync_path(self._staging)

    def discard(self, entry: int) -> None:
        """Give up the staged files of an entry that was not committed; those that cannot be deleted now are so later."""
        self._discarded |= {path.name for staged, _, _, path in self._staged() if staged == entry}
        with suppress(OSError):  # `recover` tries again, and reports it
            self.recover(entry - 1)

    def recover(self, last: int) -> int:
        """Publish the files of entries up to the last one that is committed, and delete others; how many were published."""
        count = 0
        for entry, extent, day, path in list(self._staged()):
            if entry > last or path.name in self._discarded:
                path.unlink()
                self._discarded.discard(path.name)
            else:
                self._publish(path, entry, extent, day)
                count += 1
        return count

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        """The published tuples with first <= tick <= last, by tick, then site."""
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

    def _staged(self) -> Iterator[tuple[int, str, str, Path]]:
        for path in sorted(self._staging.glob(f"*{SUFFIX}")):
            entry, extent, day = path.name.removesuffix(SUFFIX).split(".")
            yield int(entry), extent, day, path

    def _publish(self, path: Path, entry: int, extent: str, day: str) -> None:
        """Move a file into the tree. Its name has chance in it: after a restore, numbers of entries come again."""
        folder = extent_folder(self.root, extent) / f"date={day}"
        _make(folder)
        path.rename(folder / f"part-{entry:012}-{os.urandom(4).hex()}{SUFFIX}")
        sync_path(folder)


def _make(folder: Path) -> None:
    """Create a folder durably: it survives a power failure."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_path(folder.parent)

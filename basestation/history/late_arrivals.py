"""Late arrivals: the readings, tuples and corrections that the archive received after a moment, for ticks before it."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from basestation.history.archive_views import DamagedFileError, list_files


@dataclass(frozen=True, slots=True)
class LateArrivals:
    """How many came, the first and the last of their ticks, and their days."""

    rows: int
    first: int
    last: int
    days: tuple[str, ...]


def find_late_arrivals(root: Path, extent: str, since: int, skipped: Collection[Path] = ()) -> LateArrivals | None:
    """Count the rows of an extent that arrived after the tick `since`, for ticks up to it; None for none. Raises DamagedFileError."""
    rows, ends, days = 0, [], set()
    for path in list_files(root, extent, skipped):
        try:
            tick = _late_ticks(path, since)
        except (pa.ArrowException, OSError) as why:
            raise DamagedFileError(path, str(why)) from why
        if len(tick):
            rows += len(tick)
            ends += [int(tick.min()), int(tick.max())]
            days.add(path.parent.name.removeprefix("date="))
    return LateArrivals(rows, min(ends), max(ends), tuple(sorted(days))) if rows else None


def _late_ticks(path: Path, since: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Only the row groups are read whose statistics allow for late arrivals."""
    with pq.ParquetFile(path) as file:
        at = file.schema_arrow.names.index("_arrival")
        columns = (file.metadata.row_group(group).column(at) for group in range(file.num_row_groups))
        last = [column.statistics.max if column.is_stats_set else since + 1 for column in columns]
        table = file.read_row_groups([group for group, each in enumerate(last) if each > since], ["_tick", "_arrival"])
    tick, arrival = (np.asarray(table.column(name), np.int64) for name in ("_tick", "_arrival"))
    return tick[(arrival > since) & (tick <= since)]

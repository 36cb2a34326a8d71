"""Late arrivals: the readings, tuples and corrections that the archive received after a moment, for ticks before it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.arrays import IntArray
from acquisition.extent import Extent
from basestation.history.archive_views import DamagedFileError, list_files


@dataclass(frozen=True, slots=True)
class LateArrivals:
    """How many came, the first and the last of their ticks, and their days. Of `beyond` more, windows know nothing: they lie beyond the horizon."""

    rows: int
    first: int
    last: int
    days: tuple[str, ...]
    beyond: int = 0


def find_late_arrivals(
    root: Path, extent: Extent, since: int, ticks: tuple[int, int], skipped: Collection[Path] = ()
) -> LateArrivals | None:
    """Count the rows of an extent that arrived after the tick `since`, for the first to the last of `ticks`; None for none. Raises DamagedFileError."""
    rows, beyond, ends, days = 0, 0, [], set()
    for path in list_files(root, extent.name, skipped):
        try:
            tick, arrival = _late_rows(path, since, ticks)
        except (pa.ArrowException, OSError) as why:
            raise DamagedFileError(path, str(why)) from why
        within = tick if extent.horizon is None else tick[arrival - tick <= extent.horizon]
        beyond += len(tick) - len(within)
        if len(within):
            rows += len(within)
            ends += [int(within.min()), int(within.max())]
            days.add(path.parent.name.removeprefix("date="))
    if not rows and not beyond:
        return None
    return LateArrivals(rows, min(ends, default=0), max(ends, default=-1), tuple(sorted(days)), beyond)


def list_runs(days: Sequence[str]) -> str:
    """All days, such as `2026-11-01 to 2026-11-09, 2026-11-12`."""
    runs: list[list[date]] = []
    for day in map(date.fromisoformat, days):
        if runs and day - runs[-1][-1] == timedelta(days=1):
            runs[-1][1:] = [day]
        else:
            runs.append([day])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


def _late_rows(path: Path, since: int, ticks: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """(ticks, arrivals). Only the row groups are read whose statistics allow for late arrivals."""
    with pq.ParquetFile(path) as file:
        at = file.schema_arrow.names.index("_arrival")
        columns = (file.metadata.row_group(group).column(at) for group in range(file.num_row_groups))
        newest = [column.statistics.max if column.is_stats_set else since + 1 for column in columns]
        table = file.read_row_groups(
            [group for group, each in enumerate(newest) if each > since], ["_tick", "_arrival"]
        )
    tick, arrival = (np.asarray(table.column(name), np.int64) for name in ("_tick", "_arrival"))
    is_late = (arrival > since) & (tick >= ticks[0]) & (tick <= ticks[1])
    return tick[is_late], arrival[is_late]

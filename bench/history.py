"""Queries over an archive in Spark, beside PySpark written by hand: `python -m bench.history [DAYS]`.

A hundred sites report every minute. Each query runs three times in one session, and the fastest run counts; both sides read the same files
and give all their rows to Spark's sink that drops them. The counts of rows must be equal.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Extent
from basestation.archive.parquet import ParquetArchive
from basestation.archive.spark.session import start_session
from basestation.history.archive_views import open_views
from basestation.history.compiler import compile_plan
from basestation.history.statement import HistoryRange
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan

SITES, DAY = 100, 86_400
SCHEMA = "road: sensed (site:integer, temp:integer, vibration:integer) every 1 min at sites 1 .. 100"
FILTER = "SELECT site, vibration FROM road WHERE temp < 50 AND vibration > 20"
WINDOWS = (
    "SELECT site, MIN(vibration) AS low, MAX(vibration) AS high, AVG(vibration) AS mean, COUNT(*) AS readings "
    "FROM road [FROM NOW-10 MIN TO NOW SLIDE 1 MIN] GROUP BY site"
)
HOURS = (
    "SELECT site, MIN(vibration) AS low, MAX(vibration) AS high, AVG(vibration) AS mean, COUNT(*) AS readings "
    "FROM road [FROM NOW-59 MIN TO NOW SLIDE 1 HOUR] GROUP BY site"
)
ROUNDS = 3


def write_days(extent: Extent, folder: Path, days: int) -> int:
    """Write an archive, one file a day; the number of readings."""
    archive, rng = ParquetArchive(folder, 1000), np.random.default_rng(1)
    for day in range(days):
        tick = np.repeat(np.arange(day * DAY, (day + 1) * DAY, 60), SITES)
        site = np.tile(np.arange(1, SITES + 1), DAY // 60)
        columns = {"site": site, "temp": rng.integers(0, 100, len(tick)), "vibration": rng.integers(0, 100, len(tick))}
        archive.append(extent, Batch(tick, site, tick + 1, np.ones(len(tick), np.int64), columns))
    return days * DAY // 60 * SITES


def by_hand(session: Any, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The same answers with DataFrames: what they rely on is that no reading comes twice or is missing."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def read() -> Any:
        return session.read.parquet(str(folder / "archive" / "extent=road"))

    def found() -> Any:
        return [getattr(f, name)("vibration") for name in ("min", "max", "avg")]

    yield FILTER, lambda: read().where("temp < 50 AND vibration > 20").select("_tick", "_site", "vibration")
    window = Window.partitionBy("_site").orderBy("_tick").rangeBetween(-600, 0)
    yield (
        WINDOWS,
        lambda: read().select("_site", "_tick", *(each.over(window) for each in found()), f.count("*").over(window)),
    )
    hour = (f.ceil(f.col("_tick") / 3600) * 3600).alias("hour")
    yield HOURS, lambda: read().groupBy("_site", hour).agg(*found(), f.count("*"))


def fastest(make: Callable[[], Any]) -> tuple[float, int]:
    """(the seconds of the fastest of some runs, the number of rows)."""
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        make().write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), make().count()


def main(days: int) -> None:
    catalog = read_schema(SCHEMA)
    extent = catalog.extents["road"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        readings = write_days(extent, folder, days)
        begun = time.perf_counter()
        session = start_session(folder, heap="2g")
        print(
            f"{readings:,} readings of {SITES} sites, {days} days; Spark there after {time.perf_counter() - begun:.1f} s"
        )
        views = open_views(session, folder, catalog, [extent], {})
        span = HistoryRange(0, days * DAY - 60, 0, 0)
        for text, hand in by_hand(session, folder):
            [plan] = bind_text(text, catalog)
            if not isinstance(plan, Plan):
                raise TypeError(text)
            ours, rows = fastest(lambda plan=plan: session.sql(compile_plan(plan, views, span).text))
            other, rows_by_hand = fastest(hand)
            print(
                f"{ours:6.2f} s, by hand {other:6.2f} s, {ours / other:.2f} times: {rows:,} and {rows_by_hand:,} rows: {text[:60]}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)

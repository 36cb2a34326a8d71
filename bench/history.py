"""Queries over an archive in Spark, beside PySpark and DuckDB by hand: `python -m bench.history [--days N] [--sites N] [TASK …]`.

Sites report every minute. Each query runs some times in one session, in turn with the one by hand, and the fastest run counts; all read the same
files. Spark's sink drops the rows, DuckDB puts them into a table. The counts of rows must be equal. `compaction` is a day of files of 5 minutes.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent
from basestation.archive.compaction import days_of_files, merge_day
from basestation.archive.parquet import ParquetArchive
from basestation.archive.spark.master import parse_master
from basestation.archive.spark.session import start_session
from basestation.history.archive_views import Version, open_views, read_tables
from basestation.history.compiler import compile_plan
from basestation.history.statement import HistoryRange
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan
from bench.ceiling.in_spark import DAY, MONTH, DuckByHand, SparkByHand
from bench.data import CATEGORIES

SCHEMA = """road: sensed (site:integer, temp:integer, vibration:integer) every 1 min at sites 1 .. {sites}
classes: stored (temp:integer, category:string) from 'classes.csv'
"""
_FOUR = "MIN(vibration) AS low, MAX(vibration) AS high, AVG(vibration) AS mean, COUNT(*) AS readings"
TASKS = {
    "filter": "SELECT site, vibration FROM road WHERE temp < 50 AND vibration > 20",
    "minutes": f"SELECT site, {_FOUR} FROM road [FROM NOW-10 MIN TO NOW SLIDE 1 MIN] GROUP BY site",
    "hours": f"SELECT site, {_FOUR} FROM road [FROM NOW-59 MIN TO NOW SLIDE 1 HOUR] GROUP BY site",
    "classes": "ISTREAM(SELECT road.site, classes.category FROM road [FROM NOW-5 TO NOW SLIDE 5 MIN], classes [SCAN 10 MIN] "
    "WHERE classes.temp = road.temp)",
    "months": "SELECT n.site, n.vibration, o.vibration AS before FROM road [NOW] n, "
    "road [FROM NOW-30 DAY TO NOW-30 DAY SLIDE 1 MIN] o WHERE n.site = o.site",
}
"""W1, W2, W2 by the hour, W4 (Q3), and each reading beside that of 30 days before."""
NOT_ALL_WINDOWS = ("hours",)
"""By hand, the last hour is answered before it is over."""
COMPACTION = "compaction"


def write_days(extent: Extent, folder: Path, days: int, sites: int, minutes: int = 1_440) -> int:
    """Write an archive, a file for every `minutes`; the number of readings."""
    archive, rng = ParquetArchive(folder, 1000), np.random.default_rng(1)
    for first in range(0, days * DAY, 60 * minutes):
        tick = np.repeat(np.arange(first, first + 60 * minutes, 60), sites)
        site = np.tile(np.arange(1, sites + 1), minutes)
        drift = 30 * np.sin(tick * (2 * np.pi / DAY)) + rng.normal(40, 6, len(tick))
        columns = {"site": site, "temp": np.rint(drift).astype(np.int64), "vibration": rng.integers(0, 100, len(tick))}
        archive.append(extent, Batch(tick, site, tick + 1, np.ones(len(tick), np.int64), columns))
    return days * DAY // 60 * sites


def write_classes(folder: Path) -> None:
    """Write a class for each degree."""
    lines = [f"{temp},{CATEGORIES[(temp + 60) // 26]}" for temp in range(-60, 141)]
    (folder / "classes.csv").write_text("\n".join(["temp,category", *lines, ""]))


def make_statement(
    session: Any, folder: Path, catalog: Catalog, text: str, until: int, tables: dict[str, list[Version]]
) -> str:
    """The text that `moteloom history` gives to Spark."""
    [plan] = bind_text(text, catalog)
    if not isinstance(plan, Plan):
        raise TypeError(text)
    views = open_views(session, folder, catalog, list(catalog), tables)
    return compile_plan(plan, views, HistoryRange(0, until, 0, until)).text


def measure(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The seconds of the fastest run of each, in turn."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            found[name].append(time.perf_counter() - begun)
    return {name: min(seconds) for name, seconds in found.items()}


def drop(frame: Any) -> None:
    """Compute all rows of a DataFrame."""
    frame.write.format("noop").mode("overwrite").save()


def run_tasks(options: argparse.Namespace, folder: Path) -> None:
    import duckdb

    write_classes(folder)
    catalog = read_schema(SCHEMA.format(sites=options.sites))
    tables, until = read_tables(catalog, folder), options.days * DAY - 60
    readings = write_days(catalog.extents["road"], folder, options.days, options.sites)
    begun = time.perf_counter()
    session = start_session(folder, parse_master(options.master), options.memory)
    started = time.perf_counter() - begun
    print(f"{readings:,} readings, {options.sites} sites, {options.days} days; Spark there after {started:.1f} s")
    by_hand, in_duck, duck = SparkByHand(session, folder), DuckByHand(folder), duckdb.connect()
    for name in options.tasks or TASKS:
        if name == "months" and options.days * DAY <= MONTH:
            print("months   needs more than 30 days")
            continue
        statement = make_statement(session, folder, catalog, TASKS[name], until, tables)
        hand, sql = getattr(by_hand, name), getattr(in_duck, name)()
        rows = {session.sql(statement).count(), hand().count(), len(duck.execute(sql).fetchall())}
        if len(rows) > 1 and name not in NOT_ALL_WINDOWS:
            raise AssertionError(f"{name}: not the same number of rows: {rows}")
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda text=statement: drop(session.sql(text)),
            "by hand": lambda make=hand: drop(make()),
            "DuckDB": lambda text=sql: duck.execute(f"CREATE OR REPLACE TEMP TABLE found AS {text}"),
        }
        found = measure(runs, options.rounds)
        print(
            f"{name:<8} {found['ours']:7.2f} s, by hand {found['by hand']:7.2f} s: {found['ours'] / found['by hand']:.2f} times; "
            f"DuckDB {found['DuckDB']:6.2f} s; {max(rows):,} rows; load {os.getloadavg()[0]:.0f}",
            flush=True,
        )
    session.stop()


def run_compaction(options: argparse.Namespace, folder: Path) -> None:
    """A day of files of five minutes: the time and memory of the merge, and a query before and after."""
    catalog = read_schema(SCHEMA.format(sites=options.sites))
    extent = catalog.extents["road"]
    readings = write_days(extent, folder, 1, options.sites, minutes=5)
    session = start_session(folder, parse_master(options.master), options.memory)
    write_classes(folder)
    tables = read_tables(catalog, folder)

    def ask() -> float:
        text = make_statement(session, folder, catalog, TASKS["hours"], DAY - 60, tables)
        return measure({"": lambda: drop(session.sql(text))}, options.rounds)[""]

    before = ask()
    archive = ParquetArchive(folder, 1000)
    [day] = days_of_files(archive.adopt()[0])
    peak, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    merged = merge_day(folder, day)
    seconds = time.perf_counter() - begun
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    archive.settle([*(replace(file, is_removed=True) for file in day.files), merged])
    print(
        f"{readings:,} readings in {len(day.files)} files: merged in {seconds:.2f} s, the peak of memory grew by {more:.0f} MB; "
        f"query by hour {before:.2f} s before, {ask():.2f} s after; load {os.getloadavg()[0]:.0f}"
    )
    session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join([*TASKS, COMPACTION]))
    options = parser.parse_args()
    if wrong := set(options.tasks) - {*TASKS, COMPACTION}:
        parser.error(f"there is no {', '.join(sorted(wrong))}; there are {', '.join([*TASKS, COMPACTION])}")
    with tempfile.TemporaryDirectory() as scratch:
        (run_compaction if options.tasks == [COMPACTION] else run_tasks)(options, Path(scratch))


if __name__ == "__main__":
    main()

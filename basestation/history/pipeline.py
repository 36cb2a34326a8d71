"""Pipeline: keeps the readings of many archives as one file for each day, and rollups of them, and computes anew only what new files change.

    OUT/readings/extent=lab/date=2026-11-19/…parquet    each tuple once, as corrected so far
    OUT/rollups/hourly/date=2026-11-19/…parquet         the windows of a query that begin on that day
    OUT/checkpoints/extent=lab                          which files are done

A day is a function of the archives, and is replaced as a whole. So a run that is cut short, and repeated, leaves the same files.
A day of which a station has dropped readings is written no more, and reported where a late reading would change it.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.extent import Catalog, ExtentKind, LatePolicy
from acquisition.schema import Attribute, Schema, Type
from acquisition.ticks import date_of
from basestation.algebra.node import walk
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.archive.spark.new_files import take_new_files
from basestation.archive.sync import sync_path
from basestation.history.answer import find_extents, run_checks
from basestation.history.archive_views import ExtentFiles, Version, describe_extent, open_views
from basestation.history.compiler import compile_plan, needs_order
from basestation.history.refusal import SparkRefusedError
from basestation.history.statement import ArchiveView, HistoryRange
from basestation.history.stations import STATION, find_stations
from basestation.history.window_reach import find_lead, find_reach
from basestation.planner.plan import Plan

if TYPE_CHECKING:
    from basestation.archive.spark.session import DataFrame, SparkSession

_NAME = re.compile(r"[A-Za-z][\w-]*")
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Rollup:
    """A window query by name: its text as it was declared, and its plan."""

    name: str
    text: str
    plan: Plan


def check_rollup(rollup: Rollup) -> None:
    """SparkRefusedError where a part of a query cannot be computed for a day alone, ValueError for a name that is no folder."""
    if not _NAME.fullmatch(rollup.name):
        raise ValueError(f"expected a name of letters, digits, `_` and `-`, found `{rollup.name}`")
    nodes = list(walk(rollup.plan.root))
    options = rollup.plan.options
    reasons = {
        "it is no query over time windows": not any(isinstance(node, TimeWindow) for node in nodes),
        "it has rows, landmarks or a for-loop, which count from the first window": any(
            isinstance(node, RowWindow | LandmarkWindow | LoopWindow) for node in nodes
        ),
        "it goes by the order of tuples": needs_order(rollup.plan.root),
        "a column is named `date`, as the folders are": "date" in {column.label for column in rollup.plan.root.columns},
        "it reads a history": any(isinstance(node, Scan | Once) and node.history for node in nodes),
        "it has FOR or SINCE": options.run_for is not None or options.since is not None or options.since_ago is not None,
        "an extent is `late append` or `late drop`": any(
            e.kind is not ExtentKind.STORED and e.late is not LatePolicy.REVISE for e in find_extents(rollup.plan)
        ),
    }  # fmt: skip
    for reason, holds in reasons.items():
        if holds:
            raise SparkRefusedError(f"rollup `{rollup.name}`: {reason}")


def name_sites(catalog: Catalog) -> Catalog:
    """The catalog in which each sensed extent has the attribute `site`."""
    column = Attribute("site", Type.INTEGER)
    extents = {
        e.name: e if e.kind is not ExtentKind.SENSED or e.schema.find("site") else replace(e, schema=Schema((column, *e.schema.attributes)))
        for e in catalog
    }  # fmt: skip
    return replace(catalog, extents=extents)


class Pipeline:
    """Archives in `root`, files in `out`. `readings` has the plan of `SELECT * FROM extent` for each stream."""

    def __init__(
        self,
        session: "SparkSession",
        root: Path,
        out: Path,
        readings: Mapping[str, Plan],
        tables: Mapping[str, Sequence[Version]],
        rollups: Sequence[Rollup],
    ) -> None:
        self._session, self._root, self._out = session, root, out
        self._readings, self._tables, self._rollups = readings, tables, rollups
        self.written: dict[str, set[str]] = {}
        self.kept: dict[str, set[str]] = {}
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    def run(self) -> dict[str, set[str]]:
        """Take in all new files; the days of each folder that were written. `kept` has those that changed, and had to stay as they were."""
        self.written, self.kept = {}, {}
        self._forget_changed()
        for name in self._readings:
            if self._files(self._readings[name]):
                take_new_files(
                    self._session, self._pattern(name), "_tick BIGINT", self._out / "checkpoints" / f"extent={name}",
                    partial(self._take, name),
                )  # fmt: skip
        done = self._declared()
        for rollup in self._rollups:
            if rollup.name not in done and (files := self._files(rollup.plan)):
                self._write_rollup(rollup, files, _days(files, rollup.plan.catalog.tick_ms))
        self._declare({r.name: r.text for r in self._rollups})
        return self.written

    def _declared(self) -> dict[str, str]:
        """The texts of the rollups of the last run."""
        path = self._out / "rollups.json"
        found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def _declare(self, texts: Mapping[str, str]) -> None:
        path = self._out / "rollups.json"
        staged = path.with_name(f"{path.name}.part")
        staged.write_text(json.dumps(texts), encoding="utf-8")
        sync_path(staged)
        os.replace(staged, path)
        sync_path(self._out)

    def _forget_changed(self) -> None:
        """Remove what another query, or a run that was cut short, has computed under the name of a rollup."""
        self._out.mkdir(parents=True, exist_ok=True)
        found = self._declared()
        kept = {r.name: r.text for r in self._rollups if found.get(r.name) == r.text}
        self._declare(kept)  # before the folders go: a rollup that is cut short is then not taken for a whole one
        for folder in (self._out / "rollups").glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _pattern(self, extent: str) -> str:
        station = "station=*/" if find_stations(self._root) else ""
        return f"{self._root.absolute()}/{station}archive/extent={extent}/date=*"

    def _files(self, plan: Plan) -> list[ExtentFiles]:
        """Of the streams that a query reads."""
        streams = [extent for extent in find_extents(plan) if extent.kind is not ExtentKind.STORED]
        described = (describe_extent(self._root, extent.name, ahead=extent.ahead) for extent in streams)
        return [found for found in described if found is not None]

    def _take(self, extent: str, batch: "DataFrame") -> None:
        """Write the days anew whose readings or windows the ticks of new files change."""
        plan = self._readings[extent]
        tick_ms = plan.catalog.tick_ms
        found = batch.where("_tick >= 0").selectExpr(f"_tick * {tick_ms}L DIV {_DAY_MS} AS day").distinct().collect()
        changed = {date(1970, 1, 1) + timedelta(days=int(row.day)) for row in found}
        if not changed:
            return
        self._write(self._out / "readings" / f"extent={extent}", plan, self._files(plan), changed)
        changed -= {date.fromisoformat(day) for day in self.kept.get(f"readings/extent={extent}", ())}
        for rollup in self._rollups:
            if extent in {e.name for e in find_extents(rollup.plan)} and rollup.name in self._declared():
                files = self._files(rollup.plan)
                low, high = (distance * tick_ms for distance in find_reach(rollup.plan.root))
                days = {
                    day + timedelta(days=more)
                    for day in changed
                    for more in range(low // _DAY_MS, (high + _DAY_MS - 1) // _DAY_MS + 1)
                }
                self._write_rollup(rollup, files, days | self._unfinished(rollup, files))

    def _unfinished(self, rollup: Rollup, files: Sequence[ExtentFiles]) -> set[date]:
        """The first days written, before which the windows of then had nothing, the last one, which ended with the readings of then, and those around."""
        written = sorted((self._out / "rollups" / rollup.name).glob("date=*"))
        ends = [date.fromisoformat(folder.name.removeprefix("date=")) for folder in written]
        tick_ms = rollup.plan.catalog.tick_ms
        lead = timedelta(days=-(-find_lead(rollup.plan.root) * tick_ms // _DAY_MS))
        return {day for day in _days(files, tick_ms) if not ends or day <= ends[0] + lead or day >= ends[-1]}

    def _write_rollup(self, rollup: Rollup, files: Sequence[ExtentFiles], days: set[date]) -> None:
        self._write(self._out / "rollups" / rollup.name, rollup.plan, files, days)

    def _write(self, folder: Path, plan: Plan, files: Sequence[ExtentFiles], days: set[date]) -> None:
        """Replace days of a folder by the answer of a query as it is now. A day without rows has no folder."""
        tick_ms = plan.catalog.tick_ms
        first, last = min(f.first for f in files), max(f.last for f in files)
        views = open_views(self._session, self._root, plan.catalog, find_extents(plan), self._tables)
        dropped = {day for view in views.values() for day in self._find_dropped(view, days, tick_ms)}
        if dropped:
            self.kept.setdefault(str(folder.relative_to(self._out)), set()).update(map(str, dropped))
            days = days - dropped
        for start, end in _runs(days):
            begin, until = (
                max(first, _first_tick(start, tick_ms)),
                min(last, _first_tick(end + timedelta(1), tick_ms) - 1),
            )
            if until < begin:
                continue
            run_from = max(first, begin - find_lead(plan.root))
            compiled = compile_plan(plan, views, HistoryRange(run_from, until, first, until))
            run_checks(self._session, compiled)
            time = f"timestamp_millis(_tick * {tick_ms}L)"
            rows = self._session.sql(compiled.text)
            if run_from < begin:
                rows = rows.where(f"_tick >= {begin}")
            rows = rows.selectExpr(f"{time} AS _time", "*", f"CAST({time} AS DATE) AS `date`")
            rows = rows.repartition("date").sortWithinPartitions("_tick").persist()
            try:
                full = {row.date for row in rows.select("date").distinct().collect()}
                rows.write.mode("overwrite").option("compression", "zstd").partitionBy("date").parquet(str(folder))
            finally:
                rows.unpersist()
            for at in range((end - start).days + 1):
                day = start + timedelta(days=at)
                if day not in full:
                    shutil.rmtree(folder / f"date={day}", ignore_errors=True)
            self.written.setdefault(str(folder.relative_to(self._out)), set()).update(map(str, full))

    def _find_dropped(self, view: ArchiveView, days: set[date], tick_ms: int) -> set[date]:
        """The days of an extent of which the output has readings that no archive has any more: a station has dropped them."""
        folder = self._out / "readings" / f"extent={view.extent.name}"
        written = [str(path) for day in sorted(days) if (path := folder / f"date={day}").exists()]
        if not written:
            return set()
        keys = {"_tick": "_tick"}
        if view.extent.site_attribute is not None:
            keys["site"] = "_site AS site"
        if find_stations(self._root):
            keys[STATION] = STATION
        there = self._session.table(view.name).selectExpr(*keys.values())
        gone = (
            self._session.read.parquet(*written).join(there, [*keys], "left_anti").select("_tick").distinct().collect()
        )
        return {date_of(row["_tick"], tick_ms) for row in gone}


def _days(files: Sequence[ExtentFiles], tick_ms: int) -> set[date]:
    first, last = (date_of(tick, tick_ms) for tick in (max(0, min(f.first for f in files)), max(f.last for f in files)))
    return {first + timedelta(days=at) for at in range((last - first).days + 1)}


def _first_tick(day: date, tick_ms: int) -> int:
    """The first tick that begins on a day."""
    return -(-((day - date(1970, 1, 1)).days * _DAY_MS) // tick_ms)


def _runs(days: set[date]) -> Iterator[tuple[date, date]]:
    """The first and the last day of each run of consecutive days."""
    start = previous = None
    for day in sorted(days):
        if previous is not None and start is not None and day != previous + timedelta(days=1):
            yield start, previous
            start = day
        start, previous = start or day, day
    if start is not None and previous is not None:
        yield start, previous

"""Archive maintenance: rolls readings into files, merges the files of days that are over, and drops days above the limits.

A runner calls `tend` at each look. A merge runs in a process of its own, at low priority.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import IO

from acquisition.ticks import instant_of
from basestation.archive.compaction import ArchiveDay, days_of_files
from basestation.archive.manifest import ArchiveFile, FileChange
from basestation.archive.memory import MemoryArchive
from basestation.archive.parquet import ParquetArchive, file_name
from basestation.archive.retention import find_surplus
from basestation.station.durable import DAYS_OF_ROLL, DurableStation
from innet.deployment.archive_table import ArchiveSettings

ROLL_MS, ROLL_PAUSE_MS = 3_600_000, 10_000
"""Between two rolls of readings into the archive, usually and at least."""
SLICE_SECONDS = 0.1
"""A roll of many days is cut into slices of about this length, one after each look: a look comes every 250 ms where a tick is a second."""
MOST_UNARCHIVED = 100_000
"""Readings that may wait for the next roll: a few megabytes of the state and of each snapshot."""
TEND_MS = 60_000
"""Between two looks at the files."""
DAY_OVER_MS = 3_600_000
"""A day is merged so long after its end: most late readings are in by then."""
MOST_FILES = 48
"""Files of a day that is not over yet; more are merged."""
LONGEST_MERGE_SECONDS = 3_600


class MergeProcess:
    """A process that merges the files of a day into the staged file `name`."""

    def __init__(self, archive: ParquetArchive, day: ArchiveDay) -> None:
        """Start it. OSError where there is no memory for it."""
        self.day, self._archive, self._begun = day, archive, time.monotonic()
        self.name = file_name(max(int(file.name.split("-")[1]) for file in day.files))
        job = {"extent": day.extent, "day": day.day, "name": self.name, "files": [asdict(file) for file in day.files]}
        self._output: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as given:
            json.dump(job, given)
            given.seek(0)
            command = [sys.executable, "-m", "basestation.archive.compaction", str(archive.root)]
            self._process = subprocess.Popen(command, stdin=given, stdout=self._output, stderr=subprocess.STDOUT)
        archive.reserved.add(self.name)

    def poll(self) -> ArchiveFile | str | None:
        """The staged file, or why there is none; None while it runs."""
        if self._process.poll() is None:
            if time.monotonic() - self._begun < LONGEST_MERGE_SECONDS:
                return None
            self.end()
            return f"it was not merged in {LONGEST_MERGE_SECONDS} s"
        self._output.seek(0)
        printed = self._output.read()
        self._output.close()
        self._archive.reserved.discard(self.name)
        try:
            found = json.loads(printed)
            return str(found["failure"]) if "failure" in found else ArchiveFile(**found)
        except (ValueError, TypeError, IndexError):
            last = printed.strip().splitlines()[-1:] or [f"its process ended with {self._process.returncode}"]
            return last[0]

    def end(self) -> None:
        """End it; what it wrote is deleted by the next `settle`."""
        self._process.kill()
        self._process.wait()
        self._archive.reserved.discard(self.name)


class ArchiveMaintenance:
    """All methods belong to the thread of the station. Times are ms since tick 0."""

    def __init__(self, durable: DurableStation, archive: ParquetArchive, settings: ArchiveSettings | None = None,
                 roll_ms: int = ROLL_MS, free_bytes: Callable[[], int] | None = None,
                 timer: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        """`free_bytes` measures what the disk of the archive has left, `timer` the seconds that a slice of a roll takes."""
        self._durable, self._archive, self._settings = durable, archive, settings or ArchiveSettings()
        self._roll_ms, self._rolled_ms, self._tended_ms = roll_ms, durable.last_ms, durable.last_ms
        self._free_bytes = free_bytes or (lambda: shutil.disk_usage(archive.root).free + archive.leaving_bytes())
        self._merge: MergeProcess | None = None
        self._is_unfinished = False  # the last slice of a roll left readings of other days
        self._timer, self._days_of_slice = timer, 1
        self._pass, self._tried = "", set[tuple[str, str]]()

    def tend(self, now_ms: int) -> None:
        """Roll, and look at the files from time to time. One merge runs at a time."""
        self._roll(now_ms)
        if self._merge is not None:
            self._finish_merge(now_ms, self._merge)
        if self._merge is None and now_ms >= self._tended_ms + TEND_MS:
            self._tended_ms = now_ms
            self._sweep(now_ms)
            self._drop_surplus(now_ms)
            self._begin_merge(now_ms)

    def close(self) -> None:
        """End a merge that runs; the next start begins it anew."""
        if self._merge is not None:
            self._merge.end()
            self._merge = None

    def _roll(self, now_ms: int) -> None:
        """Begin a roll where one is due, or go on with it: one slice, of so many days as take about `SLICE_SECONDS`."""
        held = self._durable.station.archive
        if not isinstance(held, MemoryArchive):
            return
        if not self._is_unfinished:
            due = self._rolled_ms + (ROLL_PAUSE_MS if held.rows >= MOST_UNARCHIVED else self._roll_ms)
            if now_ms < due:
                return
            self._rolled_ms = now_ms
        begin, before = self._timer(), held.rows
        is_rolled = self._durable.roll(now_ms, self._archive, self._days_of_slice) > 0
        took = self._timer() - begin
        if is_rolled and took < SLICE_SECONDS / 2 and 0 < held.rows < before:
            self._days_of_slice = min(2 * self._days_of_slice, DAYS_OF_ROLL)
        elif took > SLICE_SECONDS:
            self._days_of_slice = max(1, self._days_of_slice // 2)
        self._is_unfinished = is_rolled and held.rows > 0

    def _begin_merge(self, now_ms: int) -> None:
        """Merge the next day: each day that is over and has several files once a day, others where they have many."""
        over = instant_of(now_ms - DAY_OVER_MS, 1).date().isoformat()
        if over != self._pass:
            self._pass, self._tried = over, set()
        for day in days_of_files(self._durable.journal.archive_files()):
            most = 1 if day.day < over else MOST_FILES
            if len(day.files) > most and (day.extent, day.day) not in self._tried:
                self._tried.add((day.extent, day.day))
                try:
                    self._merge = MergeProcess(self._archive, day)
                except OSError as why:
                    self._durable.note(now_ms, "merging files of the archive fails", day=day.day, why=str(why))
                return

    def _finish_merge(self, now_ms: int, merge: MergeProcess) -> None:
        found = merge.poll()
        if found is None:
            return
        self._merge, day = None, merge.day
        about = {"extent": day.extent, "day": day.day}
        if isinstance(found, str):
            self._durable.note(now_ms, "merging files of the archive fails", **about, why=found)
            return
        kept = {file.name for file in self._durable.journal.archive_files() if not file.is_removed}
        names = tuple(file.name for file in day.files)
        if not kept.issuperset(names):  # retention dropped the day meanwhile
            self._archive.discard([found])
            return
        if self._durable.change_archive(now_ms, self._archive, FileChange((found,), names)):
            self._durable.note(now_ms, "files of the archive merged", **about, files=len(names), bytes=found.bytes)

    def _sweep(self, now_ms: int) -> None:
        try:
            self._archive.sweep()
        except OSError as why:
            self._durable.note(now_ms, "deleting old folders of the archive fails", why=str(why))

    def _drop_surplus(self, now_ms: int) -> None:
        days = list(days_of_files(self._durable.journal.archive_files()))
        today = instant_of(now_ms, 1).date().isoformat()
        for day in find_surplus(days, self._settings, today, self._free_bytes()):
            change = FileChange(removed=tuple(file.name for file in day.files), dropped=day.rows)
            if not self._durable.change_archive(now_ms, self._archive, change):
                return
            self._durable.note(now_ms, "day of the archive dropped", extent=day.extent, day=day.day, readings=day.rows)

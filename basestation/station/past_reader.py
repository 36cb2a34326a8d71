"""Past reader: reads from the archive what the past of a query needs, for entries of the journal before the command that begins it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.batch import Batch
from basestation.archive.memory import MemoryArchive
from basestation.archive.reports import report_extent
from basestation.controller.admission import bind_single_query
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.past_windows import PastRange, reads_past
from basestation.execution.plan_checks import find_history_extents
from basestation.planner.plan import Plan
from basestation.station.journal import Upload
from basestation.station.journal_file import JournalError
from basestation.station.past_size import count_slices, measure_windows, streams_of
from basestation.station.query_limits import QueryLimitError
from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source

_REMEDY = "begin later, use a longer SLIDE or a shorter window, or ask for what is before with `moteloom history`"

if TYPE_CHECKING:
    from basestation.archive.manifest import ArchiveFile
    from basestation.archive.parquet import ParquetArchive
    from basestation.station.durable import DurableStation

MOST_RECALLED = 500_000
"""Tuples that are read for one query, for which live answers wait; a query that is replayed is answered in the same go."""
MOST_WINDOWS = 50_000
"""Past windows of one query: their answers are committed together."""
MOST_IN_WINDOWS = 10_000_000
"""Tuples in all past windows of one query together, each as often as a window holds it; of a join their pairs."""
MOST_QUERIES = 8
"""Queries that may have past windows at the same time: each holds its tuples until nothing can revise these windows."""


class PastReader:
    """A ReadPast over the archive of a running station."""

    def __init__(self, durable: "DurableStation", archive: "ParquetArchive") -> None:
        self._durable, self._archive = durable, archive

    def __call__(self, query: str | int, now_ms: int) -> list[Upload]:
        """The current tuples in the ranges of the past windows. DiagnosticError where the archive does not reach back so far, or cannot be read."""
        from basestation.station.uploads import encode_recalled

        durable = self._durable
        text = query if isinstance(query, str) else durable.station.world.queries[query].text
        try:
            if not reads_past(bind_single_query(text, durable.station.world)):
                return []
        except DiagnosticError:  # the command refuses it, and is kept
            return []
        durable.step(now_ms)  # so that the command finds the same last clock tick
        durable.prune(now_ms)
        plan, past = durable.station.find_past(query)
        if past is None:
            return []
        while durable.roll(now_ms, self._archive):
            pass
        if isinstance(memory := durable.station.archive, MemoryArchive) and memory.rows:
            raise JournalError(
                f"{memory.rows:,} readings cannot be moved into the archive now, which SINCE reads",
                "look at the event `archiving fails`, free space on the disk, then submit again",
            )
        listed = [file for file in durable.journal.archive_files() if not file.is_removed]
        files = {e.name: [file for file in listed if file.extent == e.name] for e in past.extents}
        if past.is_replayed:
            if not self._has_more(plan, files):
                return []
        elif not all(files.values()) or all(file.first >= past.seam for of in files.values() for file in of):
            return []
        names = {report_extent(extent).name for extent in streams_of(plan)}
        if any(file.extent in names and file.first < past.seam and past.begin <= file.last for file in listed):
            return []  # motes filtered readings that this query may need
        self._check(text, plan, past, files)
        found = {e.name: self._read(text, plan, past, files[e.name], e.name) for e in past.extents}
        since_begin = {name: int((batch.tick >= past.since).sum()) for name, batch in found.items()}
        _check_windows(text, plan, past, since_begin)  # again, as windows over rows are known by their tuples alone
        sizes = {name: len(batch) for name, batch in found.items()}
        count, held = measure_windows(plan, past, sizes)
        if count * held > MOST_IN_WINDOWS:
            message = (
                f"the past windows would hold {count * held:,.0f} tuples together, and may hold {MOST_IN_WINDOWS:,}"
            )
            raise _reject(text, plan, f"{message}; {_REMEDY}")
        slices = 1 if past.is_replayed else count_slices(plan, past, sizes)
        durable.note(
            now_ms,
            "past of a query read",
            since=past.since,
            seam=past.seam,
            readings=sum(sizes.values()),
            slices=slices,
        )
        return [Upload("recall", now_ms, name, encode_recalled(batch)) for name, batch in found.items()]

    def _has_more(self, plan: Plan, files: "dict[str, list[ArchiveFile]]") -> bool:
        """Whether the archive has what the log of the engine has not, for each stream of a query or one of its histories."""
        first = self._durable.station.engine.first_tick(plan)
        streams = streams_of(plan)
        if not all(files[extent.name] for extent in streams):
            return False
        return bool(streams - find_history_extents(plan.root)) or any(
            file.first < first for of in files.values() for file in of
        )

    def _check(self, text: str, plan: Plan, past: PastRange, files: "dict[str, list[ArchiveFile]]") -> None:
        first = max(min(file.first for file in files[extent.name]) for extent in streams_of(plan) or past.extents)
        if past.since < first:
            message = f"tick {past.since} is before all that is on record; the first possible tick is {first}"
            raise _reject(text, plan, message)
        _check_windows(text, plan, past, {})
        number = self._durable.station.past_count
        if number >= MOST_QUERIES:
            raise QueryLimitError(
                f"{number} queries have past windows that late data may revise, and no more may",
                "submit it when the horizon of one of them is over, or stop one",
            )
        needed = [f for of in files.values() for f in of if f.first < past.seam and past.begin <= f.last]
        count = sum(file.rows for file in needed)
        if count > MOST_RECALLED:
            raise _reject(
                text,
                plan,
                f"SINCE reaches back over {count:,} archived tuples, and a station reads at most {MOST_RECALLED:,}; "
                "begin later, and ask for what is before with `moteloom history`",
            )

    def _read(self, text: str, plan: Plan, past: PastRange, files: "list[ArchiveFile]", name: str) -> Batch:
        from basestation.archive.current import read_current
        from basestation.archive.deliveries import read_deliveries
        from basestation.archive.layout import ArchiveSchemaError

        catalog = self._durable.station.world.catalog
        root: Path = self._archive.root
        try:
            if past.is_replayed:
                return read_deliveries(root, files, catalog.extents[name], past.begin, NEVER, catalog.tick_ms)
            return read_current(root, files, catalog.extents[name], past.begin, past.seam - 1, catalog.tick_ms)
        except (OSError, ArchiveSchemaError) as why:
            raise _reject(text, plan, f"the past cannot be read from the archive: {why}") from why


def _check_windows(text: str, plan: Plan, past: PastRange, tuples: Mapping[str, int]) -> None:
    """DiagnosticError where a query has too many past windows; `tuples` are those since its begin, by extent."""
    windows, _ = measure_windows(plan, past, tuples)
    if windows > MOST_WINDOWS:
        message = f"SINCE asks for {windows:,} past windows, and a station answers {MOST_WINDOWS:,}"
        raise _reject(text, plan, f"{message}; {_REMEDY}")


def _reject(text: str, plan: Plan, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("SN434", message, Source(text), plan.statement.span)])

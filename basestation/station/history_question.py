"""HistoryQuestion: a query over an archive with the range that it asks about, checked before there is a Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acquisition.extent import Catalog
from acquisition.sources.time_bounds import Time, tick_of
from basestation.history.answer import find_extents, prepare
from basestation.history.archive_views import Version, describe_extent
from basestation.history.compiler import needs_order
from basestation.history.file_checks import check_files, find_damaged, find_missing_days
from basestation.history.statement import HistoryRange
from basestation.planner.plan import Plan
from basestation.replay.statements import read_statements
from gateway.errors import MoteloomError


class HistoryQuestionError(MoteloomError):
    """A question has no answer in the archive; the message says which range or query has one."""

    code = "no-answer"


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A query over the archive in `root`, and the ticks of its windows."""

    root: Path
    plan: Plan
    tables: Mapping[str, Sequence[Version]]
    span: HistoryRange
    skipped: Mapping[Path, str]
    """Damaged files that are left out, each with its damage."""
    missing: Mapping[str, Sequence[str]]
    """By extent, the days of the range that have no reading."""
    ends: tuple[int, int]
    """The first and the last tick on record."""


def choose_range(begin: Time | None, until: Time | None, ends: tuple[int, int], tick_ms: int) -> tuple[int, int]:
    """The ticks from `begin` to `until`; without them those of `ends`. HistoryQuestionError for a time that does not exist."""
    try:
        first = ends[0] if begin is None else tick_of(begin, ends, tick_ms, "UTC")
        last = ends[1] if until is None else tick_of(until, ends, tick_ms, "UTC")
    except ValueError as why:
        raise HistoryQuestionError(str(why)) from why
    return first, last


def read_question(
    root: Path,
    catalog: Catalog,
    tables: Mapping[str, Sequence[Version]],
    text: str,
    name: str | None = None,
    begin: Time | None = None,
    until: Time | None = None,
    skip_damaged: bool = False,
) -> HistoryQuestion:
    """Read a query, `name` being its file, over the windows from `begin` to `until`.

    Raises DiagnosticError for a wrong query, HistoryQuestionError for one without answer here, SparkRefusedError for one that Spark
    cannot answer exactly, DamagedFileError and InputError for a file.
    """
    statements = read_statements([text], catalog, name)
    if len(statements) != 1 or not isinstance(statements[0].bound, Plan):
        raise HistoryQuestionError("expected one query; the archive does not change")
    plan = statements[0].bound
    extents = find_extents(plan)
    skipped: dict[Path, str] = {}
    for extent in extents if skip_damaged else ():
        skipped |= find_damaged(root, extent.name)
    files = []
    for extent in extents:
        found = None if extent.name in tables else describe_extent(root, extent.name, skipped, extent.ahead)
        if found is not None:
            check_files(found, extent, catalog.tick_ms)
            files.append(found)
    streams = [extent.name for extent in extents if extent.name not in tables]
    if streams and not files:
        raise HistoryQuestionError(
            f"the archive holds no reading of `{'`, `'.join(streams)}`; a station rolls its readings "
            "into it, by default once an hour"
        )
    first = min((found.first for found in files), default=0)
    last = max((found.last for found in files), default=0)
    start, end = choose_range(begin, until, (first, last), catalog.tick_ms)
    if needs_order(plan.root):  # it goes by arrival
        last = max([last, *(found.last_arrival for found in files)])
        end = last if until is None else end
    if end < start:
        raise HistoryQuestionError(f"the range begins at tick {start}, after the last window at tick {end}")
    if files and (start > last or end < first):
        raise HistoryQuestionError(
            f"the archive has readings of the ticks {first} to {last}; the range {start} to {end} has none"
        )
    span = HistoryRange(start, end, first, end)
    prepare(plan, tables, span, {found.extent for found in files if found.corrections})
    missing = {f.extent: find_missing_days(f, start, end, catalog.tick_ms) for f in files}
    return HistoryQuestion(root, plan, tables, span, skipped, missing, (first, last))

"""Recovery: the station of a journal, from its newest readable snapshot, or else from the log where that has all that came in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from basestation.execution.snapshot import SnapshotError
from basestation.station.journal import Journal
from basestation.station.journal_file import PROGRAM, JournalError, name_program
from basestation.station.service import Station
from basestation.station.state_migration import CURRENT, Format, find_format, find_renewals, read_head
from basestation.station.station_snapshot import restore_station
from gateway.transports import Transport

MakeStation = Callable[[Transport, int], Station]
"""A new station on a transport at a time in ms, without queries."""
FAILURES_KEPT = "failures are kept after"
"""The fact that names the last entry of an older program, which kept no failures for lack of memory."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A station as of entry `entry` of the log, at a time in ms."""

    station: Station
    entry: int
    at_ms: int
    older: Format | None = None  # of the snapshot, where an older program wrote it


def restore_newest(journal: Journal, outside: Mapping[str, object]) -> Restored | None:
    """The station of the newest readable snapshot; None where there is none and the log begins with the first entry.

    One of an older program is readable where the log has nothing behind it. JournalError where a part of the log is only in snapshots
    that cannot be read.
    """
    failures = []
    for number, at_ms, body in journal.snapshots():
        format_ = find_format(body)
        if number < journal.last and format_ != CURRENT and find_renewals(format_) is not None:
            failures.append(f"the log goes on behind the state `{read_head(body)}`")
            continue
        try:
            station = restore_station(body, dict(outside))
        except SnapshotError as why:
            failures.append(str(why))
            continue
        return Restored(station, number, at_ms, None if format_ == CURRENT else format_)
    if journal.first > 1:
        raise JournalError(
            f"no snapshot in {journal.path} can be read: {'; '.join(dict.fromkeys(failures))}",
            name_program(journal.fact(PROGRAM)),
        )
    return None


def begin_station(journal: Journal, make: MakeStation, transport: Transport, now_ms: int) -> Station:
    """A station of which the log has all that came in: it begins at the time at which it began first."""
    begun = journal.fact("begun_ms")
    if begun is None:
        journal.state_fact("begun_ms", str(now_ms))
    return make(transport, now_ms if begun is None else int(begun))


def keep_numbers(station: Station, journal: Journal) -> None:
    """Let queries and results go on above the numbers that are kept, where another program than before computed the log again."""
    station.world = replace(station.world, last_number=max(station.world.last_number, journal.last_query))
    for number in station.world.queries:
        station.feed.skip_to(number, journal.bounds(number)[1])

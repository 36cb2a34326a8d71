"""Completeness: which readings of an extent an archive has, of those that were due, by site and day. From the keys in its files alone."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.ticks import date_of, grid_at_or_after
from basestation.archive.layout import SUFFIX, day_folder
from basestation.archive.reports import REPORTS
from basestation.history.stations import STATION, find_stations

MOST_DAYS = 3_660
"""A range of more days does not come from readings: some clock was wrong."""
_KEYS = ["_site", "_tick", "_weight"]


@dataclass(slots=True)
class SiteRecord:
    """Due readings of a site, and those in the archive. `filtered` ones were measured, and no query needed them.

    `gaps` counts runs of due ticks with neither, `longest` is the length of the longest run in ticks. `shares` is by day: the part of the due
    readings that is there.
    """

    station: str | None
    site: int
    due: int = 0
    readings: int = 0
    filtered: int = 0
    gaps: int = 0
    longest: int = 0
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def complete(self) -> float:
        """The part of the due readings that is there, from 0 to 1."""
        return (self.readings + self.filtered) / self.due if self.due else 1.0


def measure_completeness(root: Path, extent: Extent, tick_ms: int, first: int, last: int) -> list[SiteRecord]:
    """The record of each site of a sensed extent over the ticks from `first` to `last`. InputError names what cannot be read."""
    start, end = date_of(first, tick_ms), date_of(last, tick_ms)
    if (end - start).days >= MOST_DAYS:
        raise InputError(
            "SN501",
            f"the readings span {(end - start).days:,} days; choose a part with --from and --to",
            f"extent {extent.name}",
        )
    days = [(start + timedelta(days=at)).isoformat() for at in range((end - start).days + 1)]
    found: list[SiteRecord] = []
    stations: list[tuple[str | None, Path]] = [*find_stations(root).items()]
    for station, folder in stations or [(None, root)]:
        records = {site: SiteRecord(station, site) for site in extent.sites or ()}
        previous: dict[int, int] = {}
        interval = extent.interval or 1
        due_first = grid_at_or_after(first, interval)
        for day in days:
            due = _due_ticks(day, tick_ms, interval, first, last)
            readings = _read_keys(folder, extent.name, day, interval, first, last)
            reported = _read_keys(folder, f"{REPORTS}/{extent.name}", day, interval, first, last)
            if extent.sites is None:  # every mote with the sensors
                records |= {
                    site: SiteRecord(station, site) for site in readings.keys() | reported.keys() if site not in records
                }
            for site, record in records.items():
                own, filtered = readings.get(site, _NONE), reported.get(site, _NONE)
                present = np.union1d(own, filtered)
                record.due += due
                record.readings += len(own)
                record.filtered += len(present) - len(own)
                record.shares[day] = len(present) / due if due else 1.0
                _count_gaps(record, np.concatenate([[previous.get(site, due_first - interval)], present]), interval)
                if len(present):
                    previous[site] = int(present[-1])
        due_end = last // interval * interval + interval
        for site, record in records.items():
            _count_gaps(record, np.array([previous.get(site, due_first - interval), due_end]), interval)
        found += [records[site] for site in sorted(records)]
    return found


def table_of_records(records: list[SiteRecord], tick_ms: int) -> pa.Table:
    """A row for each site."""
    columns = {
        "site": [r.site for r in records],
        "due": [r.due for r in records],
        "readings": [r.readings for r in records],
        "filtered": [r.filtered for r in records],
        "complete": [round(r.complete, 4) for r in records],
        "gaps": [r.gaps for r in records],
        "longest_gap_s": [r.longest * tick_ms / 1000 for r in records],
    }
    if any(r.station is not None for r in records):
        columns = {STATION: [r.station for r in records], **columns}
    return pa.table(columns)


_NONE: IntArray = np.zeros(0, np.int64)


def _due_ticks(day: str, tick_ms: int, interval: int, first: int, last: int) -> int:
    """How many multiples of the interval begin on a day, within the range."""
    begin = -(-int(np.datetime64(day, "ms").astype(np.int64)) // tick_ms)
    end = -(-int((np.datetime64(day, "ms") + np.timedelta64(1, "D")).astype(np.int64)) // tick_ms) - 1
    return max(0, min(end, last) // interval - -(-max(begin, first) // interval) + 1)


def _read_keys(root: Path, extent: str, day: str, interval: int, first: int, last: int) -> dict[int, IntArray]:
    """The due ticks of each site that the files of a day hold, each once, in order."""
    parts = []
    for path in sorted(day_folder(root, extent, day).glob(f"part-*{SUFFIX}")):
        try:
            parts.append(pq.read_table(path, columns=_KEYS, partitioning=None))
        except (OSError, pa.ArrowException) as why:
            raise InputError("SN501", f"cannot be read: {why}", str(path)) from why
    if not parts:
        return {}
    table = pa.concat_tables(parts)
    site, tick, weight = (table.column(name).to_numpy() for name in _KEYS)
    # A correction is no reading: its weight is 1 or -1, and the reading that it changes stands beside it.
    wanted = (weight >= 0) & (tick % interval == 0) & (tick >= first) & (tick <= last)
    span = last - first + 1
    keys = np.unique(site[wanted] * span + tick[wanted] - first)
    sites, starts = np.unique(keys // span, return_index=True)
    return {int(each): ticks for each, ticks in zip(sites, np.split(keys % span + first, starts[1:]), strict=True)}


def _count_gaps(record: SiteRecord, ticks: IntArray, interval: int) -> None:
    """Count the runs of due ticks that lie between ticks."""
    lengths = np.diff(ticks) - interval
    record.gaps += int((lengths > 0).sum())
    record.longest = max(record.longest, int(lengths.max(initial=0)))

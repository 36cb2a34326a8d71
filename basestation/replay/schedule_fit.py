"""Whether a recording fits the schedule of its extent: how many readings are off it or from unknown sites, and what would help."""

from collections import Counter
from collections.abc import Collection

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch
from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.units import span_text

REJECTED_SHARE = 10
"""A recording of which more than one reading in so many is rejected is refused."""
_NAMED_SITES = 5


class ScheduleFit:
    """Counts of the readings of one sensed extent, over all blocks of its recording."""

    def __init__(self, extent: Extent, tick_ms: int) -> None:
        self._extent, self._tick_ms = extent, tick_ms
        self._sites = None if extent.sites is None else np.array(sorted(extent.sites), np.int64)
        self.count = self.off_schedule = self.snapped = self.ahead = 0
        self.merged = 0
        """Readings that snapping moved to the tick of another reading of their site, of those in one block."""
        self.farthest = 0
        """The largest distance of a reading from the schedule, in ticks."""
        self.unknown_sites: Counter[int] = Counter()
        self._apart: int | None = None  # ticks between readings of a site, in the first block

    def add(self, batch: Batch, snapped: int = 0, recorded: IntArray | None = None) -> None:
        """Count the readings of a block; `snapped` of them were moved to the schedule, from the ticks `recorded`."""
        recorded = batch.tick if recorded is None else recorded
        if batch.replaces is not None:
            new = batch.replaces == 0
            batch, recorded = batch.take(new), recorded[new]
        interval = self._extent.interval or 1
        self.count += len(batch)
        self.snapped += snapped
        if snapped:
            self.merged += _count_readings(recorded, batch.site) - _count_readings(batch.tick, batch.site)
        distance = np.minimum(batch.tick % interval, -batch.tick % interval)
        known = np.ones(len(batch), bool) if self._sites is None else np.isin(batch.site, self._sites)
        self.off_schedule += int(((distance > 0) & known).sum())
        self.farthest = max(self.farthest, int(distance.max(initial=0)))
        if self._extent.ahead is not None:
            self.ahead += int((batch.tick > batch.arrival + self._extent.ahead).sum())
        for site, count in zip(*np.unique(batch.site[~known], return_counts=True), strict=True):
            self.unknown_sites[int(site)] += int(count)
        if self._apart is None and len(batch) > 1:
            self._apart = _typical_interval(recorded, batch.site)

    @property
    def rejected(self) -> int:
        """How many readings the engine will reject."""
        return self.off_schedule + self.unknown_sites.total() + self.ahead + self.merged

    def notes(self) -> list[str]:
        """Sentences about readings that are moved or rejected."""
        found = []
        if self.snapped:
            note = f"{self._extent.name}: {self.snapped:,} of {self.count:,} readings were moved to the schedule"
            more = f", {self.merged:,} of them to the tick of another one of their site: the first counts"
            found.append(note + more * bool(self.merged))
        if self.unknown_sites:
            found.append(f"{self._extent.name}: {self._unknown()}")
        return found

    def check(self, name: str) -> None:
        """Raise InputError if more than a tenth of the readings is rejected: the answers would be about the rest."""
        if self.rejected * REJECTED_SHARE <= self.count:
            return
        worst = max(self.off_schedule, self.unknown_sites.total(), self.ahead, self.merged)
        share = f"of {self.count:,} readings"
        if worst == self.merged:
            every = span_text(self._extent.interval or 1, self._tick_ms)
            apart = span_text(self._apart or 1, self._tick_ms)
            reason = f"{self.merged:,} {share} would be moved to the tick of another one of their site, every {every}"
            help = (
                f"most readings of a site are {apart} apart: write `every {apart}` in the schema, or a smaller `--snap`"
            )
        elif worst == self.off_schedule:
            reason, help = self._off_schedule(share)
        elif worst == self.ahead:
            ahead = span_text(self._extent.ahead or 0, self._tick_ms)
            reason = f"{self.ahead:,} {share} are stamped more than {ahead} ahead of their arrival"
            help = "check `_tick` and `_arrival`, or declare a larger `ahead` in the schema"
        else:
            reason, help = self._unknown(), "name these sites in the schema, or write `at sites all`"
        raise InputError("SN517", reason, name, help=f"{help}; `--allow-rejected` runs anyway")

    def _off_schedule(self, share: str) -> tuple[str, str]:
        interval = self._extent.interval or 1
        every = span_text(interval, self._tick_ms)
        reason = f"{self.off_schedule:,} {share} are off the schedule of `{self._extent.name}`, every {every}"
        reason += f": up to {span_text(self.farthest, self._tick_ms)} from a multiple of it"
        if self._apart and not 3 * interval <= 4 * self._apart <= 5 * interval:
            apart = span_text(self._apart, self._tick_ms)
            return (
                reason,
                f"most readings of a site are {apart} apart: write `every {apart}` in the schema, or try `--snap`",
            )
        return reason, "`--snap` moves each reading to the nearest tick of the schedule"

    def _unknown(self) -> str:
        total, sites = self.unknown_sites.total(), sorted(self.unknown_sites)
        return f"{total:,} of {self.count:,} readings are of {list_sites(sites)}, not among `at sites` of `{self._extent.name}`"


def list_sites(sites: Collection[int]) -> str:
    """Return the first sites as text."""
    first = ", ".join(map(str, list(sites)[:_NAMED_SITES]))
    more = f" and {len(sites) - _NAMED_SITES:,} more" if len(sites) > _NAMED_SITES else ""
    return f"site{'s' if len(sites) > 1 else ''} {first}{more}"


def _count_readings(tick: IntArray, site: IntArray) -> int:
    """Return how many readings there are if those of a site and a tick are one."""
    order = np.lexsort((tick, site))
    return 1 + int(((np.diff(tick[order]) != 0) | (np.diff(site[order]) != 0)).sum()) if len(tick) else 0


def _typical_interval(tick: IntArray, site: IntArray) -> int | None:
    """Return the median time between two readings of a site."""
    order = np.lexsort((tick, site))
    tick, site = tick[order], site[order]
    apart = np.diff(tick)[(np.diff(site) == 0) & (np.diff(tick) > 0)]
    return int(np.median(apart)) if len(apart) else None

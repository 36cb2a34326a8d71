"""Epoch keys: the (tick, site) pairs of readings, run-length encoded by tick, with each site's column number."""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class EpochKeys:
    """A run is a stretch of consecutive entries with the same tick.

    `ticks` has the tick of each run, `counts` the number of its entries, `places` the column of each entry's site: its
    position in the declared order, or NOWHERE for a site that is not declared.
    """

    ticks: IntArray
    counts: IntArray
    places: IntArray

    def each(self, values: AnyArray) -> AnyArray:
        """Expand one value per run to one value per entry."""
        return np.repeat(values, self.counts)

    def of_runs(self, mask: BoolArray) -> IntArray:
        """Count, per run, the entries for which a mask over the entries is true."""
        counted: IntArray = np.add.reduceat(mask, np.cumsum(self.counts) - self.counts, dtype=np.int64)
        return counted


NOWHERE = -1
_SPARSE = 16
"""SiteIndex uses a lookup table if at least one in this many numbers between the first and the last site is a site."""


class SiteIndex:
    """Maps site numbers to their positions in the declared order."""

    def __init__(self, sites: IntArray) -> None:
        self._order: IntArray = np.argsort(sites, kind="stable")
        self._sorted = sites[self._order]
        self._table: IntArray | None = None
        if len(sites) and int(self._sorted[-1]) - int(self._sorted[0]) < _SPARSE * len(sites):
            self._table = np.full(int(self._sorted[-1] - self._sorted[0]) + 1, NOWHERE)
            self._table[sites - self._sorted[0]] = np.arange(len(sites))

    def of(self, sites: IntArray) -> IntArray:
        """Look up the position of each site; NOWHERE for a site that is not declared."""
        if not len(sites) or not len(self._sorted):
            return np.full(len(sites), NOWHERE)
        if self._table is not None and sites.min() >= self._sorted[0] and sites.max() <= self._sorted[-1]:
            found: IntArray = self._table.take(sites - self._sorted[0])
            return found
        at = np.minimum(np.searchsorted(self._sorted, sites), len(self._sorted) - 1)
        return np.where(self._sorted[at] == sites, self._order[at], NOWHERE)


def make_epoch_keys(ticks: IntArray, sites: IntArray, index: SiteIndex) -> EpochKeys:
    """Encode parallel arrays of ticks and sites."""
    begin = np.flatnonzero(np.append(True, ticks[1:] != ticks[:-1])[: len(ticks)])
    return EpochKeys(ticks[begin], np.diff(begin, append=len(ticks)), index.of(sites))

"""Keys: the (tick, site) of readings, as epochs look them up: the entries of one tick in a row are one run."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class EpochKeys:
    ticks: np.ndarray  # of each run
    counts: np.ndarray  # how many entries each run has
    places: np.ndarray  # of the site of each entry among those that are declared; NOWHERE where it is none of them

    def each(self, values):
        """What is known of each run, for each entry."""
        return np.repeat(values, self.counts)

    def of_runs(self, mask):
        """How many entries of each run a mask holds for."""
        return np.add.reduceat(mask, np.cumsum(self.counts) - self.counts, dtype=np.int64)


NOWHERE = -1
_SPARSE = 16
"""A table of places is made where at least one of so many numbers between the first site and the last is a site."""


class SiteIndex:
    """The place of each site in the declared order."""

    def __init__(self, sites):
        self._order = np.argsort(sites, kind="stable")
        self._sorted = sites[self._order]
        self._table = None
        if len(sites) and int(self._sorted[-1]) - int(self._sorted[0]) < _SPARSE * len(sites):
            self._table = np.full(int(self._sorted[-1] - self._sorted[0]) + 1, NOWHERE)
            self._table[sites - self._sorted[0]] = np.arange(len(sites))

    def of(self, sites):
        """NOWHERE for one that is not declared."""
        if not len(sites) or not len(self._sorted):
            return np.full(len(sites), NOWHERE)
        if self._table is not None and sites.min() >= self._sorted[0] and sites.max() <= self._sorted[-1]:
            return self._table.take(sites - self._sorted[0])
        at = np.minimum(np.searchsorted(self._sorted, sites), len(self._sorted) - 1)
        return np.where(self._sorted[at] == sites, self._order[at], NOWHERE)


def make_epoch_keys(ticks, sites, places):
    """The Keys of entries; `places` are the Places of sites."""
    begin = np.flatnonzero(np.append(True, ticks[1:] != ticks[:-1])[: len(ticks)])
    return EpochKeys(ticks[begin], np.diff(begin, append=len(ticks)), places.of(sites))

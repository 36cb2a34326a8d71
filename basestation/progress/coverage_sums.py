"""Coverage sums: prefix sums of the number of sites used at each tick, shared by all windows that cover alike (semantics 12.3).

The coverage of a window is one subtraction. Sums of ticks that no window needs any more are dropped, except at the ticks
where landmark windows begin.
"""

from typing import Protocol

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.progress.query_scope import QueryScope
from basestation.progress.watermark import EpochProgress

_AT_ONCE = 2**20  # (tick, site) pairs counted in one step: bounds the size of temporary arrays


class SiteUse(Protocol):
    """Knows which sites of an extent are used."""

    def used(self, ticks: IntArray, excluded: BoolArray, scope: QueryScope) -> IntArray:
        """Count the sites used at each tick. `excluded` is a mask over the sites in declared order; those always count."""
        ...


class CoverageSums:
    """Prefix sums over places. Place 0 is the first scheduled multiple of `interval`, place n lies n intervals later.

    Excluded sites count as used at every place.
    """

    def __init__(
        self,
        site_use: SiteUse,
        epochs: EpochProgress,
        interval: int,
        excluded: BoolArray,
        begun: int,
        scope: QueryScope,
    ) -> None:
        """No tick before `begun` will be queried. Readings and reports outside `scope` do not count."""
        self.sites = len(epochs.sites)
        self._site_use, self._epochs, self._interval, self._excluded = site_use, epochs, interval, excluded
        self._scope = scope
        self._base = self._place(begun)  # the place of the first sum; earlier ones were dropped
        self._sums = np.zeros(1, np.int64)  # _sums[i] is the sum of all places before _base + i
        self._anchors: dict[int, int] = {}  # place -> the sum before it, for places that were dropped

    def places(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Convert closed tick ranges [low, high] to half-open ranges of places: (first, behind the last)."""
        begun = self._epochs.begun
        base = begun + -begun % self._interval
        first = np.maximum(-((base - low) // self._interval), 0)
        return first, (high - base) // self._interval + 1

    def between(self, first: IntArray, behind: IntArray) -> IntArray:
        """Count the sites used at the places [first, behind), added up over the places."""
        if not len(first):
            return first
        self._extend(int(behind.max()))
        return self._sum(behind) - self._sum(first)

    def anchor(self, low: int) -> None:
        """Keep the sum at tick `low` for ever: windows will always begin there."""
        first = self._place(low)
        self._extend(first)
        self._anchors[first] = int(self._sum(np.array([first]))[0])

    @property
    def blank(self) -> bool:
        """Whether nothing would be lost if these sums were computed anew."""
        return len(self._sums) == 1 and not self._anchors

    def changed(self, tick: int) -> None:
        """Drop the sums from a tick on; what is known of earlier ticks has not changed."""
        place = self._place(tick)
        self._sums = self._sums[: max(1, place - self._base + 1)]

    def forget(self, before: int) -> None:
        """Drop the sums before a tick, which stays unchanged and is queried at anchors only."""
        dropped = min(self._place(before) - self._base, len(self._sums) - 1)
        if dropped > 0:
            self._sums, self._base = self._sums[dropped:].copy(), self._base + dropped

    def _place(self, tick: int) -> int:
        """The first place at or after a tick."""
        one = np.array([tick])
        return int(self.places(one, one)[0][0])

    def _sum(self, places: IntArray) -> IntArray:
        at = places - self._base
        if (at >= 0).all():
            return self._sums[at]
        out: IntArray = self._sums[np.maximum(at, 0)]
        early = np.flatnonzero(at < 0)
        unknown = int(self._excluded.sum())  # before the first sum only excluded sites count
        out[early] = [self._anchors.get(place, self._sums[0] - (self._base - place) * unknown)
                      for place in places[early].tolist()]  # fmt: skip
        return out

    def _extend(self, behind: int) -> None:
        """Compute the sums up to a place."""
        first = self._base + len(self._sums) - 1
        begun = self._epochs.begun
        portion = max(1, _AT_ONCE // max(1, self.sites))
        counts = [np.empty(0, np.int64)]
        for begin in range(first, behind, portion):
            places = np.arange(begin, min(begin + portion, behind))
            ticks = begun + -begun % self._interval + places * self._interval
            counts.append(self._site_use.used(ticks, self._excluded, self._scope))
        if len(counts) > 1:
            self._sums = np.concatenate([self._sums, self._sums[-1] + np.cumsum(np.concatenate(counts))])


class SharedCoverageSums:
    """The CoverageSums of one extent, one for each combination of interval, excluded sites and scope."""

    def __init__(self, site_use: SiteUse, epochs: EpochProgress) -> None:
        self._site_use, self._epochs = site_use, epochs
        self._sums: dict[tuple[int, bytes, QueryScope], CoverageSums] = {}

    def __len__(self) -> int:
        return len(self._sums)

    def of(self, interval: int, excluded: BoolArray, begun: int, scope: QueryScope) -> CoverageSums:
        """Find or make the sums for one way to cover. No tick before `begun` will be queried."""
        key = interval, excluded.tobytes(), scope
        if key not in self._sums:
            self._sums[key] = CoverageSums(self._site_use, self._epochs, interval, excluded, begun, scope)
        return self._sums[key]

    def changed(self, tick: int) -> None:
        """Drop all sums from a tick on."""
        for sums in self._sums.values():
            sums.changed(tick)

    def forget(self, before: int) -> None:
        """Drop all sums before a tick, and the CoverageSums that were not used since the last call."""
        for sums in self._sums.values():
            sums.forget(before)
        self._sums = {key: sums for key, sums in self._sums.items() if not sums.blank}

"""CoverageRanges: the readings that windows should have had, as ranges of ticks (semantics 12.3).

`CoverageSource` is what such ranges ask of the intake of their extent.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.window_batch import expand_ranges
from basestation.progress.coverage_sums import CoverageSums
from basestation.progress.query_scope import WHOLE_SCOPE, QueryScope
from basestation.progress.watermark import EpochProgress


class CoverageSource(Protocol):
    """Knows which sites' readings of a sensed extent are known at which ticks."""

    @property
    def epochs(self) -> EpochProgress:
        """The schedule of the extent, and its sites."""

    def tally(self, interval: int, excluded: BoolArray, scope: QueryScope) -> CoverageSums | None:
        """Return the shared sums of used sites by tick; None if what is used depends on the window as well.

        `interval` is in ticks, `excluded` a mask over the sites.
        """

    def known_at(self, tick: int, at: int, scope: QueryScope) -> BoolArray:
        """Return a mask over the sites whose readings of a due tick are known; for `late append`, by window tick `at`."""


def _empty() -> IntArray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class CoverageRanges:
    """One occurrence of an extent below some windows: window `owner[i]` covers the readings due from tick low[i] to high[i].

    A window may own several ranges, or none. `intake` is None for a pushed extent, of which no reading is due. `at[i]` is the
    window's tick: a `late append` tuple counts from its arrival on. `excludes` are masks over the sites that a conjunct over
    `site` alone leaves out. `scope` limits what counts to the columns and reports of the query.
    """

    extent: str
    intake: CoverageSource | None = None
    interval: int = 1
    excludes: tuple[BoolArray, ...] = ()
    scope: QueryScope = WHOLE_SCOPE
    owner: IntArray = field(default_factory=_empty)
    low: IntArray = field(default_factory=_empty)
    high: IntArray = field(default_factory=_empty)
    at: IntArray = field(default_factory=_empty)

    @property
    def source(self) -> CoverageSource:
        """The intake, of a sensed extent."""
        if self.intake is None:
            raise TypeError(f"expected a sensed extent, found the pushed extent {self.extent!r}")
        return self.intake

    @property
    def excluded(self) -> BoolArray:
        """A mask of the sites that at least one conjunct leaves out."""
        mask = np.zeros(len(self.source.epochs.sites), bool)
        for exclude in self.excludes:
            mask |= exclude
        return mask

    def owned(self, owner: IntArray, which: IntArray) -> "CoverageRanges":
        """Return the same ranges for other owners: owner[i] owns the ranges of window which[i]."""
        order = np.argsort(self.owner, kind="stable")
        ordered = self.owner[order]
        first = np.searchsorted(ordered, which)
        counts = np.searchsorted(ordered, which, "right") - first
        rows = order[expand_ranges(first, counts)]
        return replace(self, owner=np.repeat(owner, counts), low=self.low[rows], high=self.high[rows], at=self.at[rows])

    @property
    def tally(self) -> CoverageSums | None:
        """The sums of used readings by tick, shared by all ranges that count alike; None if there are none by tick alone."""
        return self.source.tally(self.interval, self.excluded, self.scope)

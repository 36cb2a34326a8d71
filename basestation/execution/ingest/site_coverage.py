"""SiteCoverage: which sites' readings of the due ticks of a sensed extent are known, as coverage counts them (semantics 12.3)."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Extent, LatePolicy
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.progress.coverage_sums import CoverageSums, SharedCoverageSums
from basestation.progress.query_scope import WHOLE_SCOPE, QueryScope
from basestation.progress.watermark import NEVER, EpochProgress


class SiteCoverage:
    """A CoverageSource. A reading is known if windows see it, or if its mote reported that it was filtered."""

    def __init__(self, extent: Extent, epochs: EpochProgress, log: TupleLog, begun: int) -> None:
        """No tick before `begun` is asked for."""
        self._late, self.epochs, self._log = extent.late, epochs, log
        self._kept_from = begun
        self.tallies = SharedCoverageSums(self, epochs)

    def known_sites(self, ticks: IntArray, scope: QueryScope = WHOLE_SCOPE) -> BoolArray:
        """Return a mask of shape (ticks, sites) of the readings of due ticks that are known within a scope."""
        reported = (self.epochs.filtered_at(ticks) != NEVER) & (ticks >= scope.reports_from)[:, None]
        return np.asarray(self._seen_sites(ticks, scope) | reported)

    def used(self, ticks: IntArray, excluded: BoolArray, scope: QueryScope) -> IntArray:
        """Return how many sites are used at each due tick: known, or excluded. `excluded` is a mask over the sites."""
        used: IntArray = (self.known_sites(ticks, scope) | excluded).sum(axis=1)
        return used

    def _seen_sites(self, ticks: IntArray, scope: QueryScope) -> BoolArray:
        numbers = self.epochs.seen_at(ticks)
        return self._log.is_visible(numbers) & self._log.column_sets.all_of(scope.columns, numbers)

    def known_at(self, tick: int, at: int, scope: QueryScope) -> BoolArray:
        """Return a mask of the sites whose readings of a due tick are known; for `late append`, by the window tick `at`."""
        ticks = np.array([tick])
        if self._late is not LatePolicy.APPEND:
            return np.asarray(self.known_sites(ticks, scope)[0])
        known = self._seen_sites(ticks, scope)[0]
        if known.any():
            known[known] = self._log.arrivals(self.epochs.seen_at(ticks)[0][known]) <= at
        reported = self.epochs.filtered_at(ticks)[0]
        return np.asarray(known | ((reported <= at) & (reported != NEVER) & (tick >= scope.reports_from)))

    def tally(self, interval: int, excluded: BoolArray, scope: QueryScope) -> CoverageSums | None:
        """Return the sums of used sites that all equal coverage shares.

        None for `late append`, where what is used depends on the window as well as on the tick.
        """
        if self._late is LatePolicy.APPEND:
            return None
        return self.tallies.of(interval, excluded, max(self._kept_from, self.epochs.begun), scope)

    def forget(self, before: int) -> None:
        """No earlier tick is asked for any more."""
        self._kept_from = max(self._kept_from, before)
        self.tallies.forget(before)

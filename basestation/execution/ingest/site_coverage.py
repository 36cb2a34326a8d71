"""Census: which sites' readings of the due ticks of a sensed extent are known, as coverage counts them (SEMANTICS 12.3)."""

import numpy as np

from acquisition.extent import LatePolicy
from basestation.progress.coverage_sums import SharedCoverageSums
from basestation.progress.query_scope import WHOLE_SCOPE
from basestation.progress.watermark import NEVER


class SiteCoverage:
    def __init__(self, extent, epochs, log, begun):
        """Nothing is asked for before tick `begun`."""
        self._late, self.epochs, self._log = extent.late, epochs, log
        self._kept_from = begun
        self.tallies = SharedCoverageSums(self, epochs)

    def known_sites(self, ticks, scope=WHOLE_SCOPE):
        """Which sites' readings of due ticks are known to who heeds so much: a row for each tick."""
        reported = (self.epochs.filtered_at(ticks) != NEVER) & (ticks >= scope.reports_from)[:, None]
        return self._seen_sites(ticks, scope) | reported

    def used(self, ticks, excluded, scope):
        """How many sites are used at each of some due ticks: known, or excluded."""
        return (self.known_sites(ticks, scope) | excluded).sum(axis=1)

    def _seen_sites(self, ticks, scope):
        numbers = self.epochs.seen_at(ticks)
        return self._log.sees(numbers) & self._log.column_sets.all_of(scope.columns, numbers)

    def known_at(self, tick, at, scope):
        """Which sites' readings of a due tick are known; for a `late append` extent, by the tick `at` of a window."""
        ticks = np.array([tick])
        if self._late is not LatePolicy.APPEND:
            return self.known_sites(ticks, scope)[0]
        known = self._seen_sites(ticks, scope)[0]
        if known.any():
            known[known] = self._log.arrivals(self.epochs.seen_at(ticks)[0][known]) <= at
        reported = self.epochs.filtered_at(ticks)[0]
        return known | ((reported <= at) & (reported != NEVER) & (tick >= scope.reports_from))

    def tally(self, interval, excluded, scope):
        """The Tally of all that cover alike; None where what is used depends on the window, not on the tick alone."""
        if self._late is LatePolicy.APPEND:
            return None
        return self.tallies.of(interval, excluded, max(self._kept_from, self.epochs.begun), scope)

    def forget(self, before):
        """No tick before is asked for any more."""
        self._kept_from = max(self._kept_from, before)
        self.tallies.forget(before)

"""Census: which sites' readings of the due ticks of a sensed extent are known, as coverage counts them (SEMANTICS 12.3)."""

import numpy as np

from acquisition.extent import Late
from basestation.windows.epochs import NEVER
from basestation.windows.tally import Tallies


class Census:
    def __init__(self, extent, epochs, log):
        self._late, self._epochs, self._log = extent.late, epochs, log
        self.tallies = Tallies(self, epochs)

    def known_sites(self, ticks, reports_from=-NEVER):
        """Which sites' readings of due ticks are known: a row for each tick. Reports of filtered ones count from a tick on."""
        reported = (self._epochs.filtered_at(ticks) != NEVER) & (ticks >= reports_from)[:, None]
        return self._seen_sites(ticks) | reported

    def used(self, ticks, excluded, reports_from=-NEVER):
        """How many sites are used at each of some due ticks: known, or excluded."""
        return (self.known_sites(ticks, reports_from) | excluded).sum(axis=1)

    def _seen_sites(self, ticks):
        return self._log.sees(self._epochs.seen_at(ticks))

    def known_at(self, tick, at, reports_from=-NEVER):
        """Which sites' readings of a due tick are known; for a `late append` extent, by the tick `at` of a window."""
        ticks = np.array([tick])
        if self._late is not Late.APPEND:
            return self.known_sites(ticks, reports_from)[0]
        known = self._seen_sites(ticks)[0]
        if known.any():
            known[known] = self._log.arrivals(self._epochs.seen_at(ticks)[0][known]) <= at
        reported = self._epochs.filtered_at(ticks)[0]
        return known | ((reported <= at) & (reported != NEVER) & (tick >= reports_from))

    def tally(self, interval, excluded, begun, reports_from=-NEVER):
        """The Tally of all that cover alike; None where what is used depends on the window, not on the tick alone.

        Nothing is asked for before tick `begun`.
        """
        return None if self._late is Late.APPEND else self.tallies.of(interval, excluded, begun, reports_from)

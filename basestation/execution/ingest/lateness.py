"""Lateness: what becomes of tuples and reports that come when their tick is complete, as their extent declares (SEMANTICS 1.5)."""

import numpy as np

from acquisition.extent import LatePolicy
from basestation.algebra.record import record
from basestation.algebra.vector import any_true, constant


@record
class LatenessVerdict:
    """Masks: which came late, which continuous queries see, and which are in the archive, so that they can be corrected."""

    late: np.ndarray
    live: np.ndarray
    there: np.ndarray


class Lateness:
    """`horizon` is how far back continuous queries are revised."""

    def __init__(self, extent, counts):
        self._late, self._counts = extent.late, counts
        self.horizon = extent.horizon if extent.late is LatePolicy.REVISE else 0

    def judge(self, tick, clock, complete, times=1):
        """What was delivered in the clock ticks `clock`; late is what lies at or before tick `complete`, if there is one.

        Each counts so many `times`.
        """
        late = constant(False, len(tick)) if complete is None else tick <= complete
        live = there = constant(True, len(tick))
        if not any_true(late):
            return LatenessVerdict(late, live, there)
        if self._late is LatePolicy.REVISE:
            live = ~(late & (tick < clock - self.horizon))  # the difference of two ticks may not fit
            self._counts["beyond horizon"] += int((times * ~live).sum())
        elif self._late is LatePolicy.DROP:
            live = there = ~late
            self._counts["dropped"] += int((times * late).sum())
        self._counts["late"] += int((times * (late & there)).sum())
        return LatenessVerdict(late, live, there)

    def corrected(self, ticks, clock):
        """Of which ticks continuous queries are corrected (12.2)."""
        if self._late is not LatePolicy.REVISE:
            return np.zeros(len(ticks), bool)
        return ticks >= clock - self.horizon

"""Lateness: what becomes of tuples and reports that come after their tick was complete, by the policy of their extent (semantics 1.5)."""

from collections import Counter

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Extent, LatePolicy
from basestation.algebra.record import record
from basestation.algebra.vector import any_true, constant


@record
class LatenessVerdict:
    """Masks of the tuples that came late, that continuous queries see, and that are archived, so that they can be corrected."""

    late: BoolArray
    live: BoolArray
    there: BoolArray


class Lateness:
    """Classifies tuples. `horizon` is how many ticks back answers of continuous queries are revised."""

    def __init__(self, extent: Extent, counts: Counter[str]) -> None:
        self._late, self._counts = extent.late, counts
        self.horizon = extent.horizon or 0 if extent.late is LatePolicy.REVISE else 0

    def judge(
        self, tick: IntArray, clock: IntArray | int, complete: IntArray | int | None, times: IntArray | int = 1
    ) -> LatenessVerdict:
        """Classify and count tuples of `tick` that were delivered in clock tick `clock`.

        A tuple is late if its tick is at or before `complete`; none is if that is None. Each counts `times` times.
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

    def corrected(self, ticks: IntArray, clock: IntArray | int) -> BoolArray:
        """Return a mask of the ticks about which a correction in `clock` reaches continuous queries (semantics 12.2)."""
        if self._late is not LatePolicy.REVISE:
            return np.zeros(len(ticks), bool)
        return ticks >= clock - self.horizon

"""Detects that a mote's parent is gone: hand-overs fail in a row for longer than the quality of the link explains."""

from collections import deque
from math import ceil, log

from simulator.kernel import MS

LEAST, LEAST_US = 3, 60_000 * MS
"""A parent is gone only after so many fruitless hand-overs in a row, and only if they take so long."""
REMEMBERED = 64
"""The latest hand-overs that the quality of a link is estimated from."""
CHANCE = 1e-6
"""A parent is gone when a link as good as before would fail that often in a row with at most this chance."""
PRIOR_SHARE, PRIOR_WEIGHT = 0.01, 10
"""A new link is expected to fail in this share of hand-overs, as if so many had been counted."""


class ParentFailureDetector:
    """Counts the hand-overs to the present parent that it did not acknowledge, and knows how often that happened before.

    On a link that loses a third of all hand-overs, three lost ones in a row say nothing: a mote with such a parent would be an
    orphan, with its radio on, several times an hour. Under an agenda at most one hand-over of a round counts as fruitless.
    """

    def __init__(self) -> None:
        self._parent: int | None = None
        self._acknowledged: deque[bool] = deque(maxlen=REMEMBERED)
        self._fruitless, self._since = 0, 0  # in a row up to now, and the time of the first of them
        self._round: int | None = None  # of the latest fruitless hand-over

    def begin(self, parent: int) -> None:
        """Count from now on for a parent; what is known of the link stays if it was the parent before."""
        if parent != self._parent:
            self._parent = parent
            self._acknowledged.clear()
        self._end_run()

    def succeed(self) -> None:
        """The parent acknowledged a hand-over."""
        self._end_run()
        self._acknowledged.append(True)

    def fail(self, now: int, round_: int | None) -> bool:
        """A hand-over was fruitless, in a round or outside of an agenda (None); returns whether the parent is gone."""
        if round_ is not None and round_ == self._round:
            return False
        self._round = round_
        if not self._fruitless:
            self._since = now
        self._fruitless += 1
        return self._fruitless >= self.limit and now - self._since >= LEAST_US

    @property
    def limit(self) -> int:
        """The fruitless hand-overs in a row after which the parent is gone."""
        failed = self._acknowledged.count(False) + PRIOR_SHARE * PRIOR_WEIGHT
        share = failed / (len(self._acknowledged) + PRIOR_WEIGHT)
        return max(LEAST, ceil(round(log(CHANCE) / log(share), 9)))

    def _end_run(self) -> None:
        self._acknowledged.extend([False] * self._fruitless)
        self._fruitless = 0

"""CorrectedMatches: matches of a query and a tuple that a correction creates, from when they are given, and whether they were.

A match is one number, made of the slot of the query and the number of the tuple, so that many are looked up at once.
"""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.match_pairs import unpack_pairs

_NONE: IntArray = np.empty(0, np.int64)


class CorrectedMatches:
    """Matches in the order of their numbers."""

    def __init__(self) -> None:
        self._pairs, self._arrival = _NONE, _NONE
        self._given: BoolArray = np.empty(0, bool)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, new: IntArray, arrival: IntArray) -> None:
        """Add matches that are to be given when the watermark reaches their arrivals."""
        known = np.concatenate([self._pairs, new])
        order = np.argsort(known)
        self._pairs = known[order]
        self._arrival = np.concatenate([self._arrival, arrival])[order]
        self._given = np.concatenate([self._given, np.zeros(len(new), bool)])[order]

    def ready(self, watermark: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return (slots, tuple numbers, arrivals) of the matches to give now, and count them as given."""
        if not len(self):
            return _NONE, _NONE, _NONE
        due = np.flatnonzero(~self._given & (self._arrival <= watermark))
        self._given[due] = True
        return *unpack_pairs(self._pairs[due]), self._arrival[due]

    def given(self, pairs: IntArray, otherwise: BoolArray) -> BoolArray:
        """Return a mask of the matches that were given; `otherwise` has the answer for those that are not held."""
        if not len(self):
            return otherwise
        at = np.minimum(np.searchsorted(self._pairs, pairs), len(self) - 1)
        return np.where(self._pairs[at] == pairs, self._given[at], otherwise)

    def drop(self, removed: IntArray) -> None:
        """Drop matches that no longer hold."""
        self._keep(~np.isin(self._pairs, removed))

    def leave(self, slot: int) -> None:
        """Drop the matches of a query."""
        self._keep(unpack_pairs(self._pairs)[0] != slot)

    def forget(self, first: int) -> None:
        """Drop the matches of tuple numbers below `first`."""
        if len(self):
            self._keep(unpack_pairs(self._pairs)[1] >= first)

    def _keep(self, mask: BoolArray) -> None:
        if not mask.all():
            self._pairs, self._arrival, self._given = self._pairs[mask], self._arrival[mask], self._given[mask]

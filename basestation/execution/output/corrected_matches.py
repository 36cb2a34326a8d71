"""Noted: what corrections let pass, and for whom: a query and a tuple, from when on it is given, and whether it was.

A query and a tuple are one number, so that many are looked up at once.
"""

import numpy as np

_NONE = np.empty(0, np.int64)
_TUPLES = 40  # bits for the number of a tuple


def pack_pairs(slots, idents):
    """Queries, by their slots, and tuples as one number each."""
    return slots << _TUPLES | idents


class CorrectedMatches:
    def __init__(self):
        self._pairs, self._arrival, self._given = _NONE, _NONE, np.empty(0, bool)

    def __len__(self):
        return len(self._pairs)

    def add(self, new, arrival):
        """These will be given when the watermark reaches their arrivals."""
        known = np.concatenate([self._pairs, new])
        order = np.argsort(known)
        self._pairs = known[order]
        self._arrival = np.concatenate([self._arrival, arrival])[order]
        self._given = np.concatenate([self._given, np.zeros(len(new), bool)])[order]

    def ready(self, watermark):
        """(slots, tuples, arrivals) of what is given from now on."""
        if not len(self):
            return _NONE, _NONE, _NONE
        due = np.flatnonzero(~self._given & (self._arrival <= watermark))
        self._given[due] = True
        found = self._pairs[due]
        return found >> _TUPLES, found & ((1 << _TUPLES) - 1), self._arrival[due]

    def given(self, asked, others):
        """Whether each pair was given; of those that were never noted `others` tells."""
        if not len(self):
            return others
        at = np.minimum(np.searchsorted(self._pairs, asked), len(self) - 1)
        return np.where(self._pairs[at] == asked, self._given[at], others)

    def drop(self, gone):
        """These are no longer there."""
        self._keep(~np.isin(self._pairs, gone))

    def leave(self, slot):
        """A query goes."""
        self._keep(self._pairs >> _TUPLES != slot)

    def forget(self, first):
        """No tuple with a number below `first` is spoken of again."""
        if len(self):
            self._keep(self._pairs & ((1 << _TUPLES) - 1) >= first)

    def _keep(self, mask):
        if not mask.all():
            self._pairs, self._arrival, self._given = self._pairs[mask], self._arrival[mask], self._given[mask]

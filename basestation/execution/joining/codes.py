"""Codes: the keys of a state module as numbers 0, 1, …, so that what is known of a key is looked up and not searched.

A table of slots, at most a quarter of them taken: a key stands in the slot that its hash says, or in the next one that was
free. All keys of a call go from slot to slot together.
"""

import numpy as np

from basestation.execution.distinct import distinct
from basestation.execution.grown import Grown

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbours land far from each other
_SPARSE = 4  # slots for each key, at the least
_NOTHING = -1


class Codes:
    """Keys are told by hashes of 64 bits; those that share one share a number."""

    def __init__(self):
        self._hashes = Grown(np.empty(0, np.uint64))  # by number
        self._empty(10)

    def _empty(self, bits):
        self._shift = np.uint64(64 - bits)
        self._slots = np.full(1 << bits, _NOTHING, np.int32)

    def __len__(self):
        return len(self._hashes)

    def of(self, hashes):
        """The numbers of keys; -1 for those that have none."""
        known = self._hashes.values
        if not len(known):
            return np.full(len(hashes), _NOTHING)
        slot = self._slot(hashes)
        code = self._slots[slot].astype(np.int64)
        lost = np.flatnonzero((known[code] != hashes) & (code != _NOTHING))
        while len(lost):
            slot[lost] = next_ = self._next(slot[lost])
            code[lost] = found = self._slots[next_]
            lost = lost[(known[found] != hashes[lost]) & (found != _NOTHING)]
        return code

    def add(self, hashes):
        """The numbers of keys, which have one from now on."""
        code = self.of(hashes)
        unknown = np.flatnonzero(code == _NOTHING)
        if len(unknown):
            new, first = distinct(hashes[unknown]), len(self)
            self._hashes.extend(new)
            if _SPARSE * len(self) > len(self._slots):
                self._empty(int(_SPARSE * 2 * len(self)).bit_length())
                new, first = self._hashes.values, 0
            self._put(new, first)
            code[unknown] = self.of(hashes[unknown])
        return code

    def _put(self, hashes, first):
        """Keys, all different, get slots; they are numbered from `first` on."""
        slot, waiting = self._slot(hashes), np.arange(len(hashes))
        while len(waiting):
            free = waiting[self._slots[slot[waiting]] == _NOTHING]
            self._slots[slot[free]] = first + free  # of those that want one slot the last one gets it
            waiting = waiting[self._slots[slot[waiting]] != first + waiting]
            slot[waiting] = self._next(slot[waiting])

    def _slot(self, hashes):
        return ((hashes * _MIX) >> self._shift).view(np.int64)

    def _next(self, slot):
        return (slot + 1) & (len(self._slots) - 1)

"""Codes: the keys of a state module as numbers 0, 1, …, so that what is known of a key is looked up and not searched.

A table of slots, at most a quarter of them taken: a key stands in the slot that the last bits of its hash say, so that what is
near to each other, as keys with times that rise, is found in one piece of memory. If that was taken, it stands where all
bits of its hash say, or in the next slot that was free. All keys of a call go from slot to slot together. Where keys are whole
numbers near to each other, as those of sites are, their numbers stand in a table from the least to the greatest, and nothing
is hashed.
"""

import numpy as np

from basestation.execution.columns.growable_array import GrowableArray

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbours land far from each other there
_SPARSE = 4  # slots for each key, at the least
_LOOSE, _SMALL = 4, 1024  # keys are near that lie no farther apart than so many times their number, and some more
_NOTHING = -1
_NONE = np.empty(0, np.uint64)


class KeyCodes:
    """Keys are told by hashes of 64 bits; those that share one share a number."""

    def __init__(self):
        self._empty(10)

    def _empty(self, bits):
        self._low, self._near = np.uint64(0), None  # the numbers of keys from the least on, if they are near
        self._hashes = GrowableArray(_NONE)  # by number
        self._shift, self._last = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
        self._slots = np.full(1 << bits, _NOTHING, np.int32)

    def __len__(self):
        return len(self._hashes)

    def of(self, hashes):
        """The numbers of keys; -1 for those that have none."""
        if not len(self) or not len(hashes):
            return np.full(len(hashes), _NOTHING, np.int32)
        if self._near is not None:
            far = hashes - self._low
            if far.max() < len(self._near):
                return self._near.take(far.view(np.int64))
            return np.where(far < len(self._near), self._near.take(far.view(np.int64), mode="clip"), _NOTHING)
        known = self._hashes.values
        code = self._slots.take(self._slot(hashes))
        lost = np.flatnonzero((known.take(code) != hashes) & (code != _NOTHING))
        slot = self._other_slot(hashes[lost])
        while len(lost):
            code[lost] = found = self._slots[slot]
            going_on = (known[found] != hashes[lost]) & (found != _NOTHING)
            lost, slot = lost[going_on], self._next(slot[going_on])
        return code

    def add(self, hashes):
        """The numbers of keys, which have one from now on."""
        if not len(self):
            self._empty(max(10, (_SPARSE * len(hashes)).bit_length()))
            code = self._put(hashes)
            self._keep_near(hashes, code, anew=True)
            return code
        code = self.of(hashes)
        unknown = np.flatnonzero(code == _NOTHING)
        if len(unknown):
            room = _SPARSE * (len(self) + len(unknown))
            grows = room > len(self._slots)
            if grows:
                known = self._hashes.values
                self._empty(room.bit_length())
                self._put(known)
            code[unknown] = new = self._put(hashes[unknown])
            self._keep_near(hashes[unknown], new, anew=grows)
        return code

    def _keep_near(self, hashes, codes, anew):
        """The table of near keys, with new ones; where there is none it is tried `anew` as the slots are."""
        if self._near is not None and not anew:
            far = hashes - self._low
            if far.max() < len(self._near):
                self._near[far.view(np.int64)] = codes
                return
        elif not anew or not len(hashes):
            return
        known = self._hashes.values
        low, high = (int(end) for end in (known.view(np.int64).min(), known.view(np.int64).max()))
        span = high - low + 1
        if span > _LOOSE * len(known) + _SMALL:
            self._near = None
            return
        low -= span  # room for others on both sides
        self._low = np.uint64(low % 2**64)
        self._near = np.full(3 * span, _NOTHING, np.int32)
        self._near[(known - self._low).view(np.int64)] = np.arange(len(known), dtype=np.int32)

    def _put(self, hashes):
        """The numbers of keys that have none; where some are equal, the one that gets the slot gives its number to all."""
        first, count = len(self), len(hashes)
        self._hashes.extend(hashes)
        known, slot = self._hashes.values, self._slot(hashes)
        numbers = np.arange(first, first + count, dtype=np.int32)
        code = self._claimed(slot, numbers, first == 0)
        lost = np.flatnonzero(code != numbers)
        lost = lost[known[code[lost]] != hashes[lost]]
        other = self._other_slot(hashes[lost])
        while len(lost):
            slot[lost] = other
            code[lost] = found = self._claimed(other, numbers[lost])
            going_on = known[found] != hashes[lost]
            lost, other = lost[going_on], self._next(other[going_on])
        owns = code == numbers
        if not owns.all():  # the others need no number
            code = first + (np.cumsum(owns, dtype=np.int32) - 1)[code - first]
            self._slots[slot[owns]] = code[owns]
            self._hashes.cut(first)
            self._hashes.extend(hashes[owns])
        return code

    def _claimed(self, slot, numbers, empty=False):
        """The numbers that stand in slots; those that were free are taken, where several want one by the last of them."""
        free = None if empty else self._slots.take(slot) == _NOTHING
        if free is None or free.all():
            self._slots[slot] = numbers
        else:
            self._slots[slot[free]] = numbers[free]
        return self._slots.take(slot)

    def _slot(self, hashes):
        return (hashes & self._last).view(np.int64)

    def _other_slot(self, hashes):
        folded = hashes ^ (hashes >> np.uint64(32))  # of doubles often only the first half says anything
        folded *= _MIX
        folded >>= self._shift
        return folded.view(np.int64)

    def _next(self, slot):
        return (slot + 1) & (len(self._slots) - 1)

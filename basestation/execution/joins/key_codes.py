"""Key codes: the keys of a join index as dense integers 0, 1, …, so that a probe looks its key up instead of searching.

Open addressing over a table of slots that is at most a quarter full. Keys of one call are placed together, in rounds. In
round 0 a key takes the slot of its last bits, so that rising keys (times) stay in one piece of memory. A key that finds
its slot taken goes to the slot of a secret multiply-shift hash, another one in each round. The multipliers are drawn per
process: for any fixed set of keys a round leaves at most about half of them over, whatever data a deployment has and
whatever keys a stranger chooses.

Where keys are whole numbers near to each other, as sites are, a plain array from the least to the greatest replaces the
slots.
"""

import numpy as np
from numpy.typing import NDArray

from basestation.execution import thresholds
from basestation.execution.columns.growable_array import GrowableArray

HashArray = NDArray[np.uint64]
"""Hashes of keys."""
CodeArray = NDArray[np.int32]
"""Codes of keys; -1 stands for a key without one."""

_SPARSE = 4  # slots for each key, at the least
_NOTHING = -1
_NONE = np.empty(0, np.uint64)
_ROUNDS = 64  # of hashing; behind them slots are tried one after another, so that every search ends


def make_secrets(count: int, purpose: str) -> list[np.uint64]:
    """Odd 64-bit numbers that cannot be known outside of this process: Python seeds its hashes of strings per process."""
    found, state = [], hash(purpose)
    for _ in range(count):  # SplitMix64
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        found.append(np.uint64((mixed ^ mixed >> 31) | 1))
    return found


_MULTIPLIERS = make_secrets(_ROUNDS, "moteloom: multipliers of key codes")
_ADDENDS = make_secrets(
    _ROUNDS, "moteloom: addends of key codes"
)  # without them 0 would want the same slot in each round


class KeyCodes:
    """Keys are known by hashes of 64 bits. Keys with equal hashes share a code."""

    def __init__(self) -> None:
        self._clear(10)

    def _clear(self, bits: int) -> None:
        """Begin with an empty table of 2**bits slots."""
        self._low = np.uint64(0)
        self._near: CodeArray | None = None  # codes of keys from `_low` on, where keys are near
        self._hashes = GrowableArray(_NONE)  # by code
        self._shift, self._last = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
        self._slots: CodeArray = np.full(1 << bits, _NOTHING, np.int32)

    def __len__(self) -> int:
        return len(self._hashes)

    def of(self, hashes: HashArray) -> CodeArray:
        """The codes of keys; -1 for a key that was never added."""
        if not len(self) or not len(hashes):
            return np.full(len(hashes), _NOTHING, np.int32)
        if self._near is not None:
            far = hashes - self._low
            if far.max() < len(self._near):
                return self._near.take(far.view(np.int64))
            return np.where(far < len(self._near), self._near.take(far.view(np.int64), mode="clip"), _NOTHING)
        known = self._hashes.values
        code = self._slots.take(self._slot(0, hashes))
        pending = np.flatnonzero((known.take(code) != hashes) & (code != _NOTHING))
        number = 0
        while len(pending):
            number += 1
            code[pending] = found = self._slots[self._slot(number, hashes[pending])]
            pending = pending[(known[found] != hashes[pending]) & (found != _NOTHING)]
        return code

    def add(self, hashes: HashArray) -> CodeArray:
        """The codes of keys; those without one get one."""
        if not len(self):
            self._clear(max(10, (_SPARSE * len(hashes)).bit_length()))
            code = self._put(hashes)
            self._update_near(hashes, code, rebuilt=True)
            return code
        code = self.of(hashes)
        unknown = np.flatnonzero(code == _NOTHING)
        if len(unknown):
            room = _SPARSE * (len(self) + len(unknown))
            grows = room > len(self._slots)
            if grows:
                known = self._hashes.values
                self._clear(room.bit_length())
                self._put(known)
            code[unknown] = new = self._put(hashes[unknown])
            self._update_near(hashes[unknown], new, rebuilt=grows)
        return code

    def _update_near(self, hashes: HashArray, codes: CodeArray, rebuilt: bool) -> None:
        """Put new keys into the array of near keys. Without one, it is tried whenever the slots were `rebuilt`."""
        if self._near is not None and not rebuilt:
            far = hashes - self._low
            if far.max() < len(self._near):
                self._near[far.view(np.int64)] = codes
                return
        elif not rebuilt or not len(hashes):
            return
        known = self._hashes.values
        low, high = (int(end) for end in (known.view(np.int64).min(), known.view(np.int64).max()))
        span = high - low + 1
        if span > thresholds.DENSE_FACTOR * len(known) + thresholds.DENSE_SLACK:
            self._near = None
            return
        low -= span  # room for new keys on both sides
        self._low = np.uint64(low % 2**64)
        self._near = np.full(3 * span, _NOTHING, np.int32)
        self._near[(known - self._low).view(np.int64)] = np.arange(len(known), dtype=np.int32)

    def _put(self, hashes: HashArray) -> CodeArray:
        """Give codes to keys that have none. Of equal keys the one that gets the slot gives its code to all."""
        first, count = len(self), len(hashes)
        self._hashes.extend(hashes)
        known, slot = self._hashes.values, self._slot(0, hashes)
        numbers = np.arange(first, first + count, dtype=np.int32)
        code = self._claim(slot, numbers, first == 0)
        pending = np.flatnonzero(code != numbers)
        pending = pending[known[code[pending]] != hashes[pending]]
        number = 0
        while len(pending):
            number += 1
            slot[pending] = other = self._slot(number, hashes[pending])
            code[pending] = found = self._claim(other, numbers[pending])
            pending = pending[known[found] != hashes[pending]]
        owns = code == numbers
        if not owns.all():  # equal keys need one code
            code = first + (np.cumsum(owns, dtype=np.int32) - 1)[code - first]
            self._slots[slot[owns]] = code[owns]
            self._hashes.cut(first)
            self._hashes.extend(hashes[owns])
        return code

    def _claim(self, slot: NDArray[np.int64], numbers: CodeArray, empty: bool = False) -> CodeArray:
        """The codes in slots, after free ones were taken: by the last of several keys that want the same slot."""
        free = None if empty else self._slots.take(slot) == _NOTHING
        if free is None or free.all():
            self._slots[slot] = numbers
        else:
            self._slots[slot[free]] = numbers[free]
        return self._slots.take(slot)

    def _slot(self, number: int, hashes: HashArray) -> NDArray[np.int64]:
        """The slots that keys want in a round."""
        if number == 0:
            return (hashes & self._last).view(np.int64)
        secret = min(number, _ROUNDS) - 1
        slot = hashes * _MULTIPLIERS[secret]
        slot += _ADDENDS[secret]
        slot >>= self._shift
        found = slot.view(np.int64)
        return found if number <= _ROUNDS else (found + (number - _ROUNDS)) & int(self._last)

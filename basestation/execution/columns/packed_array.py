"""PackedArray: integers that are appended, seldom read once newer ones came, and stored compressed then.

Ticks and coverage of the windows of a day are such integers: a revision may ask for any of them, most often for none. The last ones
are a plain array. Older ones are in blocks, each with its first value and the compressed differences of the others; four blocks of one
size become one, so there are few.
"""

import zlib

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.vector import Selection
from basestation.execution import thresholds
from basestation.execution.columns.growable_array import GrowableArray

_MERGED = 4
"""So many blocks of one size are merged."""
_WIDTHS = (np.int8, np.int16, np.int32, np.int64)

Block = tuple[int, int, str, bytes]
"""(number of values, the first one, the type of the differences, these compressed)."""


class PackedArray:
    """A growable array of integers."""

    def __init__(self, values: AnyArray) -> None:
        self._blocks: list[Block] = []
        self._packed = 0  # values in blocks
        self._dropped = 0  # values of the first block that were removed
        self._last = GrowableArray(np.empty(0, np.int64))
        self.extend(values)

    def __len__(self) -> int:
        return self._packed - self._dropped + len(self._last)

    def extend(self, values: AnyArray) -> None:
        """Append values. Those of this call are not packed before the next one: a step often reads what it appended."""
        size = thresholds.PACKED_VALUES
        while len(self._last) >= 2 * size:
            count = min(len(self._last) - size, max(size, thresholds.PACKED_MOST)) // size * size
            self._add_block(self._last.values[:count])
            self._last.drop(count)
        self._last.extend(values)

    def _add_block(self, values: AnyArray) -> None:
        self._blocks.append(_pack(values))
        self._packed += len(values)
        while len(self._blocks) > _MERGED and len({block[0] for block in self._blocks[-_MERGED:]}) == 1:
            if self._blocks[-1][0] >= thresholds.PACKED_MOST:
                return
            self._blocks[-_MERGED:] = [_pack(np.concatenate([_unpack(block) for block in self._blocks[-_MERGED:]]))]

    def drop(self, count: int) -> None:
        """Remove the first values."""
        self._dropped += count
        while self._blocks and self._dropped >= self._blocks[0][0]:
            size = self._blocks.pop(0)[0]
            self._dropped -= size
            self._packed -= size
        if not self._blocks and self._dropped:
            self._last.drop(self._dropped)
            self._dropped = 0

    def __getitem__(self, which: Selection) -> IntArray:
        """The values at positions, which are not negative, or in a slice."""
        if isinstance(which, slice):
            begin, end, _ = which.indices(len(self))
            return self._between(begin, max(begin, end))
        if not len(which):
            return np.empty(0, np.int64)
        low = int(which.min())
        return self._between(low, int(which.max()) + 1)[which - low]

    def _between(self, begin: int, end: int) -> IntArray:
        begin, end = begin + self._dropped, end + self._dropped
        if begin >= self._packed:
            return np.asarray(self._last.values[begin - self._packed : end - self._packed])
        parts, at = [], 0
        for block in self._blocks:
            if at < end and at + block[0] > begin:
                parts.append(_unpack(block)[max(0, begin - at) : end - at])
            at += block[0]
        parts.append(self._last.values[: max(0, end - self._packed)])
        return np.concatenate(parts)

    def put(self, positions: IntArray, values: IntArray) -> None:
        """Replace the values at positions."""
        positions, at = positions + self._dropped, 0
        for place, block in enumerate(self._blocks):
            inside = (positions >= at) & (positions < at + block[0])
            if inside.any():
                changed = _unpack(block)
                changed[positions[inside] - at] = values[inside]
                self._blocks[place] = _pack(changed)
            at += block[0]
        inside = positions >= at
        self._last.values[positions[inside] - at] = values[inside]

    @property
    def values(self) -> IntArray:
        """All values; not to be written to."""
        return self[:]


def _pack(values: AnyArray) -> Block:
    steps = np.diff(values)
    low, high = int(steps.min(initial=0)), int(steps.max(initial=0))
    width = next(width for width in _WIDTHS if np.iinfo(width).min <= low and high <= np.iinfo(width).max)
    return len(values), int(values[0]), np.dtype(width).str, zlib.compress(steps.astype(width).tobytes(), 1)


def _unpack(block: Block) -> IntArray:
    count, first, width, packed = block
    values = np.empty(count, np.int64)
    values[0] = first
    np.cumsum(np.frombuffer(zlib.decompress(packed), width), out=values[1:])
    values[1:] += first
    return values

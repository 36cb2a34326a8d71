"""Boundaries: where the values of a column lie among the bounds of the ranges that queries ask of it."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector, unique_by_identity
from basestation.execution import thresholds

_FAR = 2**62  # bounds beyond it have no integer before or after them that fits into 64 bits
_LEAST = -(2**63)


class Boundaries:
    """The distinct bounds of the ranges of one column. The place of a value is the number of bounds not above it; -1 for null."""

    def __init__(self, ranges: Sequence[ValueRange]) -> None:
        self._ends = sorted({end for range_ in ranges for end in (range_.begin, range_.stop) if end is not None})
        self._strings = any(isinstance(end, str) for end in self._ends[:1])
        self._sorted: AnyArray = np.empty(0, np.int64) if self._strings else np.array(self._ends)
        self._table: IntArray | None = None  # places by value, for integer bounds that lie close together
        if not self._strings and self._sorted.dtype == np.int64 and -_FAR < self._ends[0] and self._ends[-1] < _FAR:
            self._low, self._high = self._ends[0] - 1, self._ends[-1]
            room = thresholds.DENSE_FACTOR * len(self._ends) + thresholds.DENSE_SLACK
            if self._high - self._low <= room:
                self._table = self._sorted.searchsorted(np.arange(self._low, self._high + 1), "right")

    def __len__(self) -> int:
        return len(self._ends)

    def bounds(self, ranges: Sequence[ValueRange]) -> tuple[IntArray, IntArray]:
        """Return for each range (the first place in it, the first place after it)."""
        place = {end: at for at, end in enumerate(self._ends, 1)}
        begin = [0 if range_.begin is None else place[range_.begin] for range_ in ranges]
        stop = [len(self) + 1 if range_.stop is None else place[range_.stop] for range_ in ranges]
        return np.array(begin), np.array(stop)

    def places(self, vector: Vector) -> IntArray:
        """Return the place of each value."""
        found = self._places_of(vector.values)
        return found if vector.valid is None else np.where(vector.valid, found, -1)

    def _places_of(self, values: AnyArray) -> IntArray:
        if self._strings:
            some, which = unique_by_identity(values)
            return np.array([bisect_right(self._ends, string) for string in some], np.int64)[which]
        if self._table is None:
            return self._sorted.searchsorted(values, "right")
        place = values.clip(self._low, self._high)
        place -= self._low
        return self._table.take(place)


class IntLookup:
    """The position of each integer among some distinct ascending ones that are at least 0; -1 if it is none of them."""

    def __init__(self, integers: IntArray) -> None:
        self._sorted = integers
        self._table: IntArray | None = None
        if integers[-1] < thresholds.DENSE_FACTOR * len(integers) + thresholds.DENSE_SLACK:
            self._table = np.full(int(integers[-1]) + 2, -1)
            self._table[integers] = np.arange(len(integers))

    def of(self, integers: IntArray) -> IntArray:
        """Return the position of each integer; a negative one is not found."""
        if self._table is not None:
            return self._table.take(np.minimum(integers, len(self._table) - 1))
        at = np.minimum(self._sorted.searchsorted(integers), len(self._sorted) - 1)
        return np.where(self._sorted[at] == integers, at, -1)


class Segments:
    """The values of a column, cut at the bounds of ranges, separately for each group of ranges.

    A segment reaches from one bound to before the next; the first one of a group has no lower bound. Segments are numbered group
    by group. Range i covers the segments begin[i] to before stop[i].
    """

    def __init__(self, group: IntArray, begin: Sequence[Any], stop: Sequence[Any]) -> None:
        """By range: its group, numbered from 0 without gaps, and its bounds, None for none."""
        groups = int(group.max()) + 1
        least = -np.inf if any(isinstance(end, float) for end in (*begin, *stop)) else _LEAST
        ended = np.array([end is not None for end in stop])
        values = np.array(
            [
                *[least] * groups,
                *(least if end is None else end for end in begin),
                *(end for end in stop if end is not None),
            ]
        )
        owner = np.concatenate([np.arange(groups), group, group[ended]])
        order = np.lexsort((values, owner))
        owner, values = owner[order], values[order]
        new = np.append(True, (owner[1:] != owner[:-1]) | (values[1:] != values[:-1]))
        segment = np.empty_like(order)
        segment[order] = np.cumsum(new) - 1
        self._ends = values[new]
        self._first, self.begin, last = np.split(segment, [groups, groups + len(group)])
        bounds = np.append(self._first, len(self._ends))
        self.stop = bounds[group + 1]
        self.stop[ended] = last
        self._size = np.diff(bounds)
        self._halvings = (int(self._size.max()) - 1).bit_length()

    def __len__(self) -> int:
        return len(self._ends)

    def of(self, group: IntArray, values: AnyArray) -> IntArray:
        """Return the segment of each value, among those of its group, by binary search of all values at once."""
        piece, left = self._first.take(group), self._size.take(group)
        for _ in range(self._halvings):
            half = left >> 1
            piece += half * (self._ends.take(piece + half) <= values)
            left -= half
        return piece

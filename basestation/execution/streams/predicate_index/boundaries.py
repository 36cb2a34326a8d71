"""Ends: where the values of a column lie among the ends of the ranges that are asked of it, all values looked up at once."""

from bisect import bisect_right

import numpy as np

from basestation.algebra.vector import unique_by_identity

_LOOSE, _SMALL = 4, 1024
"""A table has so many entries for each integer that is looked up in it, and some more."""
_FAR = 2**62
_LEAST = -(2**63)


class Boundaries:
    """Those of the ranges of one column. The place of a value is how many of them are not above it; that of null is -1."""

    def __init__(self, ranges):
        self._ends = sorted({end for each in ranges for end in (each.begin, each.stop) if end is not None})
        self._strings = any(isinstance(end, str) for end in self._ends[:1])
        self._sorted = None if self._strings else np.array(self._ends)
        self._table = None  # integers that lie close are not searched for
        if not self._strings and self._sorted.dtype == np.int64 and -_FAR < self._ends[0] and self._ends[-1] < _FAR:
            self._low, self._high = self._ends[0] - 1, self._ends[-1]
            if self._high - self._low <= _LOOSE * len(self._ends) + _SMALL:
                self._table = self._sorted.searchsorted(np.arange(self._low, self._high + 1), "right")

    def __len__(self):
        return len(self._ends)

    def bounds(self, ranges):
        """The places from which on, and up to which, ranges reach."""
        place = {end: at for at, end in enumerate(self._ends, 1)}
        begin = [0 if each.begin is None else place[each.begin] for each in ranges]
        stop = [len(self) + 1 if each.stop is None else place[each.stop] for each in ranges]
        return np.array(begin), np.array(stop)

    def places(self, vector):
        found = self._of(vector.values)
        return found if vector.valid is None else np.where(vector.valid, found, -1)

    def _of(self, values):
        if self._strings:
            some, which = unique_by_identity(values)
            return np.array([bisect_right(self._ends, string) for string in some], np.int64)[which]
        if self._table is None:
            return self._sorted.searchsorted(values, "right")
        place = values.clip(self._low, self._high)
        place -= self._low
        return self._table.take(place)


class IntLookup:
    """Different integers from 0 on, ascending: which of them each of some integers is, from 0; -1 of one that is none."""

    def __init__(self, integers):
        self._sorted, self._table = integers, None
        if integers[-1] < _LOOSE * len(integers) + _SMALL:
            self._table = np.full(int(integers[-1]) + 2, -1)
            self._table[integers] = np.arange(len(integers))

    def of(self, integers):
        """A negative one is none."""
        if self._table is not None:
            return self._table.take(np.minimum(integers, len(self._table) - 1))
        at = np.minimum(self._sorted.searchsorted(integers), len(self._sorted) - 1)
        return np.where(self._sorted[at] == integers, at, -1)


class Segments:
    """The ends of ranges cut the values of a column into pieces, for each group of ranges by itself.

    A piece reaches from one end up to the next; the first one of a group has no end below it. They are numbered one group
    after another; `begin` and `behind` say of each range from which piece on, and up to which, it reaches.
    """

    def __init__(self, group, begin, stop):
        """By range: its group, from 0 on, each of which has some; and where it begins and ends, None for nowhere."""
        groups = int(group.max()) + 1
        least = -np.inf if any(isinstance(end, float) for end in (*begin, *stop)) else _LEAST
        ended = np.array([end is not None for end in stop])
        values = np.array(
            [
                *[least] * groups,
                *(least if end is None else end for end in begin),
                *(e for e in stop if e is not None),
            ]
        )
        owner = np.concatenate([np.arange(groups), group, group[ended]])
        order = np.lexsort((values, owner))
        owner, values = owner[order], values[order]
        new = np.append(True, (owner[1:] != owner[:-1]) | (values[1:] != values[:-1]))
        piece = np.empty_like(order)
        piece[order] = np.cumsum(new) - 1
        self._ends = values[new]
        self._first, self.begin, last = np.split(piece, [groups, groups + len(group)])
        bounds = np.append(self._first, len(self._ends))
        self.stop = bounds[group + 1]
        self.stop[ended] = last
        self._size = np.diff(bounds)
        self._halvings = (int(self._size.max()) - 1).bit_length()

    def __len__(self):
        return len(self._ends)

    def of(self, group, values):
        """The pieces in which values lie, each among those of its group."""
        piece, left = self._first.take(group), self._size.take(group)
        for _ in range(self._halvings):
            half = left >> 1
            piece += half * (self._ends.take(piece + half) <= values)
            left -= half
        return piece

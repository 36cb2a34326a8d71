"""Held: the cells of all slices that windows may still reach, ascending, in parts as they came.

No slice is in two parts. A part is never changed: what becomes otherwise is another part.
"""

from bisect import bisect_left, bisect_right


class SliceStore:
    def __init__(self):
        self._parts, self._begins, self._ends = [], [], []  # and the first and the last slice of each
        self._count = 0

    def __len__(self):
        """How many cells."""
        return self._count

    def all(self):
        """All parts."""
        return self._parts.copy()

    def set(self, parts):
        """Hold these instead."""
        self._pop(slice(None))
        for part in parts:
            self.add(part)

    def add(self, cells):
        """Cells of slices behind all others."""
        self._put(len(self._parts), cells)

    def add_before(self, cells):
        """Cells of slices before all others."""
        self._put(0, cells)

    def _put(self, at, cells):
        if len(cells):
            self._parts.insert(at, cells)
            self._begins.insert(at, int(cells.slice[0]))
            self._ends.insert(at, int(cells.slice[-1]))
            self._count += len(cells)

    def _pop(self, which):
        parts = self._parts[which]
        for column in (self._parts, self._begins, self._ends):
            del column[which]
        self._count -= sum(map(len, parts))
        return parts

    def between(self, low, high):
        """The cells of the slices from one to another, in parts."""
        first, behind = bisect_left(self._ends, low), bisect_right(self._begins, high)
        found = self._parts[first:behind]
        if found and self._ends[behind - 1] > high:
            found[-1] = found[-1].between(0, found[-1].slice.searchsorted(high, "right"))
        if found and self._begins[first] < low:
            found[0] = found[0].between(found[0].slice.searchsorted(low), len(found[0]))
        return [part for part in found if len(part)]  # both may fall between two slices of one part

    def cut_off(self, first):
        """The cells of a slice and those behind it, which are no longer held, in parts."""
        later = self._pop(slice(bisect_left(self._ends, first), None))
        if later:
            before, later[0] = _apart(later[0], first)
            self.add(before)
        return later

    def cut_off_before(self, first):
        """The cells of the slices before one, which are no longer held, in parts. What stays of a part has memory of its own."""
        gone = self._pop(slice(0, bisect_left(self._ends, first)))
        if self._begins and self._begins[0] < first:
            before, behind = _apart(*self._pop(slice(0, 1)), first)
            gone.append(before)
            self.add_before(behind.copied())
        return gone


def _apart(part, first):
    """The cells of a part before a slice, and those from it on."""
    at = part.slice.searchsorted(first)
    return part.between(0, at), part.between(at, len(part))

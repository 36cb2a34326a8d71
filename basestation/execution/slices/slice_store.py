"""Slice store: the cells of all slices that windows may still reach, ascending, in parts as they came.

No slice is in two parts. A part never changes: it is replaced by another one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from basestation.execution.columns.cells import Cells


class SliceStore:
    """Parts in the order of their slices."""

    def __init__(self) -> None:
        self._parts: list[Cells] = []
        self._begins: list[int] = []  # the first slice of each part
        self._ends: list[int] = []  # the last slice of each part
        self._count = 0

    def __len__(self) -> int:
        """The number of cells."""
        return self._count

    def all(self) -> list[Cells]:
        """All parts."""
        return self._parts.copy()

    def set(self, parts: Iterable[Cells]) -> None:
        """Replace all parts."""
        self._pop(slice(None))
        for part in parts:
            self.add(part)

    def add(self, cells: Cells) -> None:
        """Add cells of slices behind all others."""
        self._put(len(self._parts), cells)

    def add_before(self, cells: Cells) -> None:
        """Add cells of slices before all others."""
        self._put(0, cells)

    def _put(self, at: int, cells: Cells) -> None:
        if len(cells):
            self._parts.insert(at, cells)
            self._begins.insert(at, int(cells.slice[0]))
            self._ends.insert(at, int(cells.slice[-1]))
            self._count += len(cells)

    def _pop(self, which: slice) -> list[Cells]:
        parts = self._parts[which]
        del self._parts[which], self._begins[which], self._ends[which]
        self._count -= sum(map(len, parts))
        return parts

    def _find(self, low: int, high: int) -> tuple[int, int]:
        """The positions (first, end) of the parts that reach into slices `low` to `high`."""
        return bisect_left(self._ends, low), bisect_right(self._begins, high)

    def between(self, low: int, high: int) -> list[Cells]:
        """The cells of slices `low` to `high`, in parts."""
        first, end = self._find(low, high)
        found = self._parts[first:end]
        if found and self._ends[end - 1] > high:
            found[-1] = found[-1].between(0, int(found[-1].slice.searchsorted(high, "right")))
        if found and self._begins[first] < low:
            found[0] = found[0].between(int(found[0].slice.searchsorted(low)), len(found[0]))
        return [part for part in found if len(part)]  # `low` and `high` may lie between two slices of one part

    def split_between(self, low: int, high: int) -> list[Cells]:
        """The cells of slices `low` to `high`, in parts of one slice each, which the store keeps."""
        first, end = self._find(low, high)
        if self._begins[first:end] != self._ends[first:end]:
            later = self._pop(slice(first, None))
            for part in later[: end - first]:
                bounds = [*np.flatnonzero(np.diff(part.slice, prepend=part.slice[0] - 1)).tolist(), len(part)]
                for begin, stop in pairwise(bounds):
                    self.add(part.between(begin, stop))
            for part in later[end - first :]:
                self.add(part)
            first, end = self._find(low, high)
        return self._parts[first:end]

    def cut_off(self, first: int) -> list[Cells]:
        """Remove the cells of slice `first` and those behind it; return them in parts."""
        later = self._pop(slice(bisect_left(self._ends, first), None))
        if later:
            before, later[0] = _split(later[0], first)
            self.add(before)
        return later

    def cut_off_before(self, first: int) -> list[Cells]:
        """Remove the cells of slices before `first`; return them in parts. The rest of a part gets memory of its own."""
        removed = self._pop(slice(0, bisect_left(self._ends, first)))
        if self._begins and self._begins[0] < first:
            [part] = self._pop(slice(0, 1))
            before, rest = _split(part, first)
            removed.append(before)
            self.add_before(rest.copied())
        return removed


def _split(part: Cells, first: int) -> tuple[Cells, Cells]:
    """The cells of a part before a slice, and those from it on."""
    at = int(part.slice.searchsorted(first))
    return part.between(0, at), part.between(at, len(part))

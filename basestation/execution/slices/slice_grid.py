"""Slice grid: where windows of time cut a stream into slices, and how slices are numbered."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import constant


@dataclass(frozen=True, slots=True)
class SliceGrid:
    """Slices that repeat with every `slide` ticks: the first begins at tick `base`, the next ones `cuts` ticks later.

    `cuts` ascend between 0 and `slide`, both excluded.
    """

    base: int
    slide: int
    cuts: tuple[int, ...] = ()

    @classmethod
    def of_window(cls, begin: int | None, end: int, slide: int) -> Self:
        """Return the grid of windows from w + begin to w + end, at each multiple w of the slide."""
        base = 1 if begin is None else begin
        cut = (end + 1 - base) % slide
        return cls(base, slide, (cut,) if cut else ())

    @property
    def per_slide(self) -> int:
        """The number of slices in a slide."""
        return len(self.cuts) + 1

    def with_edges(self, edges: Iterable[int]) -> "SliceGrid":
        """Return the grid on which slices also begin at these ticks; the same one if they do already."""
        cuts = {(edge - self.base) % self.slide for edge in edges} - {0, *self.cuts}
        return SliceGrid(self.base, self.slide, tuple(sorted({*self.cuts, *cuts}))) if cuts else self

    def slice_at(self, tick: int) -> int:
        """Return the slice of a tick."""
        whole, rest = divmod(tick - self.base, self.slide)
        return whole * self.per_slide + bisect_right(self.cuts, rest)

    def slices_at(self, ticks: IntArray) -> IntArray:
        """Return the slice of each tick."""
        offset = ticks - self.base
        whole = offset // self.slide
        if not self.cuts:
            return whole
        rest = offset - whole * self.slide
        if len(self.cuts) == 1:
            return 2 * whole + (rest >= self.cuts[0])
        found: IntArray = whole * self.per_slide + np.searchsorted(np.array(self.cuts), rest, "right")
        return found

    def slices_of(self, ticks: IntArray) -> IntArray:
        """Return the slice of each tick of tuples, which often are all in one slice."""
        if len(ticks) and self.slice_at(int(ticks[0])) == self.slice_at(int(ticks[-1])):
            first, last = self.slice_at(int(ticks.min())), self.slice_at(int(ticks.max()))
            if first == last:
                return constant(first, len(ticks))
        return self.slices_at(ticks)

    def first_tick(self, number: int) -> int:
        """Return the first tick of a slice."""
        whole, rest = divmod(number, self.per_slide)
        return whole * self.slide + self.base + (self.cuts[rest - 1] if rest else 0)

    def count(self, ticks: int) -> int:
        """Return how many slices so many ticks may touch."""
        return -(-ticks // self.slide) * self.per_slide + 1

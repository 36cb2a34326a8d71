"""Index run: an immutable piece of an index: positions by the code of their key and within one code by tick, or by tick alone.

Where each code has one position at most, a probe looks it up in an array, or the position is the code plus a constant. Where
codes have several positions, and many probes search few ranges of ticks, the positions of each code before each end of a
range are counted: then two lookups in that table find the first and the last match of a probe. Otherwise matches are found by
bisection.
"""

import numpy as np
from numpy.typing import NDArray

from acquisition.arrays import IntArray
from basestation.algebra.vector import cached_arange, constant
from basestation.execution import thresholds
from basestation.execution.columns.integer_arrays import is_consecutive, rank_distinct, stable_argsort
from basestation.execution.columns.window_batch import expand_ranges, select_ranges
from basestation.execution.joins.key_codes import CodeArray
from basestation.execution.joins.probe_span import ProbeSpan

Matches = tuple[IntArray, IntArray]
"""(which probe, which position) of each match."""


class KeyRun:
    """Positions in the order of their ticks, with the codes of their keys; each code is below `count`."""

    def __init__(self, codes: CodeArray, count: int, ticks: IntArray, positions: IntArray) -> None:
        self._count, self._ticks = count, ticks
        self._least: int | None = None  # the code of the first position, where each position has the next code
        if is_consecutive(codes) and is_consecutive(positions):
            self._single, self.positions, self._least = True, positions, int(codes[0])
            return
        sizes = np.bincount(codes, minlength=count + 1)  # the code `count` has no positions
        self._single = int(sizes.max()) < 2
        if self._single:
            self.positions = positions
            self._place: CodeArray = np.full(count + 1, -1, np.int32)
            self._place[codes] = np.arange(len(codes), dtype=np.int32)
        else:
            wide = codes.astype(np.int64)  # codes are multiplied by numbers of ticks below
            order = stable_argsort(wide)
            self.positions = positions[order]
            self._codes, self._order = wide, order
            self._ranked: tuple[IntArray, IntArray] | None = None
            self._sizes, self._begins = sizes, np.cumsum(sizes) - sizes

    def __len__(self) -> int:
        return len(self.positions)

    def find(self, code: CodeArray, span: ProbeSpan) -> Matches:
        """The matches of probes with these codes, probe by probe; -1 matches nothing."""
        if self._least is not None:
            return self._find_consecutive(code, self._least, span)
        code = np.minimum(code, self._count)  # as an index, -1 is the last entry: `count`, without positions
        if self._single:
            which, place = self._filter(self._place.take(code), span)
            return which, self.positions.take(place)
        cells = (len(span.left) + len(span.right)) * (self._count + 1)
        tabulated = cells <= thresholds.COUNT_TABLE_FACTOR * (len(self) + len(code)) and span.rises
        first, counts = self._look_up(code, span) if tabulated else self._search(code, span)
        if (counts == 1).all():
            return cached_arange(len(code)), self.positions.take(first)
        return np.repeat(np.arange(len(code)), counts), self.positions.take(expand_ranges(first, counts))

    def _find_consecutive(self, code: CodeArray, least: int, span: ProbeSpan) -> Matches:
        place = code.astype(np.int64)
        place -= least
        if len(place) and place.max() >= len(self):
            place[place >= len(self)] = -1
        which, place = self._filter(place, span)
        place += self.positions[0]
        return which, place

    def _filter(self, place: NDArray[np.int64] | CodeArray, span: ProbeSpan) -> tuple[IntArray, IntArray]:
        """(which probe, place of its match) of the probes with a place of at least 0 whose tick is in range."""
        which = cached_arange(len(place))
        if place.min(initial=0) < 0:
            which = np.flatnonzero(place >= 0)
            place = place.take(which)
            span = span if span.checked_later else span.take(which)
        if len(which) and not span.checked_later and not span.all_contain(int(self._ticks[0]), int(self._ticks[-1])):
            inside = span.contains(self._ticks.take(place))
            if not inside.all():
                kept = np.flatnonzero(inside)
                which, place = which[kept], place[kept]
        return which, place  # type: ignore[return-value]  # places of 32 bits serve as positions, too

    def _look_up(self, code: CodeArray, span: ProbeSpan) -> tuple[IntArray, IntArray]:
        """(first, count) of the matches of each probe among the positions, from a table of counts."""
        width = self._count + 1
        before = self._count_before(np.searchsorted(self._ticks, span.left)).take(span.begin * width + code)
        upto = self._count_before(np.searchsorted(self._ticks, span.right, "right")).take(span.end * width + code)
        return self._begins.take(code) + before, np.maximum(upto - before, 0)

    def _count_before(self, edges: IntArray) -> IntArray:
        """For each edge, a position among the ticks, how many positions of each code are before it; edge by edge."""
        width = self._count + 1
        offset = np.repeat(np.arange(len(edges) + 1) * width, np.diff(edges, prepend=0, append=len(self)))
        cells = np.bincount(offset + self._codes, minlength=(len(edges) + 1) * width)
        return np.cumsum(cells.reshape(-1, width)[:-1], axis=0).ravel()

    def _search(self, code: CodeArray, span: ProbeSpan) -> tuple[IntArray, IntArray]:
        """The same counts as `_count_before`, by bisection."""
        if self._ranked is None:  # ranks instead of ticks, so that one number stands for code and tick
            distinct_ticks, rank = rank_distinct(self._ticks)
            self._ranked = distinct_ticks, (self._codes * len(distinct_ticks) + rank)[self._order]
        ticks, numbers = self._ranked
        which = np.flatnonzero(self._sizes.take(code))
        which = which[stable_argsort(code[which].astype(np.int64))]  # equal codes search the same cache lines
        low, high = span.take(which).locate(ticks)
        base = code[which] * len(ticks)
        begin, end = np.searchsorted(numbers, base + low), np.searchsorted(numbers, base + high)
        first, counts = self._begins.take(code), np.zeros(len(code), np.int64)
        first[which], counts[which] = begin, np.maximum(end - begin, 0)
        return first, counts


class TickRun:
    """Positions by tick alone."""

    def __init__(self, ticks: IntArray, positions: IntArray) -> None:
        self._ticks, self.positions = ticks, positions

    def __len__(self) -> int:
        return len(self.positions)

    def counts(self, span: ProbeSpan) -> tuple[IntArray, IntArray]:
        """(first, count) of the matches of each probe."""
        first, end = span.locate(self._ticks)
        return first, np.maximum(end - first, 0)

    def find(self, code: CodeArray | None, span: ProbeSpan) -> Matches:
        """The matches of probes, probe by probe."""
        first, counts = self.counts(span)
        which = constant(0, int(counts[0])) if len(span) == 1 else np.repeat(np.arange(len(span)), counts)
        return which, self.positions[select_ranges(first, counts)]

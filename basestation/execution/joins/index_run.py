"""Run: some positions of an index, by the code of their key, and those of one code by tick; or by tick alone.

Where each code has one position at most, that is looked up, or is the code itself and something more. Where it has several,
and many probes ask for few ranges of ticks, it is counted how many positions of each code lie before each end of a range:
then a probe finds its first and its last one by two looks at a table. Else they are found by bisection.
"""

import numpy as np

from basestation.algebra.vector import cached_arange, constant
from basestation.execution.columns.integer_arrays import is_consecutive, rank_distinct, stable_argsort
from basestation.execution.columns.window_batch import expand_ranges, select_ranges

_LOOSE = 4
"""A table of counts may have so many cells for each position and probe: it is made sooner than all are searched."""


class KeyRun:
    """`codes` are those of positions in the order of their ticks; each is below `count`."""

    def __init__(self, codes, count, ticks, positions):
        self._count, self._ticks, self._least = count, ticks, None
        if is_consecutive(codes) and is_consecutive(positions):  # each position has the next code
            self._single, self.positions, self._least = True, positions, int(codes[0])
            return
        sizes = np.bincount(codes, minlength=count + 1)  # behind the last code there is one without positions
        self._single = int(sizes.max()) < 2
        if self._single:
            self.positions = positions
            self._place = np.full(count + 1, -1, np.int32)
            self._place[codes] = np.arange(len(codes), dtype=np.int32)
        else:
            codes = codes.astype(np.int64)  # numbers of code and tick are greater
            order = stable_argsort(codes)
            self.positions = positions[order]
            self._codes, self._order, self._ranked = codes, order, None
            self._sizes, self._begins = sizes, np.cumsum(sizes) - sizes

    def __len__(self):
        return len(self.positions)

    def find(self, code, span):
        """(which probe, ascending; which position)."""
        if self._least is not None:
            return self._next(code, span)
        code = np.minimum(code, self._count)  # -1, which has no position either, stands for the last one, too
        if self._single:
            return self._only(self._place.take(code), span)
        cells = (len(span.left) + len(span.right)) * (self._count + 1)
        counted = cells <= _LOOSE * (len(self) + len(code)) and span.rises
        first, counts = self._looked_up(code, span) if counted else self._searched(code, span)
        if (counts == 1).all():
            return cached_arange(len(code)), self.positions.take(first)
        return np.repeat(np.arange(len(code)), counts), self.positions.take(expand_ranges(first, counts))

    def _next(self, code, span):
        place = code.astype(np.int64)
        place -= self._least
        if len(place) and place.max() >= len(self):
            place[place >= len(self)] = -1
        which, place = self._inside(place, span)
        place += self.positions[0]
        return which, place

    def _only(self, place, span):
        which, place = self._inside(place, span)
        return which, self.positions.take(place)

    def _inside(self, place, span):
        """Of probes and the places of what they may find, less than 0 for nothing, those that find it."""
        which = cached_arange(len(place))
        if place.min(initial=0) < 0:
            which = np.flatnonzero(place >= 0)
            place = place.take(which)
            span = span if span.later else span.take(which)
        if len(which) and not span.later and not span.hold_all(self._ticks[0], self._ticks[-1]):
            inside = span.holds(self._ticks.take(place))
            if not inside.all():
                inside = np.flatnonzero(inside)
                which, place = which[inside], place[inside]
        return which, place

    def _looked_up(self, code, span):
        """For each probe where its positions begin, and how many they are."""
        before = self._before(np.searchsorted(self._ticks, span.left)).take(span.begin * (self._count + 1) + code)
        upto = self._before(np.searchsorted(self._ticks, span.right, "right"))
        upto = upto.take(span.end * (self._count + 1) + code)
        return self._begins.take(code) + before, np.maximum(upto - before, 0)

    def _before(self, edges):
        """For each edge, a place among the ticks, how many positions of each code lie before it."""
        width = self._count + 1
        behind = np.repeat(np.arange(len(edges) + 1) * width, np.diff(edges, prepend=0, append=len(self)))
        cells = np.bincount(behind + self._codes, minlength=(len(edges) + 1) * width)
        return np.cumsum(cells.reshape(-1, width)[:-1], axis=0).ravel()

    def _searched(self, code, span):
        """The same."""
        if self._ranked is None:  # ranks instead of ticks, so that one number stands for code and tick
            ticks, rank = rank_distinct(self._ticks)
            self._ranked = ticks, (self._codes * len(ticks) + rank)[self._order]
        ticks, numbers = self._ranked
        which = np.flatnonzero(self._sizes.take(code))
        which = which[stable_argsort(code[which].astype(np.int64))]  # what was just looked at is in the caches
        low, high = span.take(which).within(ticks)
        base = code[which] * len(ticks)
        begin, behind = np.searchsorted(numbers, base + low), np.searchsorted(numbers, base + high)
        first, counts = self._begins.take(code), np.zeros(len(code), np.int64)
        first[which], counts[which] = begin, np.maximum(behind - begin, 0)
        return first, counts


class TickRun:
    """Some positions by tick alone."""

    def __init__(self, ticks, positions):
        self._ticks, self.positions = ticks, positions

    def __len__(self):
        return len(self.positions)

    def counts(self, span):
        """Where the matches of each probe begin, and how many there are."""
        first, behind = span.within(self._ticks)
        return first, np.maximum(behind - first, 0)

    def find(self, code, span):
        first, counts = self.counts(span)
        which = constant(0, int(counts[0])) if len(span) == 1 else np.repeat(np.arange(len(span)), counts)
        return which, self.positions[select_ranges(first, counts)]

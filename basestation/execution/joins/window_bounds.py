"""Within: what the rows of a join may be put together with: of each input what is in their windows."""

import numpy as np

from basestation.algebra.vector import all_true, take_at
from basestation.execution.joins.joined_rows import JoinedRows
from basestation.execution.joins.probe_span import ProbeSpan


class WindowBounds:
    """What may be put together: of each input what is in the windows."""

    def __init__(self, sides, reaches):
        self._sides, self._reaches = sides, reaches

    def range(self, rows, i):
        """The ticks that tuples of input i may have, for each row."""
        reach = self._reaches[i]
        # Of rows that are in several windows it is looked at in which, and then in none (`held`).
        return ProbeSpan(reach.left, reach.right, rows.first, rows.last, reach.of, later=not rows.single)

    def wanted(self, rows, place):
        """Columns at a place and what rows want in them, beyond the keys of the join."""
        return ()

    def held(self, rows, which, found):
        """Those under `which` with what they found of some inputs, as far as all of it is in a window: in which windows it is."""
        if not rows.single:
            first, last = take_at(rows.first, which), take_at(rows.last, which)
            for i, at in found.items():
                low, high = self._sides[i].windows(self._reaches[i], at)
                first, last = np.maximum(first, low, out=low), np.minimum(last, high, out=high)
            some = first <= last
            if not all_true(some):
                some = np.flatnonzero(some)
                first, last, found = first.take(some), last.take(some), {i: at.take(some) for i, at in found.items()}
                which = some if isinstance(which, slice) else which.take(some)
            return JoinedRows(first, last, {i: take_at(at, which) for i, at in rows.at.items()} | found)
        rows = rows.take(which).beside(found)
        for number, i in enumerate(found):
            if number > 0 or self._sides[i].held.has_late_appends:  # else the tick was looked at
                rows = rows.take(self._sides[i].inside(self._reaches[i], rows.first, rows.at[i]))
        return rows


class ValueBounds(WindowBounds):
    """Of each row, which stands for a wanted combination of values, what is in its window and has those values."""

    def __init__(self, sides, reaches, values):
        super().__init__(sides, reaches)
        self._values = values

    def wanted(self, rows, place):
        found = [(i, id, vector) for i in place for id, vector in self._values.get(i, {}).items()]
        return [(index_part(i, id, place), vector.take(rows.first)) for i, id, vector in found]


def index_part(i, part, place):
    """A part of a key as the source at a place knows it: a kept node has to be told the input."""
    return part if len(place) == 1 else (i, part)

"""Within: what the rows of a join may be put together with: of each input what is in their windows."""

import numpy as np

from basestation.execution.joining.rows import Rows
from basestation.execution.joining.span import Span


class Within:
    """What may be put together: of each input what is in the windows."""

    def __init__(self, sides, reaches):
        self._sides, self._reaches = sides, reaches

    def range(self, rows, i):
        """The ticks that tuples of input i may have, for each row."""
        reach = self._reaches[i]
        return Span(reach.left, reach.right, rows.first, rows.last)

    def wanted(self, rows, place):
        """Columns at a place and what rows want in them, beyond the keys of the join."""
        return ()

    def held(self, rows, places):
        """Rows that are in a window, as far as some of their inputs are concerned: in which windows they are."""
        if not rows.single:
            first, last = rows.first, rows.last
            for i in places:
                low, high = self._sides[i].windows(self._reaches[i], rows.at[i])
                first, last = np.maximum(first, low), np.minimum(last, high)
            return Rows(first, last, rows.at).take(first <= last)
        for number, i in enumerate(places):
            if number > 0 or self._sides[i].held.appends:  # else the tick was looked at
                rows = rows.take(self._sides[i].inside(self._reaches[i], rows.first, rows.at[i]))
        return rows


class Wanted(Within):
    """Of each row, which stands for a wanted combination of values, what is in its window and has those values."""

    def __init__(self, sides, reaches, values):
        super().__init__(sides, reaches)
        self._values = values

    def wanted(self, rows, place):
        found = [(i, id, vector) for i in place for id, vector in self._values.get(i, {}).items()]
        return [(indexed(i, id, place), vector.take(rows.first)) for i, id, vector in found]


def indexed(i, part, place):
    """A part of a key as the source at a place knows it: a kept node has to be told the input."""
    return part if len(place) == 1 else (i, part)

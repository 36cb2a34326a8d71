"""Index: queries that ask for ranges of the same columns, looked up by the values of tuples.

What all of them name by one value, such as a site, comes first: it leads to the group of those that name that value. The
ends of their ranges cut the values of the next column into pieces, among which a value finds its own by bisection
(`ends.py`), and the pieces are places of a line on which each query is a span (`spans.py`). What is asked of further columns is
asked of what was found.
"""

import numpy as np

from basestation.algebra.vector import cached_arange, constant
from basestation.execution.streams.predicate_index.boundaries import Boundaries, IntLookup, Segments
from basestation.execution.streams.predicate_index.segment_tree import SegmentTree


class RangeIndex:
    """It is made anew when many others have come, or have left."""

    def __init__(self, points, slots, ranges):
        """`ranges` has those of all slots for each column; of the first `points` columns they are points."""
        self._slots = np.array(slots, np.int64)
        self._at = {slot: at for at, slot in enumerate(slots)}
        self._there, self.left = np.ones(len(slots), bool), 0
        self._points = []  # of each column: its Ends, and which groups and places together are a group
        group = np.zeros(len(slots), np.int64)
        for of in ranges[:points]:
            ends = Boundaries(of)
            known, group = np.unique(group * (len(ends) + 1) + ends.bounds(of)[0], return_inverse=True)
            self._points.append((ends, IntLookup(known)))
        self._strings = None  # the Ends of the column that is cut where it has strings: they are known by their places
        self._pieces = self._cut(group, *ranges[points : points + 1])
        self._further = []
        for of in ranges[points + 1 :]:
            ends = Boundaries(of)
            self._further.append((ends, *ends.bounds(of)))
        begin, stop, many = self._pieces.begin, self._pieces.stop, len(self._pieces) + 1
        edges = np.bincount(begin, minlength=many) - np.bincount(stop, minlength=many)
        self._covered = np.cumsum(edges) > 0  # by piece: whether a span holds it
        self._spans = SegmentTree(begin, stop, len(self._pieces))

    def _cut(self, group, ranges=None):
        """The Pieces of the groups; where no column is cut, each group is one."""
        if ranges is None:
            return Segments(group, [None] * len(group), [None] * len(group))
        begin, stop = [each.begin for each in ranges], [each.stop for each in ranges]
        if any(isinstance(end, str) for end in (*begin, *stop)):
            self._strings = Boundaries(ranges)
            begin, stop = (places.tolist() for places in self._strings.bounds(ranges))
            stop = [None if at > len(self._strings) else at for at in stop]
        return Segments(group, begin, stop)

    def any(self, vectors, length):
        """The rows of what lies in anybody's ranges; what is asked of further columns, and who has left, is looked up."""
        return self.of(vectors, length)[1] if self._further or self.left else self._found(vectors, length)[0]

    def of(self, vectors, length):
        """(slots, rows) of what lies where, in no order."""
        rows, piece = self._found(vectors, length)
        where, spans = self._spans.of(piece)
        rows = rows[where]
        vectors = vectors[len(self._points) + 1 :]
        for vector, (ends, begin, stop) in zip(vectors, self._further, strict=True):
            place = ends.places(vector.take(rows))
            inside = (begin[spans] <= place) & (place < stop[spans])
            rows, spans = rows[inside], spans[inside]
        if self.left:
            there = self._there[spans]
            rows, spans = rows[there], spans[there]
        return self._slots[spans], rows

    def _found(self, vectors, length):
        """(rows, the piece in which each of them lies), of those that lie in pieces which somebody asks for."""
        rows, group = None, constant(0, length)
        for vector, (ends, known) in zip(vectors, self._points, strict=False):
            place = ends.places(vector if rows is None else vector.take(rows))
            if ends is not self._points[0][0]:
                place = np.where(place < 0, -1, group * (len(ends) + 1) + place)
            group = known.of(place)
            rows, group = _kept(group >= 0, rows, group)
        piece = group
        for vector in vectors[len(self._points) : len(self._points) + 1]:
            if vector.valid is not None:
                rows, group = _kept(vector.valid if rows is None else vector.valid.take(rows), rows, group)
            vector = vector if rows is None else vector.take(rows)
            piece = self._pieces.of(group, vector.values if self._strings is None else self._strings.places(vector))
        rows, piece = _kept(self._covered.take(piece), rows, piece)
        return cached_arange(length) if rows is None else rows, piece

    def leave(self, slot):
        self._there[self._at.pop(slot)] = False
        self.left += 1


def _kept(mask, rows, values):
    """(rows, values) of those under a mask; rows are None for all."""
    which = np.flatnonzero(mask)
    if len(which) == len(mask):
        return rows, values
    return which if rows is None else rows.take(which), values.take(which)

"""RangeIndex: queries that ask for ranges of the same columns, found by the values of tuples.

Columns that all queries compare with one value, such as a site, come first: the values lead to the group of queries that name
them. The bounds of the ranges of the next column cut its values into segments, and each query is a span of segments. The ranges of
further columns are checked for each row found.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector, cached_arange, constant
from basestation.execution.streams.predicate_index.boundaries import Boundaries, IntLookup, Segments
from basestation.execution.streams.predicate_index.segment_tree import SegmentTree


class RangeIndex:
    """An index over a fixed set of queries, identified by slots. Queries may leave; `left` counts those that did."""

    def __init__(self, points: int, slots: Sequence[int], ranges: Sequence[Sequence[ValueRange]]) -> None:
        """ranges[column][i] is the range of query slots[i]; the ranges of the first `points` columns are points."""
        self._slots: IntArray = np.array(slots, np.int64)
        self._at = {slot: at for at, slot in enumerate(slots)}
        self._there, self.left = np.ones(len(slots), bool), 0
        # For each column of points: its bounds, and which pairs of group and place are a group.
        self._points: list[tuple[Boundaries, IntLookup]] = []
        group: IntArray = np.zeros(len(slots), np.int64)
        for column in ranges[:points]:
            ends = Boundaries(column)
            known, group = np.unique(group * (len(ends) + 1) + ends.bounds(column)[0], return_inverse=True)
            self._points.append((ends, IntLookup(known)))
        self._strings: Boundaries | None = None  # the bounds of the cut column if it has strings: they are cut by place
        self._segments = self._cut(group, *ranges[points : points + 1])
        self._further: list[tuple[Boundaries, IntArray, IntArray]] = []
        for column in ranges[points + 1 :]:
            ends = Boundaries(column)
            self._further.append((ends, *ends.bounds(column)))
        begin, stop, many = self._segments.begin, self._segments.stop, len(self._segments) + 1
        edges = np.bincount(begin, minlength=many) - np.bincount(stop, minlength=many)
        self._covered: BoolArray = np.cumsum(edges) > 0  # by segment: whether a span contains it
        self._spans = SegmentTree(begin, stop, len(self._segments))

    def _cut(self, group: IntArray, ranges: Sequence[ValueRange] | None = None) -> Segments:
        """Return the segments of the groups; without a column to cut, each group is one segment."""
        if ranges is None:
            return Segments(group, [None] * len(group), [None] * len(group))
        begin: list[Any] = [range_.begin for range_ in ranges]
        stop: list[Any] = [range_.stop for range_ in ranges]
        if any(isinstance(end, str) for end in (*begin, *stop)):
            self._strings = Boundaries(ranges)
            count = len(self._strings)
            begin, stop = (places.tolist() for places in self._strings.bounds(ranges))
            stop = [None if at > count else at for at in stop]
        return Segments(group, begin, stop)

    def any(self, vectors: Sequence[Vector], length: int) -> IntArray:
        """Return the rows that satisfy a query, possibly several times. Further columns are checked only if there are some."""
        return self.of(vectors, length)[1] if self._further or self.left else self._find_segments(vectors, length)[0]

    def of(self, vectors: Sequence[Vector], length: int) -> tuple[IntArray, IntArray]:
        """Return (slots, rows): a pair for each query that a row satisfies, in no order."""
        rows, segment = self._find_segments(vectors, length)
        where, spans = self._spans.of(segment)
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

    def _find_segments(self, vectors: Sequence[Vector], length: int) -> tuple[IntArray, IntArray]:
        """Return (rows, the segment of each), of the rows in segments that a query covers."""
        rows: IntArray | None = None
        group: IntArray = constant(0, length)
        for vector, (ends, known) in zip(vectors, self._points, strict=False):
            place = ends.places(vector if rows is None else vector.take(rows))
            if ends is not self._points[0][0]:
                place = np.where(place < 0, -1, group * (len(ends) + 1) + place)
            group = known.of(place)
            rows, group = _keep(group >= 0, rows, group)
        segment = group
        for vector in vectors[len(self._points) : len(self._points) + 1]:
            if vector.valid is not None:
                rows, group = _keep(vector.valid if rows is None else vector.valid.take(rows), rows, group)
            vector = vector if rows is None else vector.take(rows)
            values = vector.values if self._strings is None else self._strings.places(vector)
            segment = self._segments.of(group, values)
        rows, segment = _keep(self._covered.take(segment), rows, segment)
        return cached_arange(length) if rows is None else rows, segment

    def leave(self, slot: int) -> None:
        """Remove a query."""
        self._there[self._at.pop(slot)] = False
        self.left += 1


def _keep(mask: BoolArray, rows: IntArray | None, values: IntArray) -> tuple[IntArray | None, IntArray]:
    """Return (rows, values) under a mask; rows are None as long as they are all."""
    which = np.flatnonzero(mask)
    if len(which) == len(mask):
        return rows, values
    return which if rows is None else rows.take(which), values.take(which)

"""Finds the windows that contain a tick, for windows whose left and right edges both ascend.

Time windows have equally spaced edges, so a division finds them. Other edges are searched.
"""

import numpy as np

from acquisition.arrays import IntArray


def find_containing(left: IntArray, right: IntArray, ticks: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each tick the positions (first, last) of the windows [left, right] that contain it; several may be equal.

    If no window contains a tick, its last is smaller than its first.
    """
    if not len(left) or not len(ticks):
        return np.zeros(len(ticks), np.int64), np.full(len(ticks), -1)
    new = left[1:] != left[:-1]
    new |= right[1:] != right[:-1]
    if new.all():
        return _count_before(right, ticks), _count_before(left, ticks + 1) - 1
    begins = np.concatenate([[0], np.flatnonzero(new) + 1, [len(left)]])
    left, right = (edges.take(begins[:-1]) for edges in (left, right))
    return begins.take(_count_before(right, ticks)), begins.take(_count_before(left, ticks + 1)) - 1


def _count_before(edges: IntArray, ticks: IntArray) -> IntArray:
    """Return how many of the ascending edges are less than each tick."""
    first, last = int(edges[0]), int(edges[-1])
    step = int(edges[1]) - first if len(edges) > 1 else 1
    if step < 1 or last - first != (len(edges) - 1) * step or (edges[1:] - edges[:-1] != step).any():
        return np.searchsorted(edges, ticks)
    found = np.clip(ticks, first, last + 1)  # so that no difference overflows
    found -= first + 1 - step
    if step > 1:
        found //= step
    return np.asarray(found)

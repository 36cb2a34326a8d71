"""Edges: which windows in a row hold a tick, of windows that begin and end in their order. Edges of windows of time lie at equal
distances: then it is a division; else they are searched."""

import numpy as np


def find_containing(left, right, ticks):
    """(the first, the last) of the windows from left to right, some of which may be equal, that hold each tick."""
    if not len(left) or not len(ticks):
        return np.zeros(len(ticks), np.int64), np.full(len(ticks), -1)
    new = left[1:] != left[:-1]
    new |= right[1:] != right[:-1]
    if new.all():
        return _before(right, ticks), _before(left, ticks + 1) - 1
    begins = np.concatenate([[0], np.flatnonzero(new) + 1, [len(left)]])
    left, right = (edges.take(begins[:-1]) for edges in (left, right))
    return begins.take(_before(right, ticks)), begins.take(_before(left, ticks + 1)) - 1


def _before(edges, ticks):
    """How many of the edges, which do not fall, are less than each tick."""
    first, last = int(edges[0]), int(edges[-1])
    step = int(edges[1]) - first if len(edges) > 1 else 1
    if step < 1 or last - first != (len(edges) - 1) * step or (edges[1:] - edges[:-1] != step).any():
        return np.searchsorted(edges, ticks)
    found = np.clip(ticks, first, last + 1)  # so that no difference is too large
    found -= first + 1 - step
    if step > 1:
        found //= step
    return found

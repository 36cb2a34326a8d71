"""Edges: how many of some ascending numbers lie before others. Those of windows of time lie at equal distances: then it is
a division; else they are searched."""

import numpy as np


def before(edges, ticks):
    """How many of the edges, some of which may be equal, are less than each tick."""
    if not len(edges) or not len(ticks):
        return np.zeros(len(ticks), np.int64)
    new = edges[1:] != edges[:-1]
    if new.all():
        return _before(edges, ticks)
    begins = np.concatenate([[0], np.flatnonzero(new) + 1, [len(edges)]])
    return begins.take(_before(edges.take(begins[:-1]), ticks))


def _before(edges, ticks):
    first, last = int(edges[0]), int(edges[-1])
    step = int(edges[1]) - first if len(edges) > 1 else 1
    if last - first != (len(edges) - 1) * step or (edges[1:] - edges[:-1] != step).any():
        return np.searchsorted(edges, ticks)
    found = np.clip(ticks, first, last + 1)  # so that no difference is too large
    found -= first + 1 - step
    found //= step
    return found

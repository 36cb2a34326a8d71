"""Spans: in which of many spans of places each of many places lies.

A span is cut into at most two blocks of each size 1, 2, 4, …, as in a segment tree; a place lies in one block of each
size. So nothing is larger than the spans times the logarithm of their places, however much they overlap, and looking up
costs that logarithm and what is found. Where spans overlap little, each place knows its spans, and nothing is cut.
"""

import numpy as np

from basestation.execution.columns.window_batch import expand_ranges

_NONE = np.empty(0, np.int64)
_LITTLE, _SMALL = 16, 2**12
"""Spans overlap little where they hold so many places each on average, and some more."""


class SegmentTree:
    """Spans from `begin` up to `behind`, which is outside, of places from 0 to `places`."""

    def __init__(self, begin, stop, places):
        self._levels = []  # (how often a place is halved, where the spans of each block begin, the spans)
        span, low, high = np.arange(len(begin)), begin, stop
        held = np.maximum(stop - begin, 0)
        if held.sum() <= _LITTLE * len(begin) + _SMALL:
            self._add(0, expand_ranges(begin, held), np.repeat(span, held), places)
            return
        halved = 0
        while len(span := span[there := low < high]):
            low, high = low[there], high[there]
            odd_low, odd_high = low & 1 == 1, high & 1 == 1
            block = np.concatenate([low[odd_low], high[odd_high] - 1])
            owner = np.concatenate([span[odd_low], span[odd_high]])
            if len(block):
                self._add(halved, block, owner, places)
            low, high = (low + odd_low) >> 1, (high - odd_high) >> 1
            halved += 1

    def _add(self, halved, block, owner, places):
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], np.arange((places >> halved) + 2))
        self._levels.append((halved, starts, owner[order]))

    def of(self, places):
        """(positions among the places, spans) of what lies in what, in no order."""
        where, spans = [_NONE], [_NONE]
        for halved, starts, owners in self._levels:
            block = places >> halved
            begin = starts[block]
            count = starts[block + 1] - begin
            hit = np.flatnonzero(count)
            count = count[hit]
            where.append(np.repeat(hit, count))
            spans.append(owners[expand_ranges(begin[hit], count)])
        return np.concatenate(where), np.concatenate(spans)

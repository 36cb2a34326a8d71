"""SegmentTree: which of many spans of places contain each of many places.

A span is cut into at most two blocks of each size 1, 2, 4, …, and a place lies in one block of each size. So the tree has at most
spans * log(places) entries, however much the spans overlap, and a lookup costs log(places) plus its results. If spans overlap
little, each place lists its spans instead, and no span is cut.
"""

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution import thresholds
from basestation.execution.columns.window_batch import expand_ranges

_NONE: IntArray = np.empty(0, np.int64)


class SegmentTree:
    """Span i contains the places begin[i] to before stop[i], out of 0 to `places`."""

    def __init__(self, begin: IntArray, stop: IntArray, places: int) -> None:
        # By size of block: (log2 of the size, the position of each block's first span, spans by block).
        self._levels: list[tuple[int, IntArray, IntArray]] = []
        span, low, high = np.arange(len(begin)), begin, stop
        sizes = np.maximum(stop - begin, 0)
        if sizes.sum() <= thresholds.SPAN_FACTOR * len(begin) + thresholds.SPAN_SLACK:
            self._add(0, expand_ranges(begin, sizes), np.repeat(span, sizes), places)
            return
        halvings = 0
        while len(span := span[there := low < high]):
            low, high = low[there], high[there]
            odd_low, odd_high = low & 1 == 1, high & 1 == 1
            block = np.concatenate([low[odd_low], high[odd_high] - 1])
            owner = np.concatenate([span[odd_low], span[odd_high]])
            if len(block):
                self._add(halvings, block, owner, places)
            low, high = (low + odd_low) >> 1, (high - odd_high) >> 1
            halvings += 1

    def _add(self, halvings: int, block: IntArray, owner: IntArray, places: int) -> None:
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], np.arange((places >> halvings) + 2))
        self._levels.append((halvings, starts, owner[order]))

    def of(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return (positions in `places`, spans): a pair for each span that contains a place, in no order."""
        where, spans = [_NONE], [_NONE]
        for halvings, starts, owners in self._levels:
            block = places >> halvings
            begin = starts[block]
            count = starts[block + 1] - begin
            hit = np.flatnonzero(count)
            count = count[hit]
            where.append(np.repeat(hit, count))
            spans.append(owners[expand_ranges(begin[hit], count)])
        return np.concatenate(where), np.concatenate(spans)

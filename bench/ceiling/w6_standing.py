"""W6 by hand: the ends of all ranges cut the temperatures of a site into pieces; a piece knows the queries it lies in.

A reading finds its piece by halving, all readings at a time. So its cost is the logarithm of the number of queries at its
site, and that of its matches.
"""

import numpy as np

from bench.answers import Tuples
from bench.ceiling.codes import Codes
from bench.tasks import ranges_of

PORTION = 1 << 16


class Ceiling:
    def __init__(self, case, streams):
        self._codes = Codes()
        self._taken = 0
        site, low, high = (
            np.array(column) for column in zip(*ranges_of(case.sites, streams, case.queries), strict=True)
        )
        code = self._codes.of(site)
        cuts, first, owners, starts = [], [], [], [0]
        for each in range(len(self._codes)):
            mine = np.flatnonzero(code == each)
            ends = np.unique(np.concatenate([[-np.inf], low[mine], high[mine]]))
            first.append(sum(map(len, cuts)))
            cuts.append(ends)
            begin, behind = np.searchsorted(ends, low[mine]), np.searchsorted(ends, high[mine])
            for piece in range(len(ends)):  # piece p is above cut p, up to the next
                inside = mine[(begin <= piece) & (piece < behind)]
                owners.append(inside + 1)
                starts.append(starts[-1] + len(inside))
        self._sizes = np.array([len(ends) for ends in cuts])
        self._first = np.array(first)
        self._cuts = np.concatenate(cuts)
        self._owners, self._starts = np.concatenate(owners), np.array(starts[:-1])
        self._matches = np.diff(starts)
        self._asked = len(self._codes)

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["temp"]

    def step(self, batch):
        said = []
        for begin in range(0, len(batch[0]), PORTION):
            said += self._step(*(column[begin : begin + PORTION] for column in batch))
        return said

    def _step(self, tick, site, temp):
        index = self._taken + 1
        self._taken += len(tick)
        code = self._codes.of(site)
        if len(self._codes) > self._asked:
            rows = np.flatnonzero(code < self._asked)
            code, temp_of = code[rows], temp[rows]
        else:
            rows, temp_of = None, temp
        piece = self._pieces(code, temp_of)
        matches = self._matches.take(piece)
        hit = np.flatnonzero(matches)
        if not len(hit):
            return []
        matches, begin = matches.take(hit), self._starts.take(piece.take(hit))
        ends = matches.cumsum()
        which = np.arange(ends[-1]) + np.repeat(begin - ends + matches, matches)
        query = self._owners[which]
        row = np.repeat(hit if rows is None else rows[hit], matches)
        both = query * len(tick) + row  # each query is given its tuples one after another
        both.sort()
        query = both // len(tick)
        row = both - query * len(tick)
        return [Tuples(tick[row], row + index, [(temp[row], None)], query=query)]

    def _pieces(self, code, temp):
        """The number of the piece of each reading: the cuts of its site that may be the last below it are halved, and halved."""
        piece, left = self._first.take(code), self._sizes.take(code)
        for _ in range((int(self._sizes.max(initial=1)) - 1).bit_length()):
            half = left >> 1
            piece += half * (self._cuts.take(piece + half) < temp)
            left -= half
        return piece

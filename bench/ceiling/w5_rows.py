"""W5 by hand: each window has ten rows that the one before had not, and has lost ten: only these are looked at."""

import numpy as np

from bench.answers import Tuples
from bench.ceiling.codes import Codes

SLIDE, BLOCKS = 10, 10  # a window is ten blocks of ten rows
PORTION = 1 << 16
_OUT = -1  # the key of a row that WHERE leaves out, and of rows before the first


class Ceiling:
    """Kept: the keys of the last ten blocks, and the rows of the block that is not full yet."""

    def __init__(self, case, streams):
        self._codes, self._temps = Codes(), Codes()
        self._keys = np.full((BLOCKS, SLIDE), _OUT)
        self._waiting = []
        self._waits = 0
        self._emitted = 0

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["temp"]

    def step(self, batch):
        said = []
        for begin in range(0, len(batch[0]), PORTION):
            said += self._step([column[begin : begin + PORTION] for column in batch])
        return said

    def _step(self, columns):
        self._waiting.append(columns)
        self._waits += len(columns[0])
        if self._waits < SLIDE:
            return []
        tick, site, temp = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        full = len(tick) // SLIDE * SLIDE
        self._waiting = [(tick[full:], site[full:], temp[full:])]
        self._waits = len(tick) - full
        tick, site, temp = tick[:full], site[:full], temp[:full]
        warm = temp > 10
        key = self._codes.of(site) << 20 | self._temps.of(np.where(warm, temp, 0))
        key[~warm] = _OUT
        blocks = full // SLIDE
        keys = np.concatenate([self._keys, key.reshape(blocks, SLIDE)])
        self._keys = keys[blocks:]
        came, went = keys[BLOCKS:], keys[:blocks]
        lost = np.zeros((blocks, SLIDE), np.int64)  # of each row that came: how many like it went
        for place in range(SLIDE):
            lost += came == went[:, place : place + 1]
        new = came != _OUT
        block, place = np.nonzero(new & (lost > 0))
        if len(block):
            # Of the rows alike that came, as many are no news as went, and these are the first ones.
            before = (came[block] == came[block, place][:, None]) & (np.arange(SLIDE) < place[:, None])
            new[block, place] = before.sum(axis=1) >= lost[block, place]
        rows = np.flatnonzero(new.ravel())
        if not len(rows):
            return []
        index = self._emitted + 1 + np.arange(len(rows))
        self._emitted += len(rows)
        ticks = tick[rows // SLIDE * SLIDE + (SLIDE - 1)]
        return [Tuples(ticks, index, [(site[rows], None), (temp[rows], None)])]

"""W4 by hand: how often each site had each class, window by window, in one table; what there is more of is new."""

import numpy as np

from bench import data
from bench.answers import Tuples
from bench.ceiling.codes import Codes

FIVE = 5 * data.MINUTE
PORTION = 1 << 16


class Ceiling:
    """Readings wait until their five minutes are over. The counts of the last window are kept."""

    def __init__(self, case, streams):
        table = data.temp_class()
        assert len(np.unique(table["temp"])) == len(table["temp"]), "each degree has one class"
        names, code = np.unique(table["category"].astype(str), return_inverse=True)
        self._names = names.astype(object)
        self._lowest, self._highest = int(table["temp"].min()), int(table["temp"].max())
        self._class = np.full(self._highest - self._lowest + 1, -1)
        self._class[table["temp"] - self._lowest] = code
        self._codes = Codes()
        self._waiting = []
        self._answered = -1  # the number of the last window that was answered
        self._before = np.zeros(0, np.int64)
        self._emitted = 0

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["temp"], last

    def step(self, batch):
        *columns, last = batch
        said = []
        for begin in range(0, len(columns[0]), PORTION):
            part = [column[begin : begin + PORTION] for column in columns]
            whole = begin + PORTION >= len(columns[0])
            said += self._step(part, last if whole else int(part[0][-1]))
        return said

    def _step(self, columns, last):
        self._waiting.append(columns)
        number = last // FIVE
        if number == self._answered:
            return []
        tick, site, temp = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        over = int(np.searchsorted(tick, number * FIVE))
        self._waiting = [(tick[over:], site[over:], temp[over:])]
        first, self._answered = self._answered, number
        return self._answer(first, number - first, tick[:over], site[:over], temp[:over])

    def _answer(self, first, windows, tick, site, temp):
        code = self._codes.of(site)
        place = temp - self._lowest
        if len(place) and (place.min() < 0 or place.max() >= len(self._class)):
            place = np.where((temp < self._lowest) | (temp > self._highest), 0, place)
            named = self._class[place]
            named[(temp < self._lowest) | (temp > self._highest)] = -1
        else:
            named = self._class[place]
        if len(named) and named.min() < 0:
            joined = np.flatnonzero(named >= 0)
            tick, site, code, named = tick[joined], site[joined], code[joined], named[joined]
        wide = len(self._codes) * len(self._names)
        window = tick // FIVE - first
        cell = window * wide + code * len(self._names) + named
        counts = np.bincount(cell, minlength=windows * wide)
        more = counts.copy()
        before = np.zeros(wide, np.int64)
        before[: len(self._before)] = self._before
        more[:wide] -= before
        more[wide:] -= counts[:-wide]
        self._before = counts[-wide:] if wide else counts
        wanted = more[cell]
        new = np.flatnonzero(wanted > 0)
        if not len(new):
            return []
        partly = new[wanted[new] < counts[cell[new]]]
        if len(partly):
            # Of equal tuples in a window the last ones are new.
            order = partly[np.argsort(cell[partly], kind="stable")]
            edges = np.flatnonzero(np.diff(cell[order], append=-1)) + 1
            behind = np.repeat(edges, np.diff(edges, prepend=0)) - np.arange(len(order))
            drop = order[behind > wanted[order]]
            keep = np.ones(len(tick), bool)
            keep[drop] = False
            new = new[keep[new]]
        index = self._emitted + 1 + np.arange(len(new))
        self._emitted += len(new)
        ticks = (window[new] + (first + 1)) * FIVE
        return [Tuples(ticks, index, [(site[new], None), (self._names[named[new]], None)])]

"""Filter, aggregate and join by hand over epochs: every site reports at the same tick, every 30 seconds.

Batches hold whole epochs. Each epoch becomes a row of matrices with a column for each site, filled with `bincount`,
`minimum.at` and `maximum.at`. A window is the fold of the last 21 rows, made of folds of 2, 4, 8 and 16 rows. The files
may assume the schedule (ticks are multiples of 30 s), and nothing about the number of sites or missing readings.
"""

from itertools import pairwise

import numpy as np

from bench.answers import Tuples, Windows
from bench.ceiling.codes import Codes
from bench.ceiling.rows import Rows

EVERY, SLIDE = 30, 60  # seconds
REACH = 21  # epochs of a closed window of ten minutes
_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class Filter:
    """Q1: one mask for each batch."""

    def __init__(self, scale):
        self._above, self._taken = 20 * 10**scale, 0

    def step(self, streams):
        road = streams["road"]
        kept = np.flatnonzero((road["temp"] < 50) & (road["vibration"] > self._above))
        index = kept + (self._taken + 1)
        self._taken += len(road["tick"])
        if not len(kept):
            return []
        columns = [(road[name][kept], None) for name in ("tick", "site", "vibration")]
        return [Tuples(road["tick"][kept], index, columns)]


class Aggregate:
    """MIN, MAX, AVG and COUNT of the vibration by site, in the last ten minutes, every minute."""

    def __init__(self, scale):
        self._unit, self._codes = 10**scale, Codes()
        self._low = Rows(np.minimum, _MOST, REACH)
        self._high = Rows(np.maximum, _LEAST, REACH)
        self._sum, self._count = Rows(np.add, 0, REACH), Rows(np.add, 0, REACH)

    def step(self, streams):
        road = streams["road"]
        first, epochs, code = _cells(road, self._codes)
        sites, value = len(self._codes), road["vibration"]
        cell = (road["tick"] // EVERY - first) * sites + code
        low, high = np.full(epochs * sites, _MOST), np.full(epochs * sites, _LEAST)
        np.minimum.at(low, cell, value)
        np.maximum.at(high, cell, value)
        total = np.bincount(cell, value, epochs * sites).astype(np.int64)
        count = np.bincount(cell, minlength=epochs * sites)
        at = _windows(first, epochs)
        low, high, total, count = (
            rows.fold(new.reshape(epochs, sites), at).reshape(-1)
            for rows, new in ((self._low, low), (self._high, high), (self._sum, total), (self._count, count))
        )
        some = np.flatnonzero(count)
        bounds = np.searchsorted(some, np.arange(len(at) + 1) * sites)
        mean = total[some] / (count[some] * np.float64(self._unit))
        groups = np.tile(self._codes.values, len(at))[some]
        columns = [groups, _values(low[some], self._unit), _values(high[some], self._unit), mean, count[some]]
        return [Windows((first + at) * EVERY, bounds, [(column, None) for column in columns])]


class OwnWhere:
    """The aggregate under many conditions `vibration > a AND temp > b`: every window of each query is computed anew."""

    def __init__(self, scale, bounds):
        self._unit, self._bounds, self._codes = 10**scale, bounds, Codes()
        self._kept = []  # (epoch, code, temp, vibration)

    def step(self, streams):
        road = streams["road"]
        code = self._codes.of(road["site"])
        self._kept.append((road["tick"] // EVERY, code, road["temp"], road["vibration"]))
        last = int(road["tick"][-1]) // EVERY
        self._kept = [part for part in self._kept if part[0][-1] > last - REACH]
        if last * EVERY % SLIDE:
            return []
        _, code, temp, value = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        tick, sites = np.array([last * EVERY]), len(self._codes)
        return [
            self._answer(number, tick, sites, code, value, (value > above) & (temp > warmer))
            for number, (above, warmer) in enumerate(self._bounds, 1)
        ]

    def _answer(self, number, tick, sites, code, value, mask):
        code, value = code[mask], value[mask]
        count = np.bincount(code, minlength=sites)
        total = np.bincount(code, value, sites)
        low, high = np.full(sites, _MOST), np.full(sites, _LEAST)
        np.minimum.at(low, code, value)
        np.maximum.at(high, code, value)
        some = np.flatnonzero(count)
        mean = total[some] / (count[some] * np.float64(self._unit))
        columns = [
            self._codes.values[some], _values(low[some], self._unit), _values(high[some], self._unit), mean, count[some]
        ]  # fmt: skip
        return Windows(tick, np.array([0, len(some)]), [(column, None) for column in columns], query=number)


class OwnRange:
    """The aggregate over many ranges, each of the last so many minutes, at every epoch: one fold from the newest epoch backwards.

    `grouped` says whether there is a row for each site, or one for all.
    """

    _FOLDS = ((np.minimum, _MOST), (np.maximum, _LEAST), (np.add, 0), (np.add, 0))

    def __init__(self, scale, minutes, grouped=True):
        self._unit, self._grouped, self._codes = 10**scale, grouped, Codes()
        self._epochs = np.array(minutes) * 60 // EVERY  # that a window has beside its last one
        self._kept = [np.empty((0, 0), np.int64) for _ in self._FOLDS]

    def step(self, streams):
        road = streams["road"]
        first, epochs, code = _cells(road, self._codes)
        sites = len(self._codes)
        cell = (road["tick"] // EVERY - first) * sites + code
        found = []
        for epoch in range(epochs):
            these = cell // sites == epoch
            self._add(cell[these] - epoch * sites, road["vibration"][these], sites)
            found += self._answer((first + epoch) * EVERY)
        return found

    def _add(self, cell, value, sites):
        """Take the readings of one epoch in, and drop the epochs that are in no window any more."""
        low, high = np.full(sites, _MOST), np.full(sites, _LEAST)
        np.minimum.at(low, cell, value)
        np.maximum.at(high, cell, value)
        count = np.bincount(cell, minlength=sites)
        new = low, high, np.bincount(cell, value, sites).astype(np.int64), count
        for at, ((_, blank), row) in enumerate(zip(self._FOLDS, new, strict=True)):
            kept = self._kept[at][-int(self._epochs.max()) :]
            wide = np.pad(kept, ((0, 0), (0, sites - kept.shape[1])), constant_values=blank)
            self._kept[at] = np.concatenate([wide, row[None]])

    def _answer(self, tick):
        """The windows of all ranges at a tick."""
        rows = np.minimum(self._epochs, len(self._kept[0]) - 1)
        folded = []
        for (fold, _), kept in zip(self._FOLDS, self._kept, strict=True):
            newest_first = kept[::-1] if self._grouped else fold.reduce(kept, axis=1, keepdims=True)[::-1]
            folded.append(fold.accumulate(newest_first, axis=0)[rows])
        low, high, total, count = folded
        some = count > 0
        group = np.broadcast_to(self._codes.values, some.shape)[some] if self._grouped else None
        bounds = np.concatenate([[0], np.cumsum(some.sum(axis=1))]).tolist()
        mean = total[some] / (count[some] * np.float64(self._unit))
        columns = [_values(low[some], self._unit), _values(high[some], self._unit), mean, count[some]]
        columns = columns if group is None else [group, *columns]
        ticks = np.array([tick])
        return [
            Windows(ticks, np.array([0, end - begin]), [(column[begin:end], None) for column in columns], query=number)
            for number, (begin, end) in enumerate(pairwise(bounds), 1)
        ]


class Join:
    """Q2: MIN(temp) and MAX(vibration) of the readings that have a vehicle at the same site and time."""

    def __init__(self, scale):
        self._unit, self._codes = 10**scale, Codes()
        self._low, self._high = Rows(np.minimum, _MOST, REACH), Rows(np.maximum, _LEAST, REACH)

    def step(self, streams):
        road, traffic = streams["road"], streams["traffic"]
        first, epochs, code = _cells(road, self._codes)
        sites = len(self._codes)
        lane = self._codes.of(traffic["site"])
        sites = len(self._codes)
        passed = np.zeros(epochs * sites, bool)
        passed[(traffic["tick"] // EVERY - first) * sites + lane] = True
        epoch = road["tick"] // EVERY - first
        met = np.flatnonzero(passed[epoch * sites + code])
        low, high = np.full((epochs, 1), _MOST), np.full((epochs, 1), _LEAST)
        np.minimum.at(low[:, 0], epoch[met], road["temp"][met])
        np.maximum.at(high[:, 0], epoch[met], road["vibration"][met])
        at = _windows(first, epochs)
        low, high = (rows.fold(new, at)[:, 0] for rows, new in ((self._low, low), (self._high, high)))
        there = low != _MOST
        return [
            Windows((first + at) * EVERY, np.arange(len(at) + 1), [(low, there), (_values(high, self._unit), there)])
        ]


def _values(multiples, unit):
    """Return the values of a scaled attribute in answers: the double nearest to each multiple."""
    return multiples if unit == 1 else multiples / np.float64(unit)


def _cells(stream, codes):
    """The first epoch of a batch, how many it has, and the code of the site of each reading."""
    first = int(stream["tick"][0]) // EVERY
    return first, int(stream["tick"][-1]) // EVERY - first + 1, codes.of(stream["site"])


def _windows(first, epochs):
    """The rows of a batch at which a window ends."""
    step = SLIDE // EVERY
    return np.arange(-first % step, epochs, step)


CEILINGS = {"filter": Filter, "aggregate": Aggregate, "join": Join}

"""W8 by hand: W2, and for what comes late or replaces something, versions of readings: a group is looked up as it was.

Within a batch the amendments are numbered. A version of a reading is there from one amendment to another, so the rows of
all windows before and after all amendments are made together. An amendment concerns a minute that is over.
"""

import numpy as np

from bench.answers import Windows
from bench.ceiling import w2_per_site
from bench.ceiling.exact import means, split
from bench.data import MINUTE

REACH = w2_per_site.REACH
PORTION = w2_per_site.PORTION
BACK = 2 * REACH + 2  # minutes that an amendment may ask for
EVER = np.iinfo(np.int64).max


class Ceiling:
    def __init__(self, case, streams):
        self._plain = w2_per_site.Ceiling(case, streams)
        none = np.empty(0, np.int64)
        self._readings = [none, none, np.empty(0)]  # minute, code and value, in the order of indexes
        self._first = 1  # the index of the first of them
        self._waiting, self._waits = [], 0  # readings that came since, and how many
        self._revisions = np.zeros(0, np.int64)  # the last revision of windows, from minute 0 on

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.arrival, road.columns["site"], road.columns["vibration"], road.replaces, last

    def step(self, batch):
        *columns, last = batch
        said = []
        for begin in range(0, len(columns[0]), PORTION):
            part = [column[begin : begin + PORTION] for column in columns]
            whole = begin + PORTION >= len(columns[0])
            said += self._step(*part, last if whole else int(part[1][-1]))
        return said

    def _step(self, tick, arrival, site, value, replaces, last):
        code = self._plain.codes.of(site)
        minute = tick // MINUTE
        on_time, new = tick == arrival, replaces == 0
        amends = np.flatnonzero(~on_time)
        if not len(amends) and self._waits < PORTION:
            self._waiting.append((minute, code, value))
            self._waits += len(minute)
            return self._plain.answered((tick, site, value), last)
        versions = self._versions(minute, code, value, replaces, new, amends)
        at, of, own = arrival[amends] // MINUTE, code[amends], minute[amends]
        number = np.arange(1, len(amends) + 1)
        minutes = last // MINUTE
        which, window = _pairs(own + 1, np.minimum(np.minimum(own + REACH, minutes), at))
        later, coming = _pairs(np.maximum(own, at) + 1, np.minimum(own + REACH, minutes))

        def patch():
            """Rows of windows that are answered for the first time, and what was amended before: at their tick."""
            cells = np.unique(coming * len(self._plain.codes) + of[later])
            windows, codes = cells // len(self._plain.codes), cells % len(self._plain.codes)
            return windows, codes, versions.rows(windows, codes, np.searchsorted(arrival[amends], windows * MINUTE))

        said = self._plain.answered((tick[on_time], site[on_time], value[on_time]), last, patch if len(later) else None)
        said += self._revised(versions, which, window, of[which], number)
        self._plain.correct(own, of, versions.rows(own + 1, of, EVER - 1, reach=1))
        self._keep(versions, minutes)
        return said

    def _versions(self, minute, code, value, replaces, new, amends):
        """All versions of the readings that are kept and of those that came now."""
        number = np.zeros(len(minute), np.int64)
        number[amends] = np.arange(1, len(amends) + 1)
        known = [self._readings, *self._waiting]
        self._waiting, self._waits = [], 0
        readings = [
            np.concatenate([*old, now[new]])
            for old, now in zip(zip(*known, strict=True), (minute, code, value), strict=True)
        ]
        born = np.zeros(len(readings[0]), np.int64)
        born[len(born) - int(new.sum()) :] = number[new]
        again = np.flatnonzero(~new)
        again = again[np.argsort(replaces[again], kind="stable")]
        target = replaces[again] - self._first
        return Versions(readings, born, target, value[again], number[again], len(self._plain.codes))

    def _revised(self, versions, which, window, code, number):
        """Return the changes by each amendment in each window that was answered before it."""
        if not len(which):
            return []
        then = number[which]
        before, after = versions.rows(window, code, then - 1), versions.rows(window, code, then)
        changed = np.flatnonzero(~np.logical_and.reduce([a == b for a, b in zip(before, after, strict=True)]))
        changed = changed[np.argsort(window[changed], kind="stable")]
        window, code = window[changed], code[changed]
        if len(window) and window[-1] >= len(self._revisions):
            self._revisions = np.concatenate([self._revisions, np.zeros(int(window[-1]) + 1, np.int64)])
        rank = np.arange(len(window)) - np.searchsorted(window, window)
        revision = self._revisions[window] + rank + 1
        np.maximum.at(self._revisions, window, revision)
        said = []
        for rows, sign in ((after, 1), (before, -1)):
            low, high, counts, *words = (column[changed] for column in rows)
            there = counts > 0
            columns = [self._plain.codes.values[code], low, high, None, counts]
            columns[3] = means(*words, np.maximum(counts, 1))
            bounds = np.concatenate([[0], there.cumsum()])
            columns = [(column[there], None) for column in columns]
            said.append(Windows(window * MINUTE, bounds, columns, revision, sign))
        return said

    def _keep(self, versions, minutes):
        """Only what the newest versions say, of the last minutes."""
        minute, code, value = versions.newest()
        old = int(np.argmax(minute >= minutes - BACK)) if len(minute) else 0
        self._readings = [minute[old:], code[old:], value[old:]]
        self._first += old


class Versions:
    """Readings, and replacements sorted by their `target`. Each is there from the amendment `born` to before `died`."""

    def __init__(self, readings, born, target, values, number, sites):
        self._readings, self._target, self._values, self._sites = readings, target, values, sites
        minute, code, value = readings
        died = np.full(len(minute), EVER)
        again = np.full(len(target), EVER)
        again[:-1] = np.where(target[1:] == target[:-1], number[1:], EVER)
        first = np.ones(len(target), bool)
        first[1:] = target[1:] != target[:-1]
        died[target[first]] = number[first]
        self._value = np.concatenate([value, values])
        self._born, self._died = np.concatenate([born, number]), np.concatenate([died, again])
        self._base = int(minute.min(initial=0)) - REACH
        minutes = np.concatenate([minute, minute[target]]) - self._base
        self._minutes = int(minutes.max(initial=0)) + REACH + 1
        self._layers = self._tables(minutes * sites + np.concatenate([code, code[target]]))

    def _tables(self, cell):
        """By minute and site, which versions there are; one table for the first, one for the second, …"""
        left, layers = np.arange(len(cell)), []
        while len(left):
            table = np.full(self._minutes * self._sites, -1)
            table[cell[left[::-1]]] = left[::-1]
            layers.append(table)
            left = left[table[cell[left]] != left]
        return layers

    def rows(self, window, code, then, reach=REACH):
        """Lowest, highest, number and both words of the sum, of a site in the minutes before each window, as it was then."""
        low, high = np.full(len(window), np.inf), np.full(len(window), -np.inf)
        counts, top, rest = (np.zeros(len(window), np.int64) for _ in range(3))
        for table in self._layers:
            for back in range(1, reach + 1):
                place = table[(window - back - self._base) * self._sites + code]
                there = np.flatnonzero((place >= 0) & (self._born[place] <= then) & (self._died[place] > then))
                value = self._value[place[there]]
                low[there] = np.minimum(low[there], value)
                high[there] = np.maximum(high[there], value)
                counts[there] += 1
                words = split(value)
                top[there] += words[0]
                rest[there] += words[1]
        return low, high, counts, top, rest

    def newest(self):
        minute, code, value = self._readings
        value = value.copy()
        value[self._target] = self._values  # of several for one target the last one counts, and numpy takes the last
        return minute, code, value


def _pairs(first, last):
    """Each place with each of the whole numbers from `first` to `last`."""
    sizes = np.maximum(last - first + 1, 0)
    which = np.repeat(np.arange(len(first)), sizes)
    return which, np.arange(len(which)) - np.repeat(sizes.cumsum() - sizes, sizes) + first[which]

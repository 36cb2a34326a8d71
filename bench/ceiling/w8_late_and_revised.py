"""W8 by hand: W2, and what comes late or replaces something, one by one: the groups that it changes are made anew."""

from itertools import pairwise

import numpy as np

from bench.answers import Windows
from bench.ceiling import w2_per_site
from bench.ceiling.exact import means, split
from bench.data import HORIZON, MINUTE

REACH = w2_per_site.REACH


class Ceiling:
    """What is on time goes to W2, whose rows of minutes are corrected where they are kept."""

    def __init__(self, case, streams):
        self._plain = w2_per_site.Ceiling(case, streams)
        self._minutes = {}  # minute -> [index, site, value] of its readings
        self._revisions = {}  # tick of a window that was answered -> its last revision
        self._entered = 0

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.arrival, road.columns["site"], road.columns["vibration"], road.replaces, last

    def step(self, batch):
        tick, arrival, site, value, replaces, last = batch
        said, begin = [], 0
        for at in np.flatnonzero(tick < arrival).tolist():
            said += self._on_time(tick[begin:at], site[begin:at], value[begin:at], int(arrival[at]))
            said += self._amend(int(arrival[at]), int(tick[at]), int(site[at]), float(value[at]), int(replaces[at]))
            begin = at + 1
        return said + self._on_time(tick[begin:], site[begin:], value[begin:], last)

    def _on_time(self, tick, site, value, last):
        minutes = tick // MINUTE
        edges = np.flatnonzero(np.diff(minutes, prepend=-1)).tolist()
        for begin, end in pairwise([*edges, len(tick)]):
            index = self._entered + 1 + np.arange(begin, end)
            self._note(int(minutes[begin]), index, site[begin:end], value[begin:end])
        self._entered += len(tick)
        said = self._plain._step((tick, site, value), last)
        for windows in said:
            self._revisions.update(dict.fromkeys(windows.tick.tolist(), 0))
        if said:
            old = last - HORIZON - MINUTE
            self._revisions = {tick: n for tick, n in self._revisions.items() if tick > old}
            self._minutes = {m: held for m, held in self._minutes.items() if (m + REACH + 1) * MINUTE > old}
        return said

    def _note(self, minute, index, site, value):
        held = self._minutes.setdefault(minute, [[], [], []])
        for parts, part in zip(held, (index, site, value), strict=True):
            parts.append(part)

    def _held(self, minute):
        """The readings of a minute as three arrays."""
        held = self._minutes.get(minute)
        if held is None:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        if len(held[0]) > 1:
            held[:] = [[np.concatenate(parts)] for parts in held]
        return [parts[0] for parts in held]

    def _amend(self, clock, tick, site, value, replaces):
        minute = tick // MINUTE
        touched = [m for m in range(minute + 1, minute + REACH + 1) if m * MINUTE in self._revisions]
        before = self._rows(touched, site)
        if replaces:
            index, _, values = self._held(minute)
            self._minutes[minute][2] = [np.where(index == replaces, value, values)]
        else:
            self._entered += 1
            self._note(minute, np.array([self._entered]), np.array([site]), np.array([value]))
        after = self._rows(touched, site)
        self._plain.correct(minute, site, self._of(minute, site))
        same = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
        for m, unchanged in zip(touched, same, strict=True):
            if not unchanged:
                self._revisions[m * MINUTE] += 1
                for row, sign in ((after[touched.index(m)], 1), (before[touched.index(m)], -1)):
                    yield self._said(m, site, row, sign)

    def _said(self, minute, site, row, sign):
        there = len(row) > 0
        columns = [np.array([site] * there, np.int64), *(np.array([each] * there, np.float64) for each in row[:3])]
        columns.append(np.array(row[3:], np.int64))
        tick = minute * MINUTE
        bounds = np.array([0, int(there)])
        return Windows(np.array([tick]), bounds, [(c, None) for c in columns], self._revisions[tick], sign)

    def _of(self, minute, site):
        _, sites, values = self._held(minute)
        return values[sites == site]

    def _rows(self, minutes, site):
        """Lowest, highest, mean and number of a site in each of these windows, which follow one another; () for no group."""
        if not minutes:
            return []
        own = {m: self._of(m, site) for m in range(minutes[0] - REACH, minutes[-1])}
        rows = []
        for minute in minutes:
            values = np.concatenate([own[m] for m in range(minute - REACH, minute)])
            if not len(values):
                rows.append(())
                continue
            count = np.array([len(values)])
            mean = means(*(word.sum(keepdims=True) for word in split(values)), count)
            rows.append((values.min(), values.max(), mean[0], count[0]))
        return rows

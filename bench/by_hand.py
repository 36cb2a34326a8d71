"""A lower bound for a hundred queries with equal windows: numpy by hand, with the same answers for each query.

Common parts are computed once. A query gets arrays of its own, unless its answer is that of another. Joins have no such
program. Only `step` is timed.
"""

from dataclasses import replace

import numpy as np

from bench.answers import Windows
from bench.ceiling.codes import Codes
from bench.ceiling.w2_per_site import Ceiling
from bench.data import MINUTE

REACH = 10  # minutes


class Alike:
    """One text: the answer of one, to each."""

    def __init__(self, queries, one=Ceiling):
        self._queries, self._one = queries, one(None, None)

    def prepare(self, parts, last):
        return self._one.prepare(parts, last)

    def step(self, batch):
        return [replace(each, query=query) for each in self._one.step(batch) for query in range(1, self._queries + 1)]


class Lists:
    """Five lists, each under the HAVING of several queries: those that all groups pass get the columns themselves."""

    def __init__(self, queries):
        self._queries, self._one = queries, Ceiling(None, None)
        self._codes, self._minutes = Codes(), {}  # minute -> the sum of temp by code

    def prepare(self, parts, last):
        return self._one.prepare(parts, last), parts["road"].columns["temp"]

    def step(self, batch):
        (tick, site, vibration, last), temp = batch
        code, minute = self._codes.of(site), tick // MINUTE
        for each in range(int(minute.min()), int(minute.max()) + 1) if len(tick) else ():
            some = minute == each
            found = np.bincount(code[some], temp[some], len(self._codes)).astype(np.int64)
            before = self._minutes.get(each, np.empty(0, np.int64))
            found[: len(before)] += before
            self._minutes[each] = found
        said = []
        for windows in self._one.step((tick, site, vibration, last)):
            (site, _), *columns, (counts, _) = windows.columns
            low, high, mean = (values for values, _ in columns)
            temp = np.concatenate([self._temp(int(at) // MINUTE, site[begin:behind]) for at, begin, behind in
                                   zip(windows.tick, windows.bounds[:-1], windows.bounds[1:], strict=True)])  # fmt: skip
            self._minutes = {at: of for at, of in self._minutes.items() if at > last // MINUTE - REACH}
            lists = ((low,), (high,), (mean,), (counts,), (temp, counts))
            for over in range((self._queries + len(lists) - 1) // len(lists)):
                said += self._having(windows, site, lists, counts > over, 1 + over * len(lists))
        return said

    def _temp(self, minute, site):
        """The sums of the ten minutes before one."""
        found = np.zeros(len(self._codes), np.int64)
        for at in range(minute - REACH, minute):
            of = self._minutes.get(at, np.empty(0, np.int64))
            found[: len(of)] += of
        return found[self._codes.of(site)]

    def _having(self, windows, site, lists, passes, first):
        whole = passes.all()
        bounds = windows.bounds if whole else np.append(0, np.cumsum(passes))[windows.bounds]
        groups = site if whole else site[passes]
        for query, columns in enumerate(lists, first):
            if query <= self._queries:
                answered = [(groups, None), *((of if whole else of[passes], None) for of in columns)]
                yield Windows(windows.tick, bounds, answered, query=query)


class Filters:
    """Own filters: readings below all thresholds are dropped; a query selects among the readings of the window."""

    def __init__(self, queries):
        self._above = [60 + k / 10 for k in range(queries)]
        self._kept = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
        self._answered = -1

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["vibration"], last

    def step(self, batch):
        *columns, last = batch
        some = columns[2] > self._above[0]
        self._kept = [np.concatenate([kept, new[some]]) for kept, new in zip(self._kept, columns, strict=True)]
        first, self._answered = self._answered + 1, last // MINUTE
        tick, site, vibration = self._kept
        said = []
        for minute in range(first, self._answered + 1):
            begin, behind = np.searchsorted(tick, ((minute - REACH) * MINUTE, minute * MINUTE + 1))
            ours, values, at = site[begin:behind], vibration[begin:behind], np.array([minute * MINUTE])
            for query, above in enumerate(self._above, 1):
                passes = values > above
                found = ours[passes]
                answered = [(found, None), (values[passes], None)]
                said.append(Windows(at, np.array([0, len(found)]), answered, query=query))
        behind = int(np.searchsorted(tick, (self._answered - REACH + 1) * MINUTE))
        self._kept = [column[behind:] for column in self._kept]
        return said


BY_HAND = {"one text": Alike, "other lists": Lists, "other filters": Filters}

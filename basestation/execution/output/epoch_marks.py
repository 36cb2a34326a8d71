"""Marking: which marks of epochs are news to a query: those of new epochs, and those whose coverage is another now (12.3).

What was said of each epoch is remembered as a row of numbers: its coverage of every extent below, in the order in which
extents were first named; -1 for what was not told.
"""

from itertools import pairwise

import numpy as np

from basestation.execution.columns.change import NO_KEYS
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.streams.coverage import count_coverage
from basestation.updates.update import EpochMarks, coverage_of

_UNTOLD = -1


class EpochReporter:
    """The epochs of a stream that a query is told of: from its start on, and not beyond a limit."""

    def __init__(self, query, stream, start, limit, seen=None):
        """`seen`: the stream as the query sees it, if not all that take part in the one that takes steps see it so."""
        self._stream, self._seen, self._start, self._limit = stream, seen or stream, start, limit
        self._began, self._marking = False, EpochMarkTracker(query)

    def news(self):
        """[(EpochMarks, which of them are of new epochs)] of this step."""
        keys = self._stream.epochs() if self._began else self._stream.epochs_from(self._start)
        self._began = True
        if not len(keys):
            return []
        limit = NEVER if self._limit is None else self._limit
        if keys[:, 0].min() < self._start or keys[:, 0].max() > limit:
            keys = keys[(self._start <= keys[:, 0]) & (keys[:, 0] <= limit)]
        if not len(keys):
            return []
        return [told for told in self._marking.news(keys, self._seen.epoch_covers(keys)) if len(told[0])]

    def forget(self, before):
        """No epoch before a tick is told of again."""
        self._marking.forget(before)


class EpochMarkTracker:
    def __init__(self, query):
        self._query = query
        self._places = {}  # {extent: where its numbers stand in a row}
        self._start_with(NO_KEYS, np.empty((0, 0), np.int64))

    def _start_with(self, keys, rows):
        self._keys, self._rows = GrowableArray(keys), GrowableArray(rows)

    def news(self, keys, pairs):
        """(EpochMarks, which of them are of new epochs), of epochs that cover the same extents, in the order of `keys`.

        `pairs` say, for each part of the stream, which of the keys are epochs of it, and what those cover.
        """
        covered = count_coverage([cover for _, covers in pairs for cover in covers], len(keys))
        told = np.stack([ours for ours, _ in pairs], axis=1) if pairs else np.zeros((len(keys), 0), bool)
        edges = np.flatnonzero((told[1:] != told[:-1]).any(axis=1)) + 1
        for begin, behind in pairwise([0, *edges.tolist(), len(keys)]):
            which, ours = slice(begin, behind), told[begin]
            if ours.any():
                names = {cover.extent for (_, covers), our in zip(pairs, ours, strict=True) if our for cover in covers}
                yield self._marks(keys, which, {name: covered[name] for name in sorted(names)})

    def _marks(self, keys, which, covered):
        rows = self._rows_of(which, covered)
        news, new = self._compared(keys[which], rows)
        if news.all():
            return EpochMarks(self._query, keys[which, 0], coverage_of(covered, which)), new
        told = which.start + np.flatnonzero(news)
        return EpochMarks(self._query, keys[told, 0], coverage_of(covered, told)), new[news]

    def _rows_of(self, which, covered):
        for name, of in covered.items():
            if of and name not in self._places:
                self._places[name] = 2 * len(self._places)
                room = np.full((len(self._keys), 2), _UNTOLD)
                self._rows = GrowableArray(np.concatenate([self._rows.values, room], axis=1))
        rows = np.full((which.stop - which.start, 2 * len(self._places)), _UNTOLD)
        for name, of in covered.items():
            if of:
                place = self._places[name]
                rows[:, place], rows[:, place + 1] = of[0][which], of[1][which]
        return rows

    def _compared(self, keys, rows):
        """(which epochs are news, which are new), and they are remembered as they are now. No two keys are equal."""
        if _ascending(keys) and (not len(self._keys) or self._keys.values[-1].tolist() < keys[0].tolist()):
            self._keys.extend(keys)
            self._rows.extend(rows)
            new = np.ones(len(keys), bool)
            return new, new
        known = len(self._keys)
        both, all_rows = np.concatenate([self._keys.values, keys]), np.concatenate([self._rows.values, rows])
        order = np.lexsort((both[:, 1], both[:, 0]))  # of equal keys the known one stands first
        again = (both[order[1:]] == both[order[:-1]]).all(axis=1)
        news, new = (np.ones(len(keys), bool) for _ in range(2))
        now, before = order[1:][again] - known, order[:-1][again]
        new[now], news[now] = False, (rows[now] != all_rows[before]).any(axis=1)
        left = order[~np.append(again, False)]
        self._start_with(both[left], all_rows[left])
        return news, new

    def forget(self, before):
        """No epoch before a tick is told of again."""
        count = int(np.searchsorted(self._keys.values[:, 0], before))
        self._keys.drop(count)
        self._rows.drop(count)


def _ascending(keys):
    a, b = keys[:-1], keys[1:]
    later = a[:, 0] < b[:, 0]
    return later.all() or (later | ((a[:, 0] == b[:, 0]) & (a[:, 1] < b[:, 1]))).all()

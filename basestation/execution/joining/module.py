"""StateModule: half of a join (a SteM): tuples indexed by one key, and within equal keys by tick.

It indexes whatever has positions, ticks and values: the tuples of a stream (`Held`) or a kept node of a plan. What comes
is found when it is asked the next time; runs of the index are merged small ones first, so that a tuple is sorted a few
times only, and there are few runs to look into.
"""

from zlib import crc32

import numpy as np

from basestation.algebra.comparison import compare
from basestation.algebra.vector import by_identity
from basestation.execution.distinct import ranked
from basestation.execution.wins import ranges

_FEW = 512
"""A run with fewer positions than this is not worth looking into by itself."""
_NONE = np.empty(0, np.int64)
_MIX = np.uint64(0x9E3779B97F4A7C15)


class StateModule:
    """`source` is what is indexed; `key` are expressions as its `vectors` knows them, none for an index by tick alone."""

    def __init__(self, source, key=()):
        self.source, self.key = source, tuple(key)
        self._generation, self._seen, self._runs = source.generation, 0, []
        none = source.vectors(self.key, np.empty(0, np.int64))
        self._whole = len(none) == 1 and none[0].values.dtype == np.int64

    def build(self, tuples):
        self.source.build(tuples)

    def remove(self, idents):
        self.source.remove(idents)

    def evict(self, before):
        self.source.evict(before)

    def probe(self, keys, left, right):
        """(which probe, which position) of all that agree on the key and lie in the probe's range of ticks.

        `keys` has a Vector for each part of the key; a null agrees with nothing. Matches are in no particular order.
        """
        self._refresh()
        probing = np.arange(len(left))
        for vector in keys:
            if vector.valid is not None:
                probing = probing[vector.valid[probing]]
        code = hashed(keys, len(left))
        if self.key:  # neighbours are found where neighbours were found: that is in the caches
            probing = probing[np.argsort(code[probing], kind="stable")]
        code, left, right = code[probing], left[probing], right[probing]
        asked = [vector.take(probing) for vector in keys]
        if len(probing) * len(self._runs) > self.source.count:  # looking into each would cost more than making it one
            self._runs = [self._merged(self._runs)]
        found = [run.find(code, left, right) for run in self._runs]
        which = _together([w for w, _ in found])
        at = _together([p for _, p in found])
        if not self.source.all_live:
            living = self.source.living(at)
            which, at = which[living], at[living]
        if not self._exact(asked):
            same = np.ones(len(which), bool)
            for mine, theirs in zip(asked, self.source.vectors(self.key, at), strict=True):
                same &= compare("=", mine.take(which), theirs).true
            if not same.all():
                which, at = which[same], at[same]
        return probing[which], at

    def holds(self, left, right):
        """Which ranges of ticks hold a tuple, living or not; of an index by tick alone."""
        self._refresh()
        found = np.zeros(len(left), bool)
        for run in self._runs:
            found |= run.counts(hashed((), len(left)), left, right)[2] > 0
        return found

    def reaches(self, left, right):
        """How many tuples, living or not, lie in ranges of ticks; of an index by tick alone."""
        self._refresh()
        code = hashed((), len(left))
        return sum(int(run.counts(code, left, right)[2].sum()) for run in self._runs)

    def _exact(self, asked):
        """Whether equal hashes are equal keys: whole numbers stand for themselves."""
        return not self.key or (self._whole and asked[0].values.dtype == np.int64)

    def _refresh(self):
        source = self.source
        if source.generation != self._generation:
            self._generation, self._seen, self._runs = source.generation, 0, []
        if self._seen < source.count:
            new = np.arange(self._seen, source.count)
            self._seen = source.count
            self._runs.append(self._run(new))
            while len(self._runs) > 1 and (
                2 * len(self._runs[-1]) >= len(self._runs[-2]) or len(self._runs[-2]) < _FEW
            ):
                self._runs[-2:] = [self._merged(self._runs[-2:])]

    def _merged(self, runs):
        return runs[0] if len(runs) == 1 else self._run(np.concatenate([run.positions for run in runs]))

    def _run(self, positions):
        if not self.source.all_live:
            positions = positions[self.source.living(positions)]
        keys = self.source.vectors(self.key, positions)
        there = np.ones(len(positions), bool)
        for vector in keys:
            there &= vector.there
        if not there.all():
            positions, keys = positions[there], [vector.take(there) for vector in keys]
        if not keys:
            return TickRun(self.source.ticks(positions), positions)
        return Run(hashed(keys, len(positions)), self.source.ticks(positions), positions)


class Run:
    """Some positions, sorted by hash and tick. Both are held as ranks, so that one number stands for the two."""

    def __init__(self, code, ticks, positions):
        if (ticks[1:] < ticks[:-1]).any():
            order = np.argsort(ticks, kind="stable")
            code, ticks, positions = code[order], ticks[order], positions[order]
        order = np.argsort(code, kind="stable")
        self._ticks, when = ranked(ticks)
        self._codes, rank = ranked(code[order])
        self._sorted, self.positions = rank * len(self._ticks) + when[order], positions[order]

    def __len__(self):
        return len(self.positions)

    def counts(self, code, left, right):
        """For each probe that has the key of a position where its matches begin, and how many there are: (which probes, …)."""
        if not len(self.positions):
            return _NONE, _NONE, _NONE
        rank = np.minimum(np.searchsorted(self._codes, code), len(self._codes) - 1)
        which = np.flatnonzero(self._codes[rank] == code)
        base = rank[which] * len(self._ticks)
        first = np.searchsorted(self._sorted, base + np.searchsorted(self._ticks, left[which]))
        last = np.searchsorted(self._sorted, base + np.searchsorted(self._ticks, right[which], "right"))
        return which, first, np.maximum(last - first, 0)

    def find(self, code, left, right):
        which, first, counts = self.counts(code, left, right)
        return np.repeat(which, counts), self.positions[ranges(first, counts)]


class TickRun:
    """Some positions, sorted by tick alone."""

    def __init__(self, ticks, positions):
        if (ticks[1:] < ticks[:-1]).any():
            order = np.argsort(ticks, kind="stable")
            ticks, positions = ticks[order], positions[order]
        self._ticks, self.positions = ticks, positions

    def __len__(self):
        return len(self.positions)

    def counts(self, code, left, right):
        first = np.searchsorted(self._ticks, left)
        return np.arange(len(left)), first, np.maximum(np.searchsorted(self._ticks, right, "right") - first, 0)

    find = Run.find


def hashed(vectors, length):
    """A number for each row; where values are equal, an integer and a float too, so are the numbers."""
    code = None
    for vector in vectors:
        part = _whole(vector.values)
        if code is None:
            code = part
        else:
            code = (code ^ (code >> np.uint64(29))) * _MIX + part
    return np.zeros(length, np.uint64) if code is None else code


def _whole(values):
    """Integers as they are, floats that are whole as integers, others by their bits, strings by their check sums."""
    if values.dtype == np.int64:
        return values.view(np.uint64)
    if values.dtype == object:
        some, place = by_identity(values)
        return np.array([crc32(s.encode("utf-8", "surrogatepass")) for s in some], np.uint64)[place]
    whole = (np.trunc(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    return np.where(whole, np.where(whole, values, 0.0).astype(np.int64), values.view(np.int64)).view(np.uint64)


def _together(parts):
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)

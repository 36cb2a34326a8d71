"""StateModule: half of a join (a SteM): tuples indexed by one key, and within equal keys by tick.

It indexes whatever has positions, ticks and values: the tuples of a stream (`Held`) or a kept node of a plan. What comes
is found when it is asked the next time; runs of the index are merged small ones first, so that a tuple is put in order a
few times only, and there are few runs to look into. A key is looked up; only where it has several tuples are ticks searched.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from basestation.algebra.comparison import compare
from basestation.algebra.vector import by_identity
from basestation.execution.distinct import ranked, stable_order
from basestation.execution.grown import Grown
from basestation.execution.joining.codes import Codes
from basestation.execution.wins import ranges

_FEW = 512
"""A run with fewer positions than this is not worth looking into by itself."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Span:
    """A range of ticks for each probe: from left[first] to right[last]. Windows are fewer than probes, mostly."""

    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def __len__(self):
        return len(self.first)

    def take(self, which):
        return Span(self.left, self.right, self.first[which], self.last[which])

    def holds(self, ticks):
        """Where a tick lies in its range."""
        return (self.left[self.first] <= ticks) & (ticks <= self.right[self.last])

    def within(self, ticks):
        """Where the ticks in each range begin and end among some ascending ones."""
        if len(self.left) > len(self.first):
            left, right = self.left[self.first], self.right[self.last]
            return np.searchsorted(ticks, left), np.searchsorted(ticks, right, "right")
        return np.searchsorted(ticks, self.left)[self.first], np.searchsorted(ticks, self.right, "right")[self.last]


def spans(left, right):
    """A range of its own for each probe."""
    each = np.arange(len(left))
    return Span(left, right, each, each)


class StateModule:
    """`source` is what is indexed; `key` are expressions as its `vectors` knows them, none for an index by tick alone."""

    def __init__(self, source, key=()):
        self.source, self.key = source, tuple(key)
        self._begin()
        none = source.vectors(self.key, np.empty(0, np.int64))
        self._whole = len(none) == 1 and none[0].values.dtype == np.int64

    def _begin(self):
        self._generation, self._runs = self.source.generation, []
        self._codes, self._code = (
            Codes(),
            Grown(np.empty(0, np.int32)),
        )  # of each position; -1 where a part of the key is null

    def build(self, tuples):
        self.source.build(tuples)

    def remove(self, idents):
        self.source.remove(idents)

    def evict(self, before):
        self.source.evict(before)

    def probe(self, keys, span):
        """(which probe, which position) of all that agree on the key and lie in the probe's range of ticks.

        `keys` has a Vector for each part of the key; a null agrees with nothing. Matches are in no particular order.
        """
        self._refresh()
        if len(span) * len(self._runs) > self.source.count:  # looking into each would cost more than making it one
            self._runs = [self._merged(self._runs)]
        code = self._codes.of(hashed(keys)) if self.key else None
        for vector in keys:
            if vector.valid is not None:
                code = np.where(vector.valid, code, -1)
        found = [run.find(code, span) for run in self._runs]
        which = _together([w for w, _ in found])
        at = _together([p for _, p in found])
        if not self.source.all_live:
            living = self.source.living(at)
            which, at = which[living], at[living]
        if not self._exact(keys):
            same = np.ones(len(which), bool)
            for mine, theirs in zip(keys, self.source.vectors(self.key, at), strict=True):
                same &= compare("=", mine.take(which), theirs).true
            if not same.all():
                which, at = which[same], at[same]
        return which, at

    def count(self, span):
        """For each range how many tuples, living or not, lie in it; of an index by tick alone."""
        self._refresh()
        found = np.zeros(len(span), np.int64)
        for run in self._runs:
            found += run.counts(span)[1]
        return found

    def _exact(self, keys):
        """Whether equal hashes are equal keys: whole numbers stand for themselves."""
        return not self.key or (self._whole and keys[0].values.dtype == np.int64)

    def _refresh(self):
        source = self.source
        if source.generation != self._generation:
            self._begin()
        if len(self._code) < source.count:
            new = np.arange(len(self._code), source.count)
            self._code.extend(self._coded(new))
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
        ticks = self.source.ticks(positions)
        if (ticks[1:] < ticks[:-1]).any():
            order = stable_order(ticks)
            positions, ticks = positions[order], ticks[order]
        if not self.key:
            return TickRun(ticks, positions)
        code = self._code.values[positions]
        if (code < 0).any():
            there = code >= 0
            code, ticks, positions = code[there], ticks[there], positions[there]
        return Run(code.astype(np.int64), len(self._codes), ticks, positions)

    def _coded(self, positions):
        """The codes of what comes."""
        if not self.key:
            return np.zeros(len(positions), np.int32)
        keys = self.source.vectors(self.key, positions)
        there = np.ones(len(positions), bool)
        for vector in keys:
            there &= vector.there
        code = np.full(len(positions), -1, np.int32)
        code[there] = self._codes.add(hashed(keys)[there])
        return code


class Run:
    """Some positions by code, and those of one code by tick. `codes` of positions in the order of their ticks; `count` of all."""

    def __init__(self, codes, count, ticks, positions):
        order = stable_order(codes)
        sizes = np.bincount(codes, minlength=count)
        self.positions = positions[order]
        self._begins = np.zeros(count + 2, np.int64)  # behind the last there is one without positions
        np.cumsum(sizes, out=self._begins[1:-1])
        self._begins[-1] = len(positions)
        self._single = int(sizes.max(initial=0)) < 2
        if self._single:
            self._ticks = ticks[order]
        else:  # ranks instead of ticks, so that one number stands for code and tick
            self._ticks, rank = ranked(ticks)
            self._sorted = codes[order] * len(self._ticks) + rank[order]

    def __len__(self):
        return len(self.positions)

    def find(self, code, span):
        """(which probe, which position)."""
        last = len(self._begins) - 2
        code = np.minimum(code, last)
        first = self._begins[code]
        which = np.flatnonzero(self._begins[code + 1] > first)  # of -1 that is the beginning, and this the end
        if self._single:
            if len(which) < len(code):
                first, span = first[which], span.take(which)
            inside = span.holds(self._ticks[first])
            return (which, self.positions[first]) if inside.all() else (which[inside], self.positions[first[inside]])
        which = which[stable_order(code[which])]  # what was just looked at is in the caches
        low, high = span.take(which).within(self._ticks)
        base = code[which] * len(self._ticks)
        begin, behind = np.searchsorted(self._sorted, base + low), np.searchsorted(self._sorted, base + high)
        counts = np.zeros(len(code), np.int64)
        first[which], counts[which] = begin, np.maximum(behind - begin, 0)
        return np.repeat(np.arange(len(code)), counts), self.positions[ranges(first, counts)]


class TickRun:
    """Some positions by tick alone."""

    def __init__(self, ticks, positions):
        self._ticks, self.positions = ticks, positions

    def __len__(self):
        return len(self.positions)

    def counts(self, span):
        """Where the matches of each probe begin, and how many there are."""
        first, behind = span.within(self._ticks)
        return first, np.maximum(behind - first, 0)

    def find(self, code, span):
        first, counts = self.counts(span)
        return np.repeat(np.arange(len(span)), counts), self.positions[ranges(first, counts)]


def hashed(vectors):
    """A number for each row; where values are equal, an integer and a float too, so are the numbers."""
    code = None
    for vector in vectors:
        part = _whole(vector.values)
        code = part if code is None else (code ^ (code >> np.uint64(29))) * _MIX + part
    return code


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

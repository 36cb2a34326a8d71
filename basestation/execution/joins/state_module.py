"""StateModule: half of a join (a SteM): tuples indexed by one key, and within equal keys by tick.

It indexes whatever has positions, ticks and values: the tuples of a stream (`Held`) or a kept node of a plan. What comes
is found when it is asked the next time; runs of the index are merged small ones first, so that a tuple is put in order a
few times only, and there are few runs to look into.
"""

import numpy as np

from basestation.algebra.comparison import compare
from basestation.algebra.vector import cached_arange, unique_by_identity
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.joins.index_run import KeyRun, TickRun
from basestation.execution.joins.key_codes import KeyCodes, make_secrets

_FEW = 512
"""A run with fewer positions than this is not worth looking into by itself."""
_HALF = np.uint64(32)
_FIRST, _SECOND = make_secrets(2, "moteloom: parts of keys")


class StateModule:
    """`source` is what is indexed; `key` are expressions as its `vectors` knows them, none for an index by tick alone."""

    def __init__(self, source, key=()):
        self.source, self.key = source, tuple(key)
        self._codes = KeyCodes()
        self.begin()
        none = source.vectors(self.key, np.empty(0, np.int64))
        self._whole = len(none) > 0 and none[0].values.dtype == np.int64

    def begin(self):
        """All positions are new. Keys keep their numbers, as long as these are no more than the tuples."""
        self._generation, self._runs, self._seen = self.source.generation, [], 0
        if len(self._codes) > self.source.count:
            self._codes = KeyCodes()
        self._code = _no_codes()  # of each position; -1 where a part of the key is null

    def __getstate__(self):
        """Without the index: hashes hold within one process, so another one builds it from the source."""
        kept = {"source": self.source, "key": self.key, "_whole": self._whole}
        return kept | {"_generation": None, "_runs": [], "_seen": 0, "_codes": KeyCodes(), "_code": _no_codes()}

    @property
    def used(self):
        """Whether anything was looked up since it began."""
        return self._seen > 0

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
        code = self._codes.of(hash_keys(keys)) if self.key else None
        for vector in keys:
            if vector.valid is not None:
                code = np.where(vector.valid, code, -1)
        found = [run.find(code, span) for run in self._runs]
        which = _together([w for w, _ in found])
        at = _together([p for _, p in found])
        if not self.source.all_live:
            living = self.source.living(at)
            if not living.all():
                living = np.flatnonzero(living)
                which, at = which[living], at[living]
        doubtful = slice(1 if self._told(keys) else 0, None)
        if keys[doubtful]:
            same = np.ones(len(which), bool)
            for mine, theirs in zip(keys[doubtful], self.source.vectors(self.key[doubtful], at), strict=True):
                same &= compare("=", mine.take(which), theirs).is_true
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

    def _told(self, keys):
        """Whether the first parts of keys are equal where their hashes and all other parts are: whole numbers stand for themselves."""
        return self._whole and keys[0].values.dtype == np.int64

    def _refresh(self):
        source = self.source
        if source.generation != self._generation:
            self.begin()
        if self._seen < source.count:
            new, self._seen = slice(self._seen, source.count), source.count
            if self.key:
                self._code.extend(self._coded(new))
            self._runs.append(self._run(new))
            while len(self._runs) > 1 and (
                2 * len(self._runs[-1]) >= len(self._runs[-2]) or len(self._runs[-2]) < _FEW
            ):
                self._runs[-2:] = [self._merged(self._runs[-2:])]

    def _merged(self, runs):
        return runs[0] if len(runs) == 1 else self._run(np.concatenate([run.positions for run in runs]))

    def _run(self, positions):
        """A run of positions, or of all in a slice."""
        if not self.source.all_live:
            positions = _numbers(positions)
            positions = positions[self.source.living(positions)]
        ticks = self.source.ticks(positions)
        code = self._code.values[positions] if self.key else None
        positions = _numbers(positions)
        if (ticks[1:] < ticks[:-1]).any():
            order = stable_argsort(ticks)
            positions, ticks, code = positions[order], ticks[order], None if code is None else code[order]
        if code is None:
            return TickRun(ticks, positions)
        if (code < 0).any():
            there = code >= 0
            code, ticks, positions = code[there], ticks[there], positions[there]
        return KeyRun(code, len(self._codes), ticks, positions)

    def _coded(self, positions):
        """The codes of what comes."""
        keys = self.source.vectors(self.key, positions)
        if all(vector.valid is None for vector in keys):
            return self._codes.add(hash_keys(keys))
        there = np.logical_and.reduce([vector.validity for vector in keys])
        code = np.full(len(there), -1, np.int32)
        code[there] = self._codes.add(hash_keys(keys)[there])
        return code


def _no_codes():
    return GrowableArray(np.empty(0, np.int32))


def _numbers(positions):
    return (
        cached_arange(positions.stop - positions.start, positions.start) if isinstance(positions, slice) else positions
    )


def hash_keys(vectors):
    """A number for each row; where values are equal, an integer and a float too, so are the numbers.

    Where all parts but one are equal, those of that one are equal if the numbers are: each step can be undone. Secrets of
    the process mix all parts but the last, so that no stranger can choose keys that share a number. The last part is added
    as it is: rising times stay near to each other.
    """
    code = None
    for vector in vectors:
        part = _whole(vector.values)
        if code is None:
            code = part
        else:
            code = code * _FIRST
            code ^= code >> _HALF
            code *= _SECOND
            code += part
    return code


def _whole(values):
    """Integers as they are, floats that are whole as integers, others by their bits, strings by Python's seeded hash."""
    if values.dtype == np.int64:
        return values.view(np.uint64)
    if values.dtype == object:
        some, place = unique_by_identity(values)
        return np.array([hash(s) for s in some], np.int64).view(np.uint64)[place]
    whole = (np.trunc(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    bits = values.view(np.int64)
    bits = bits ^ (bits >> 32)  # of short ones only the first half says anything
    return np.where(whole, np.where(whole, values, 0.0).astype(np.int64), bits).view(np.uint64)


def _together(parts):
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)

"""State module: half of a join (a SteM of TelegraphCQ): tuples indexed by one key, and within equal keys by tick.

It indexes whatever has positions, ticks and values: a TupleStore, or a materialized node of a plan. New tuples are indexed
with the next probe. Runs of the index are merged as in an LSM tree, small ones first: each tuple is sorted a few times only,
and there are few runs to search.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.comparison import compare
from basestation.algebra.expression import Expression
from basestation.algebra.vector import Vector, cached_arange, unique_by_identity
from basestation.execution import thresholds
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.joins.index_run import KeyRun, Matches, TickRun
from basestation.execution.joins.key_codes import CodeArray, HashArray, KeyCodes, make_secrets
from basestation.execution.joins.probe_span import ProbeSpan

_HALF = np.uint64(32)
_FIRST, _SECOND = make_secrets(2, "moteloom: parts of keys")

KeyPart = Expression | int | tuple[int, Expression | int]
"""A part of a key: an expression over held columns or the id of one; of a materialized node, with the input that has it."""


class IndexedSource(Protocol):
    """The source of an index: tuples at positions 0 to `count` - 1, which stay until `generation` changes."""

    @property
    def generation(self) -> int:
        """Another number after positions have changed."""

    @property
    def count(self) -> int:
        """The number of positions."""

    @property
    def all_live(self) -> bool:
        """Whether no tuple was removed."""

    def live(self, positions: IntArray | slice) -> BoolArray:
        """Return whether the tuples at positions were not removed."""

    def ticks(self, positions: IntArray | slice) -> IntArray:
        """Return the ticks of the tuples at positions."""

    def vectors(self, key: Sequence[KeyPart], positions: IntArray | slice) -> list[Vector]:
        """Return the values of the parts of a key."""


class StateModule:
    """An index over a source; without `key` by tick alone."""

    def __init__(self, source: IndexedSource, key: Sequence[KeyPart] = ()) -> None:
        self.source, self.key = source, tuple(key)
        self._codes = KeyCodes()
        self.begin()
        none = source.vectors(self.key, np.empty(0, np.int64))
        self._has_integer = len(none) > 0 and none[0].values.dtype == np.int64

    def begin(self) -> None:
        """Index all positions anew. Keys keep their codes, as long as these are no more than the tuples."""
        self._generation: int | None = self.source.generation
        self._runs: list[KeyRun | TickRun] = []
        self._seen = 0  # positions that are indexed
        if len(self._codes) > self.source.count:
            self._codes = KeyCodes()
        self._code = GrowableArray(np.empty(0, np.int32))  # by position; -1 where a part of the key is null

    def __getstate__(self) -> dict[str, Any]:
        """Without the index: hashes hold within one process, so another one builds it from the source."""
        kept = {"source": self.source, "key": self.key, "_has_integer": self._has_integer}
        no_codes = GrowableArray(np.empty(0, np.int32))
        return kept | {"_generation": None, "_runs": [], "_seen": 0, "_codes": KeyCodes(), "_code": no_codes}

    @property
    def is_used(self) -> bool:
        """Whether it was probed since it began."""
        return self._seen > 0

    def probe(self, keys: Sequence[Vector], span: ProbeSpan) -> Matches:
        """(which probe, which position) of all tuples that agree on the key and are in the probe's range of ticks.

        `keys` has a column for each part of the key; null agrees with nothing. Matches are in no particular order.
        """
        self._refresh()
        if len(span) * len(self._runs) > self.source.count:  # searching each run would cost more than merging them
            self._runs = [self._merge(self._runs)]
        code = self._codes.of(hash_keys(keys)) if self.key else None
        for vector in keys:
            if vector.valid is not None and code is not None:
                code = np.where(vector.valid, code, -1)
        found = [_find(run, code, span) for run in self._runs]
        which = _concatenate([probes for probes, _ in found])
        at = _concatenate([positions for _, positions in found])
        if not self.source.all_live:
            live = self.source.live(at)
            if not live.all():
                kept = np.flatnonzero(live)
                which, at = which[kept], at[kept]
        unsure = slice(1 if self._is_told_by_hash(keys) else 0, None)
        if keys[unsure]:
            same = np.ones(len(which), bool)
            for mine, theirs in zip(keys[unsure], self.source.vectors(self.key[unsure], at), strict=True):
                same &= compare("=", mine.take(which), theirs).is_true
            if not same.all():
                which, at = which[same], at[same]
        return which, at

    def count(self, span: ProbeSpan) -> IntArray:
        """For each range how many tuples, removed ones too, are in it; of an index by tick alone."""
        self._refresh()
        found = np.zeros(len(span), np.int64)
        for run in self._runs:
            if isinstance(run, TickRun):
                found += run.counts(span)[1]
        return found

    def _is_told_by_hash(self, keys: Sequence[Vector]) -> bool:
        """Whether first parts are equal if the hashes and all other parts are: integers are hashed one to one."""
        return self._has_integer and keys[0].values.dtype == np.int64

    def _refresh(self) -> None:
        """Index new positions."""
        source = self.source
        if source.generation != self._generation:
            self.begin()
        if self._seen < source.count:
            new, self._seen = slice(self._seen, source.count), source.count
            if self.key:
                self._code.extend(self._encode(new))
            self._runs.append(self._make_run(new))
            while len(self._runs) > 1 and (
                2 * len(self._runs[-1]) >= len(self._runs[-2]) or len(self._runs[-2]) < thresholds.SMALL_RUN
            ):
                self._runs[-2:] = [self._merge(self._runs[-2:])]

    def _merge(self, runs: list[KeyRun | TickRun]) -> KeyRun | TickRun:
        return runs[0] if len(runs) == 1 else self._make_run(np.concatenate([run.positions for run in runs]))

    def _make_run(self, positions: IntArray | slice) -> KeyRun | TickRun:
        if not self.source.all_live:
            positions = _as_array(positions)
            positions = positions[self.source.live(positions)]
        ticks = self.source.ticks(positions)
        code = self._code.values[positions] if self.key else None
        positions = _as_array(positions)
        if (ticks[1:] < ticks[:-1]).any():
            order = stable_argsort(ticks)
            positions, ticks, code = positions[order], ticks[order], None if code is None else code[order]
        if code is None:
            return TickRun(ticks, positions)
        if (code < 0).any():
            valid = code >= 0
            code, ticks, positions = code[valid], ticks[valid], positions[valid]
        return KeyRun(code, len(self._codes), ticks, positions)

    def _encode(self, positions: slice) -> CodeArray:
        """The codes of new positions."""
        keys = self.source.vectors(self.key, positions)
        if all(vector.valid is None for vector in keys):
            return self._codes.add(hash_keys(keys))
        valid = np.logical_and.reduce([vector.validity for vector in keys])
        code = np.full(len(valid), -1, np.int32)
        code[valid] = self._codes.add(hash_keys(keys)[valid])
        return code


def _find(run: KeyRun | TickRun, code: CodeArray | None, span: ProbeSpan) -> Matches:
    if isinstance(run, TickRun) or code is None:
        return run.find(code, span)  # type: ignore[arg-type]  # without codes all runs are TickRuns
    return run.find(code, span)


def _as_array(positions: IntArray | slice) -> IntArray:
    return (
        cached_arange(positions.stop - positions.start, positions.start) if isinstance(positions, slice) else positions
    )


def hash_keys(vectors: Sequence[Vector]) -> HashArray:
    """A hash for each row. Equal values have equal hashes, an integer and a float too.

    If all parts but one are equal, the hashes are equal exactly if that part is: each step can be undone. Secrets of the
    process mix all parts but the last, so that no stranger can choose keys that share a hash. The last part is added as it
    is: rising times stay near to each other.
    """
    code = _hash_values(vectors[0].values)
    for vector in vectors[1:]:
        code = code * _FIRST
        code ^= code >> _HALF
        code *= _SECOND
        code += _hash_values(vector.values)
    return code


def _hash_values(values: AnyArray) -> HashArray:
    """Integers as they are, whole floats as integers, other floats by their bits, strings by Python's seeded hash."""
    if values.dtype == np.int64:
        integers: HashArray = values.view(np.uint64)
        return integers
    if values.dtype == object:
        distinct, place = unique_by_identity(values)
        return np.array([hash(text) for text in distinct], np.int64).view(np.uint64)[place]
    whole = (np.trunc(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    bits = values.view(np.int64)
    bits = bits ^ (bits >> 32)  # the low half of a short fraction is 0
    return np.where(whole, np.where(whole, values, 0.0).astype(np.int64), bits).view(np.uint64)


def _concatenate(parts: list[IntArray]) -> IntArray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)

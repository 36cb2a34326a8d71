"""Tuples: the tuples of a stream as columns, with the tags that the engine needs of each.

Columns often have equal content: a tuple that comes on time arrives at its tick, and outside of unions every `part` is 0. So one array
may serve as several columns, and a stride-0 array may stand for one repeated value. The functions here keep both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.dictionary_vector import DictionaryVector, concatenate_encoded
from basestation.algebra.record import record
from basestation.algebra.vector import Selection, Vector, all_true, as_positions, take_at
from basestation.execution import thresholds
from innet.aggregates.identity_memo import IdentityMemo

_SYSTEM = ("ident", "tick", "arrival", "part", "rank", "place", "site", "append")


@record
class Tuples:
    """Tuples as columns of equal length.

    `ident` identifies a tuple for life, whatever becomes of its values. A tuple enters its stream when the watermark reaches its
    `arrival`, in the order of (arrival, part, rank, place) (semantics 1.5); `part` is the number of the stream in a union. FIRST
    and LAST order tuples of a sensed extent by `site` (semantics 10.5). `append` marks tuples that belong to windows by their
    arrival as well (semantics 3.6). `columns` has values by column id, or by name inside an intake; scaled attributes are
    stored as integer multiples.
    """

    ident: IntArray
    tick: IntArray
    arrival: IntArray
    part: IntArray
    rank: IntArray
    place: IntArray
    site: IntArray
    append: BoolArray
    columns: Mapping[Any, Vector]

    def __len__(self) -> int:
        return len(self.ident)

    def take(self, which: Selection) -> "Tuples":
        """Return the tuples at positions, in a slice, or under a mask."""
        if not len(self.ident) or all_true(which):
            return self
        positions = as_positions(which)
        made: dict[int, AnyArray] = {}

        def of(array: AnyArray) -> AnyArray:
            found = made.get(id(array))
            if found is None:
                found = made[id(array)] = take_at(array, positions)
            return found

        columns = {}
        for id_, vector in self.columns.items():
            columns[id_] = Vector(of(vector.values), None if vector.valid is None else of(vector.valid))
        return Tuples(
            of(self.ident), of(self.tick), of(self.arrival), of(self.part),
            of(self.rank), of(self.place), of(self.site), of(self.append), columns,
        )  # fmt: skip

    def with_columns(self, columns: Mapping[Any, Vector]) -> "Tuples":
        """Return the same tuples with other columns."""
        return Tuples(
            self.ident, self.tick, self.arrival, self.part, self.rank, self.place, self.site, self.append, columns
        )

    def in_order(self) -> "Tuples":
        """Return the tuples in the order in which they enter."""
        later = self.arrival[1:] > self.arrival[:-1]
        if all_true(later):
            return self
        if self.part.strides == self.rank.strides == (0,):  # constant: the place decides between equal arrivals
            together = (self.arrival[1:] == self.arrival[:-1]) & (self.place[1:] > self.place[:-1])
            if (later | together).all():
                return self
        return self.take(np.lexsort((self.place, self.rank, self.part, self.arrival)))


def empty_like(like: Tuples) -> Tuples:
    """Return no tuples, with the same columns."""
    return like.take(slice(0, 0))


def partition(tuples: Tuples, mask: BoolArray) -> tuple[Tuples, Tuples]:
    """Return (the tuples under a mask, the other ones). Nothing is copied if the former all stand before the latter."""
    count = np.count_nonzero(mask)
    if mask[:count].all():
        return tuples.take(slice(0, count)), tuples.take(slice(count, None))
    return tuples.take(mask), tuples.take(~mask)


def concatenate_tuples(parts: Sequence[Tuples]) -> Tuples:
    """Concatenate at least one part; all parts have the same columns."""
    parts = [part for part in parts if len(part)] or parts[:1]
    return parts[0] if len(parts) == 1 else _concatenate_shared(parts)


def concatenate_vectors(vectors: Sequence[Vector]) -> Vector:
    """Concatenate at least one Vector."""
    if isinstance(vectors[0], DictionaryVector) and (encoded := concatenate_encoded(vectors)) is not None:
        return encoded
    values = _concatenate(*(v.values for v in vectors))
    if all(v.valid is None for v in vectors):
        return Vector(values)
    return Vector(values, np.concatenate([v.validity for v in vectors]))


def _concatenate(*arrays: AnyArray) -> AnyArray:
    filled = [array for array in arrays if len(array)] or arrays[:1]
    if len(filled) == 1:
        return filled[0]
    if all(array.strides == (0,) for array in filled) and len({array[0] for array in filled}) == 1:
        return np.broadcast_to(filled[0][:1], sum(map(len, filled)))
    return np.concatenate(filled)


def _concatenate_shared(parts: Sequence[Tuples]) -> Tuples:
    """Concatenate parts; columns that share an array in each of them are concatenated once, and share the result."""
    once = IdentityMemo()

    def of(arrays: Sequence[AnyArray]) -> AnyArray:
        return once(_concatenate, *arrays)

    system = [of([getattr(part, name) for part in parts]) for name in _SYSTEM]
    columns = {}
    for id_ in parts[0].columns:
        vectors = [part.columns[id_] for part in parts]
        masked = any(vector.valid is not None for vector in vectors)
        valid = of([v.validity if v.valid is None else v.valid for v in vectors]) if masked else None
        columns[id_] = Vector(of([vector.values for vector in vectors]), valid)
    ident, tick, arrival, part, rank, place, site, append = system
    return Tuples(ident, tick, arrival, part, rank, place, site, append, columns)


def null_safe_equal(a: Vector, b: Vector) -> BoolArray:
    """Return a mask of the entries in which two Vectors agree; null equals null."""
    there = a.validity & b.validity
    return np.asarray((there & (a.values == b.values)) | (~a.validity & ~b.validity))


def same_values(one: Tuples, other: Tuples) -> BoolArray:
    """Return a mask of the positions at which all columns agree; null equals null."""
    found = np.ones(len(one), bool)
    for name, vector in one.columns.items():
        found &= null_safe_equal(vector, other.columns[name])
    return found


class TupleBuffer:
    """Tuples that are appended and dropped, and read as one Tuples.

    Appended parts are concatenated when they are read, or when there are many.
    """

    def __init__(self) -> None:
        self._parts: list[Tuples] = []
        self._count = 0
        self._none: Tuples | None = None  # no tuples, kept once all were dropped

    def add(self, tuples: Tuples) -> None:
        """Append tuples."""
        if len(tuples):
            self._parts.append(tuples)
            self._count += len(tuples)
            if len(self._parts) > thresholds.BUFFER_PARTS:
                self._parts = [self._parts[0], concatenate_tuples(self._parts[1:])]

    def __len__(self) -> int:
        return self._count

    def least(self, name: str, otherwise: int) -> int:
        """Return the least value of a tag; `otherwise` if there are no tuples."""
        return min((int(getattr(part, name).min()) for part in self._scannable() if len(part)), default=otherwise)

    def forget(self, name: str, before: int) -> None:
        """Drop the tuples in which a tag is less than `before`; the memory of the parts that shrink is freed."""
        kept = []
        for part in self._scannable():
            stay = getattr(part, name) >= before
            if stay.any():
                kept.append(part.take(stay))
        if self._parts and self._none is None:
            self._none = empty_like(self._parts[0])
        self._parts = kept or ([] if self._none is None else [self._none])
        self._count = sum(map(len, self._parts))

    def _scannable(self) -> list[Tuples]:
        """Return the parts; concatenate them first if there are too many to look at each."""
        if len(self._parts) > thresholds.BUFFER_SCAN_PARTS:
            self._parts = [concatenate_tuples(self._parts)]
        return self._parts

    def all(self) -> Tuples | None:
        """Return all tuples; None if there never was one."""
        if len(self._parts) > 1:
            self._parts = [concatenate_tuples(self._parts)]
        return self._parts[0] if self._parts else None

    def keep(self, mask: BoolArray) -> None:
        """Drop the tuples outside a mask over all of them."""
        if not mask.all():
            held = concatenate_tuples(self._parts)
            if self._none is None:
                self._none = empty_like(held)
            self._parts = [held.take(mask) if mask.any() else self._none]
            self._count = len(self._parts[0])

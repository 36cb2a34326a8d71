"""Tuples: the tagged tuples of a stream as columns, with all that the engine has to know of each.

`ident` says who it is for as long as it lives, whatever becomes of its values. It enters its stream when the watermark
reaches its `arrival`, in the order of (arrival, part, rank, place) (SEMANTICS 1.5; `part` is that of a union); `site` is what FIRST and LAST go by on a
sensed extent (10.5); `append` marks tuples that belong to windows by their arrival too (3.6). `columns` maps column ids to Vectors; scaled attributes are held as whole multiples.

Much of that is often the same: the arrival of what is on time is its tick, and no part of a union is the first. So one
array may stand for several columns, and one value for a whole column; what is made of Tuples here keeps it so.
"""

import numpy as np

from basestation.algebra.dictionary_vector import DictionaryVector, concatenate_encoded
from basestation.algebra.record import record
from basestation.algebra.vector import Vector, all_true, as_positions, take_at
from innet.aggregates.state import IdentityMemo

_SYSTEM = ("ident", "tick", "arrival", "part", "rank", "place", "site", "append")


@record
class Tuples:
    ident: np.ndarray
    tick: np.ndarray
    arrival: np.ndarray
    part: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    site: np.ndarray
    append: np.ndarray
    columns: dict[int, Vector]

    def __len__(self):
        return len(self.ident)

    def take(self, which):
        """Those at positions, or under a mask."""
        if not len(self.ident) or all_true(which):
            return self
        which, made = as_positions(which), {}

        def of(array):
            found = made.get(id(array))
            if found is None:
                found = made[id(array)] = take_at(array, which)
            return found

        columns = {}
        for id_, vector in self.columns.items():
            columns[id_] = Vector(of(vector.values), None if vector.valid is None else of(vector.valid))
        return Tuples(
            of(self.ident), of(self.tick), of(self.arrival), of(self.part),
            of(self.rank), of(self.place), of(self.site), of(self.append), columns,
        )  # fmt: skip

    def with_columns(self, columns):
        return Tuples(*(getattr(self, name) for name in _SYSTEM), columns)

    def in_order(self):
        """In the order of entry."""
        later = self.arrival[1:] > self.arrival[:-1]
        if all_true(later):
            return self
        if self.part.strides == self.rank.strides == (0,):  # then the place decides between equal arrivals
            together = (self.arrival[1:] == self.arrival[:-1]) & (self.place[1:] > self.place[:-1])
            if (later | together).all():
                return self
        return self.take(np.lexsort((self.place, self.rank, self.part, self.arrival)))


def empty_like(like):
    """None of them, with the same columns."""
    return like.take(slice(0, 0))


def partition(tuples, mask):
    """(those under a mask, the others). Where they follow each other there are no copies."""
    count = np.count_nonzero(mask)
    if mask[:count].all():
        return tuples.take(slice(0, count)), tuples.take(slice(count, None))
    return tuples.take(mask), tuples.take(~mask)


def concatenate_tuples(parts):
    """All tuples of all parts, one after another; the parts have the same columns; at least one."""
    parts = [part for part in parts if len(part)] or parts[:1]
    return parts[0] if len(parts) == 1 else _each_once(parts)


def concatenate_vectors(vectors):
    """One Vector of several."""
    if isinstance(vectors[0], DictionaryVector) and (placed := concatenate_encoded(vectors)) is not None:
        return placed
    values = _one_after_another(*(v.values for v in vectors))
    if all(v.valid is None for v in vectors):
        return Vector(values)
    return Vector(values, np.concatenate([v.validity for v in vectors]))


def _one_after_another(*arrays):
    arrays = [array for array in arrays if len(array)] or arrays[:1]
    if len(arrays) == 1:
        return arrays[0]
    if all(array.strides == (0,) for array in arrays) and len({array[0] for array in arrays}) == 1:
        return np.broadcast_to(arrays[0][:1], sum(map(len, arrays)))
    return np.concatenate(arrays)


def _each_once(parts):
    """The tuples of all parts; where columns are one array in each of them, they are put together once."""
    once = IdentityMemo()

    def of(arrays):
        return once(_one_after_another, *arrays)

    system = {name: of([getattr(part, name) for part in parts]) for name in _SYSTEM}
    columns = {}
    for id_ in parts[0].columns:
        vectors = [part.columns[id_] for part in parts]
        masked = any(vector.valid is not None for vector in vectors)
        valid = (
            of([vector.validity if vector.valid is None else vector.valid for vector in vectors]) if masked else None
        )
        columns[id_] = Vector(of([vector.values for vector in vectors]), valid)
    return Tuples(**system, columns=columns)


def null_safe_equal(a, b):
    """Where two Vectors agree, null with null."""
    there = a.validity & b.validity
    return (there & (a.values == b.values)) | (~a.validity & ~b.validity)


_SEVERAL = 64
_MANY = 1024  # parts are put together, but for the first, which may be long


class TupleBuffer:
    """Tuples that are added at the end and dropped, as one Tuples whenever it is looked at.

    Additions are kept as they come, and put together when they are looked at or have become many.
    """

    def __init__(self):
        self._parts, self._count = [], 0
        self._none = None  # no tuples, as soon as all were dropped once

    def add(self, tuples):
        if len(tuples):
            self._parts.append(tuples)
            self._count += len(tuples)
            if len(self._parts) > _MANY:
                self._parts = [self._parts[0], concatenate_tuples(self._parts[1:])]

    def __len__(self):
        return self._count

    def least(self, name, otherwise):
        """The least value of one of the system's columns; of no tuples something else."""
        return min((int(getattr(part, name).min()) for part in self._few() if len(part)), default=otherwise)

    def forget(self, name, before):
        """Drop those in which one of the system's columns is below a value; what stays of a part is put into arrays of its own."""
        kept = []
        for part in self._few():
            stay = getattr(part, name) >= before
            if stay.any():
                kept.append(part.take(stay))
        if self._parts and self._none is None:
            self._none = empty_like(self._parts[0])
        self._parts = kept or [self._none] * bool(self._parts)
        self._count = sum(map(len, self._parts))

    def _few(self):
        """The parts, so many at the most that each may be looked at."""
        if len(self._parts) > _SEVERAL:
            self._parts = [concatenate_tuples(self._parts)]
        return self._parts

    def all(self):
        """All of them; None where there never were any."""
        if len(self._parts) > 1:
            self._parts = [concatenate_tuples(self._parts)]
        return self._parts[0] if self._parts else None

    def keep(self, mask):
        """Drop those outside a mask over all of them."""
        if not mask.all():
            held = self.all()
            if self._none is None:
                self._none = empty_like(held)
            self._parts = [held.take(mask) if mask.any() else self._none]
            self._count = len(self._parts[0])

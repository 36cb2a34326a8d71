"""Tuples: the tagged tuples of a stream as columns, with all that the engine has to know of each.

`ident` says who it is for as long as it lives, whatever becomes of its values. It enters its stream when the watermark
reaches its `arrival`, in the order of (arrival, part, rank, place) (SEMANTICS 1.5; `part` is that of a union); `site` is what FIRST and LAST go by on a
sensed extent (10.5); `append` marks tuples that belong to windows by their arrival too (3.6). `columns` maps column ids to Vectors; scaled attributes are held as whole multiples.
"""

from dataclasses import dataclass, replace

import numpy as np

from basestation.algebra.vector import Vector

_SYSTEM = ("ident", "tick", "arrival", "part", "rank", "place", "site", "append")


@dataclass(frozen=True, slots=True)
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
        if everything(which):
            return self
        system = {name: getattr(self, name)[which] for name in _SYSTEM}
        return Tuples(**system, columns={id: vector.take(which) for id, vector in self.columns.items()})

    def with_columns(self, columns):
        return replace(self, columns=columns)

    def in_order(self):
        """In the order of entry."""
        if (self.arrival[1:] > self.arrival[:-1]).all():
            return self
        return self.take(np.lexsort((self.place, self.rank, self.part, self.arrival)))


def everything(which):
    """Whether a selection is a mask that leaves nothing out: then no copy is needed."""
    return isinstance(which, np.ndarray) and which.dtype == bool and which.all()


def no_tuples(like):
    """None of them, with the same columns."""
    return like.take(slice(0, 0))


def joined(parts):
    """All tuples of all parts, one after another; the parts have the same columns; at least one."""
    if len(parts) == 1:
        return parts[0]
    system = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _SYSTEM}
    columns = {id: concatenated([p.columns[id] for p in parts]) for id in parts[0].columns}
    return Tuples(**system, columns=columns)


def concatenated(vectors):
    """One Vector of several."""
    values = np.concatenate([v.values for v in vectors])
    if all(v.valid is None for v in vectors):
        return Vector(values)
    return Vector(values, np.concatenate([v.there for v in vectors]))


def equal(a, b):
    """Where two Vectors agree, null with null."""
    there = a.there & b.there
    return (there & (a.values == b.values)) | (~a.there & ~b.there)


_LARGE = 2**14  # parts of so many tuples stay apart until all are looked at


class Growing:
    """Tuples that are added at the end and dropped, as one Tuples whenever it is looked at.

    Additions are kept as they come and put together when they are looked at, small ones first, so that adding a tuple
    does not copy all that are there.
    """

    def __init__(self):
        self._parts = []

    def add(self, tuples):
        if len(tuples):
            self._parts.append(tuples)
            while len(self._parts) > 1 and len(self._parts[-2]) <= min(2 * len(self._parts[-1]), _LARGE):
                self._parts[-2:] = [joined(self._parts[-2:])]

    def all(self):
        """All of them; None where there never were any."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return self._parts[0] if self._parts else None

    def keep(self, mask):
        """Drop those outside a mask over all of them."""
        if not mask.all():
            self._parts = [self.all().take(mask)]

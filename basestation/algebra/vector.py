"""Vector: a column of values as they are computed with: a numpy array and which of its entries are there.

Integers and times are int64, floats float64, strings an object array. An entry that is missing (null) has its bit off in
`valid`; None stands for all there, so columns without nulls cost nothing extra. Truths are a Vector of bool whose
missing entries are *unknown* (SEMANTICS 5.1).
"""

from functools import lru_cache

import numpy as np

from acquisition.schema import Type
from basestation.algebra.record import record


@record
class Vector:
    values: np.ndarray
    valid: np.ndarray | None = None

    def __len__(self):
        return len(self.values)

    @property
    def validity(self):
        """The mask of entries that are there, made if need be."""
        return np.ones(len(self.values), bool) if self.valid is None else self.valid

    @property
    def is_true(self):
        """Of truths: where the predicate is true (neither false nor unknown)."""
        return self.values if self.valid is None else self.values & self.valid

    def take(self, which):
        """The entries at positions, in a slice, or under a mask."""
        which = as_positions(which)
        return Vector(take_at(self.values, which), None if self.valid is None else take_at(self.valid, which))

    def where(self, mask):
        """The same entries, those outside the mask missing as well."""
        return Vector(self.values, mask if self.valid is None else self.valid & mask)

    def to_list(self):
        """Python values, None where missing."""
        values = self.values.tolist()
        if self.valid is None:
            return values
        return [v if there else None for v, there in zip(values, self.valid.tolist(), strict=True)]


def as_positions(which):
    """A selection as positions where it is a mask: they are found once, however many arrays are taken from."""
    return np.flatnonzero(which) if isinstance(which, np.ndarray) and which.dtype == bool else which


def all_true(which):
    """Whether a selection is a mask that leaves nothing out: then no copy is needed."""
    if not isinstance(which, np.ndarray) or which.dtype != bool:
        return False
    if which.strides == (0,):  # one for all
        return not len(which) or bool(which[0])
    return np.count_nonzero(which) == len(which)


def any_true(mask):
    """Whether a mask holds anywhere."""
    return bool(mask[0]) if mask.strides == (0,) and len(mask) else np.count_nonzero(mask) > 0


def same_array(a, b):
    """Whether two arrays are one: the same memory, read in the same way."""
    if a is b:
        return True
    mine, other = a.__array_interface__, b.__array_interface__
    return mine["data"] == other["data"] and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype


def take_at(array, which):
    """The entries of an array at places. Of one value that stands for many (`constant`) no copies are made."""
    if isinstance(which, slice):
        return array[which]
    if array.strides == (0,):
        return array[: len(which)] if len(which) <= len(array) else np.broadcast_to(array[:1], len(which))
    return array.take(which, 0)


def constant(value, length):
    """An array, not to be written to, in which one value stands for all."""
    return _endless(value, type(value))[:length]


@lru_cache(maxsize=64)
def _endless(value, type_):
    return np.broadcast_to(np.array(value, object if type_ is str else None), 2**40)


_ROW = np.arange(2**16)
_ROW.flags.writeable = False


def cached_arange(count, first=0):
    """The integers first, first + 1, …, so many, not to be written to. Those that are there are added to sooner than new ones counted."""
    if count > len(_ROW):
        return np.arange(first, first + count)
    return _ROW[:count] + first if first else _ROW[:count]


_MANY = 2**12


def unique_by_identity(objects):
    """(some objects, and for each of the given ones its place among them), so that one that stands often is looked at once.

    Strings that come out of tables, or were taken from one batch, are often the same object; equal ones need not be.
    """
    if not len(objects):
        return [], np.empty(0, np.int64)
    identities = np.frombuffer(np.ascontiguousarray(objects), np.intp)
    if len(objects) > _MANY:  # then few of them are different, mostly, and have a slot each
        slot = (identities >> 4).astype(np.uint16)  # objects lie at multiples of sixteen
        at = np.full(2**16, -1)
        at[slot] = np.arange(len(objects))
        if (identities[at[slot]] == identities).all():
            taken = np.flatnonzero(at >= 0)
            some = objects[at[taken]]
            at[taken] = np.arange(len(taken))
            return some.tolist(), at[slot]
    _, first, place = np.unique(identities, return_index=True, return_inverse=True)
    return objects[first].tolist(), place


def dtype_of(type_):
    """The numpy type that holds a type of the language."""
    if type_ is Type.STRING:
        return np.dtype(object)
    return np.dtype(np.float64) if type_ is Type.FLOAT else np.dtype(np.int64)


def both_valid(a, b):
    """The mask of where both are there; None for everywhere."""
    if a.valid is None:
        return b.valid
    return a.valid if b.valid is None else a.valid & b.valid


def vector_of(items, type_):
    """A Vector of Python values, None where missing."""
    dtype = dtype_of(type_)
    valid = np.fromiter((item is not None for item in items), bool, len(items))
    blank = "" if type_ is Type.STRING else 0
    values = np.empty(len(items), dtype)
    values[:] = [blank if item is None else item for item in items]
    return Vector(values, None if valid.all() else valid)


def null_vector(length, type_):
    """A Vector of nulls."""
    values = np.full(length, "", object) if type_ is Type.STRING else np.zeros(length, dtype_of(type_))
    return Vector(values, np.zeros(length, bool))


def constant_vector(value, type_, length):
    """A constant as a Vector."""
    if value is None:
        return null_vector(length, type_ or Type.INTEGER)
    return Vector(constant(float(value) if type_ is Type.FLOAT else value, length))

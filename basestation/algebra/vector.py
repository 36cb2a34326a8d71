"""Vector: a column of values during computation: a numpy array, and a mask of the entries that are not null.

Integers and times are int64, floats float64, strings an object array. A null has False in `valid`; a `valid` of None means
that no entry is null, so columns without nulls need no mask. The outcome of a predicate is a Vector of bool whose null
entries are *unknown* (semantics 5.1).
"""

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.schema import Type
from basestation.algebra.record import record

Selection: TypeAlias = IntArray | BoolArray | slice
"""Some entries of a column: their positions, a mask as long as the column, or a slice."""
Value: TypeAlias = int | float | str | None
"""One value of the language as Python has it."""


@record
class Vector:
    """`values` and `valid` have the same length, one entry for each tuple."""

    values: AnyArray
    valid: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def validity(self) -> BoolArray:
        """The mask of entries that are not null, created if `valid` is None."""
        return np.ones(len(self.values), bool) if self.valid is None else self.valid

    @property
    def is_true(self) -> BoolArray:
        """Where a predicate is true (neither false nor unknown)."""
        return self.values if self.valid is None else self.values & self.valid

    def take(self, which: Selection) -> "Vector":
        """The selected entries, in the order of the selection."""
        which = as_positions(which)
        return Vector(take_at(self.values, which), None if self.valid is None else take_at(self.valid, which))

    def where(self, mask: BoolArray) -> "Vector":
        """The same entries, null outside the mask."""
        return Vector(self.values, mask if self.valid is None else self.valid & mask)

    def to_list(self) -> list[Any]:
        """Python values, None for null."""
        values: list[Any] = self.values.tolist()
        if self.valid is None:
            return values
        return [v if valid else None for v, valid in zip(values, self.valid.tolist(), strict=True)]


def as_positions(which: Selection) -> IntArray | slice:
    """A mask as positions, so that they are found once for many arrays; other selections unchanged."""
    if isinstance(which, np.ndarray) and which.dtype == bool:
        return np.flatnonzero(which)
    return which  # type: ignore[return-value]  # a mask is an array of bool


def all_true(which: object) -> bool:
    """Whether a selection is a mask without False; then no copy is needed."""
    if not isinstance(which, np.ndarray) or which.dtype != bool:
        return False
    if which.strides == (0,):  # one value repeated
        return not len(which) or bool(which[0])
    return bool(np.count_nonzero(which) == len(which))


def any_true(mask: BoolArray) -> bool:
    """Whether a mask has a True."""
    return bool(mask[0]) if mask.strides == (0,) and len(mask) else bool(np.count_nonzero(mask) > 0)


def same_array(a: AnyArray, b: AnyArray) -> bool:
    """Whether two arrays view the same memory in the same way."""
    if a is b:
        return True
    mine, other = a.__array_interface__, b.__array_interface__
    return bool(mine["data"] == other["data"] and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype)


def take_at(array: AnyArray, which: IntArray | slice) -> AnyArray:
    """The entries of an array at positions. A repeated value (`constant`) is not copied."""
    if isinstance(which, slice):
        return array[which]
    if array.strides == (0,):
        return array[: len(which)] if len(which) <= len(array) else np.broadcast_to(array[:1], len(which))
    return array.take(which, 0)


def constant(value: int | float | str | bool | None, length: int) -> AnyArray:
    """A read-only array that repeats one value without storing it `length` times."""
    return _endless(value, type(value))[:length]  # type: ignore[arg-type]  # a class is hashable


@lru_cache(maxsize=64)
def _endless(value: int | float | str | bool | None, type_: type) -> AnyArray:
    return np.broadcast_to(np.array(value, object if type_ is str else None), 2**40)


_RANGE = np.arange(2**16)
_RANGE.flags.writeable = False


def cached_arange(count: int, first: int = 0) -> IntArray:
    """`count` integers from `first` on, read-only. An addition to a cached range is faster than a new one."""
    if count > len(_RANGE):
        return np.arange(first, first + count)
    return _RANGE[:count] + first if first else _RANGE[:count]


_LARGE = 2**12


def unique_by_identity(objects: AnyArray) -> tuple[list[Any], IntArray]:
    """(distinct objects, for each given object its position among them), so that a repeated object is processed once.

    Strings that come from a table or from one batch are often the same object. Equal strings may still be several objects.
    """
    if not len(objects):
        return [], np.empty(0, np.int64)
    identities = np.frombuffer(np.ascontiguousarray(objects), np.intp)
    if len(objects) > _LARGE:  # mostly with few distinct objects; then each has a slot of its own
        slot = (identities >> 4).astype(np.uint16)  # objects lie at multiples of sixteen
        at = np.full(2**16, -1)
        at[slot] = np.arange(len(objects))
        if (identities[at[slot]] == identities).all():
            used = np.flatnonzero(at >= 0)
            distinct = objects[at[used]]
            at[used] = np.arange(len(used))
            return distinct.tolist(), at[slot]
    _, first, position = np.unique(identities, return_index=True, return_inverse=True)
    return objects[first].tolist(), position


def dtype_of(type_: Type | None) -> np.dtype[Any]:
    """The numpy type that holds a type of the language; that of integers for the bare NULL."""
    if type_ is Type.STRING:
        return np.dtype(object)
    return np.dtype(np.float64) if type_ is Type.FLOAT else np.dtype(np.int64)


def both_valid(a: Vector, b: Vector) -> BoolArray | None:
    """The mask of entries that are null in neither; None where there are no nulls."""
    if a.valid is None:
        return b.valid
    return a.valid if b.valid is None else a.valid & b.valid


def null_vector(length: int, type_: Type | None) -> Vector:
    """A Vector of nulls."""
    values = np.full(length, "", object) if type_ is Type.STRING else np.zeros(length, dtype_of(type_))
    return Vector(values, np.zeros(length, bool))


def constant_vector(value: Value, type_: Type | None, length: int) -> Vector:
    """A Vector that repeats one value."""
    if value is None:
        return null_vector(length, type_ or Type.INTEGER)
    return Vector(constant(float(value) if type_ is Type.FLOAT else value, length))

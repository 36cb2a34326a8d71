"""ValueOverrides: newer values for a few of many tuples, by tuple number."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import Vector
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.tuples import TupleBuffer, Tuples


class ValueOverrides:
    """The latest override of each tuple wins."""

    def __init__(self) -> None:
        self._held = TupleBuffer()
        self._sorted: Tuples | None = None  # the latest override of each tuple, by number; None after a change

    def put(self, tuples: Tuples) -> None:
        """From now on these tuples have the given values."""
        self._held.add(tuples)
        self._sorted = None

    def holds(self, numbers: IntArray) -> BoolArray:
        """Return a mask of the numbers that have an override."""
        held = self._latest()
        return np.zeros(len(numbers), bool) if held is None else find_in(held.ident, numbers)[1]

    def over(self, tuples: Tuples) -> Tuples:
        """Return the tuples with their overrides applied."""
        which = self.holds(tuples.ident)
        held = self._latest()
        if held is None or not which.any():
            return tuples
        other = held.take(np.searchsorted(held.ident, tuples.ident[which]))
        columns = {name: _replace_at(v, which, other.columns[name]) for name, v in tuples.columns.items()}
        return tuples.with_columns(columns)

    def drop_before(self, number: int) -> None:
        """Drop the overrides of smaller numbers."""
        held = self._held.all()
        if held is not None and len(held):
            self._held.keep(held.ident >= number)
            self._sorted = None

    def _latest(self) -> Tuples | None:
        """Return the latest override of each tuple, by number; None if there is none."""
        if self._sorted is None and (held := self._held.all()) is not None and len(held):
            held = held.take(np.argsort(held.ident, kind="stable"))
            self._sorted = held.take(np.append(held.ident[1:] != held.ident[:-1], True))
            self._held = TupleBuffer()
            self._held.add(self._sorted)
        return self._sorted


def _replace_at(vector: Vector, positions: BoolArray, new: Vector) -> Vector:
    """Return a copy of a Vector with some entries changed."""
    values, valid = vector.values.copy(), vector.validity.copy()
    values[positions], valid[positions] = new.values, new.validity
    return Vector(values, None if valid.all() else valid)

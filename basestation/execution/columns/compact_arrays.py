"""Growable arrays for columns of windows, which are most often constant or a progression.

A `ConstantOrArray` stores equal values once, a `ProgressionOrArray` the first of values that are equally far apart. Other integers
are packed.
"""

from typing import Any

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.vector import cached_arange, constant, take_at
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.packed_array import PackedArray


class ConstantOrArray:
    """A growable array that stores a single value and a count as long as all entries are equal."""

    def __init__(self, values: AnyArray) -> None:
        self._none = values[:0]
        self._value: Any = None
        self._count = 0
        self._grown: GrowableArray | PackedArray | None = None
        self.extend(values)

    def __len__(self) -> int:
        return self._count if self._grown is None else len(self._grown)

    def extend(self, values: AnyArray) -> None:
        """Append entries. Only an array that is one repeated value (stride 0) keeps the constant form."""
        if self._grown is None:
            one = values[:1].tolist()
            if not one or (values.strides == (0,) and (not self._count or self._value == one[0])):
                self._value, self._count = (one[0] if one else self._value), self._count + len(values)
                return
            self._grown = (PackedArray if values.dtype.kind == "i" else GrowableArray)(self.values)
        self._grown.extend(values)

    def drop(self, count: int) -> None:
        """Remove the first `count` entries."""
        self._count -= count
        if self._grown is not None:
            self._grown.drop(count)

    def __getitem__(self, which: IntArray | slice) -> AnyArray:
        """The entries at positions or in a slice."""
        return self._grown[which] if isinstance(self._grown, PackedArray) else take_at(self.values, which)

    @property
    def values(self) -> AnyArray:
        """The entries; not to be written to."""
        if self._grown is not None:
            return self._grown.values
        return constant(self._value, self._count) if self._count else self._none


class ProgressionOrArray:
    """A growable array of integers that stores the first one, the step and a count as long as all steps are equal.

    Numbers and ticks of windows are such integers. A revision may ask for any of them, so there are as many as a horizon has windows.
    """

    def __init__(self, values: IntArray) -> None:
        self._first, self._step, self._count = 0, 0, 0
        self._grown: PackedArray | None = None
        self.extend(values)

    def __len__(self) -> int:
        return self._count if self._grown is None else len(self._grown)

    def extend(self, values: IntArray) -> None:
        """Append entries."""
        if not len(values):
            return
        if self._grown is None:
            first = self._first if self._count else int(values[0])
            step = self._step
            if self._count < 2 <= self._count + len(values):
                step = int(values[1 - self._count]) - first
            begin = first + self._count * step
            if int(values[0]) == begin and (len(values) < 2 or bool((values[1:] - values[:-1] == step).all())):
                self._first, self._step, self._count = first, step, self._count + len(values)
                return
            self._grown = PackedArray(self.values)
        self._grown.extend(values)

    def drop(self, count: int) -> None:
        """Remove the first `count` entries."""
        if self._grown is not None:
            self._grown.drop(count)
        else:
            self._first, self._count = self._first + count * self._step, self._count - count

    def __getitem__(self, which: IntArray | slice) -> IntArray:
        """The entries at positions, which are not negative, or in a slice."""
        if self._grown is not None:
            return self._grown[which]
        if isinstance(which, slice):
            begin, end, _ = which.indices(self._count)
            which = cached_arange(max(0, end - begin), begin)
        return which * self._step + self._first

    @property
    def values(self) -> IntArray:
        """The entries; not to be written to."""
        return self[:]

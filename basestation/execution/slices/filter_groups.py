"""Filter groups: the groups of aggregates that many queries compute under filters of their own: a filter and a key each."""

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column, Expression
from basestation.algebra.vector import Vector
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.relational.group_ids import GroupIds

_KEY_BITS = 32


class FilterGroups:
    """Numbers 0, 1, … for pairs of a filter's number and a key, as GroupIds for keys alone."""

    def __init__(self, columns: tuple[tuple[Column, Expression], ...]) -> None:
        """`columns` are (column, expression) pairs of the aggregation, that of the filter first."""
        self._keys, self._has_keys = GroupIds(columns[1:]), len(columns) > 1
        self.filters: IntArray = np.empty(0, np.int64)
        """The filter of each group."""
        self._key_numbers: IntArray = np.empty(0, np.int64)  # the number of the key of each group
        self._sort()

    def _sort(self) -> None:
        codes = self.filters << _KEY_BITS | self._key_numbers
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    def __len__(self) -> int:
        return len(self.filters)

    def of(self, keys: list[Vector], length: int) -> IntArray:
        """The number of the group of each tuple; new groups get one. `length` is the number of tuples."""
        codes = keys[0].values << _KEY_BITS | self._keys.of(keys[1:], length)
        at, known = find_in(self._codes, codes)
        if not known.all():
            new = np.unique(codes[~known])
            self.filters = np.append(self.filters, new >> _KEY_BITS)
            self._key_numbers = np.append(self._key_numbers, new & ((1 << _KEY_BITS) - 1))
            self._sort()
            at, _ = find_in(self._codes, codes)
        return self._order[at]

    def keys(self, numbers: IntArray) -> list[Vector]:
        """The columns of the filters and keys of groups."""
        return [Vector(self.filters[numbers]), *self._keys.keys(self._key_numbers[numbers])]

    def keep(self, numbers: IntArray) -> IntArray:
        """Drop all groups but these, which ascend. Returns the new numbers by the old ones; -1 for dropped groups."""
        renumbered = np.full(len(self), -1)
        renumbered[numbers] = np.arange(len(numbers))
        self.filters, self._key_numbers = self.filters[numbers], self._key_numbers[numbers]
        if self._has_keys:
            self._key_numbers = self._keys.keep(np.unique(self._key_numbers))[self._key_numbers]
        self._sort()
        return renumbered

"""Group ids: the keys that tuples are grouped by, each known by a number for as long as state refers to it."""

from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column, Expression
from basestation.algebra.vector import Vector, dtype_of
from basestation.execution import thresholds
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import factorize


class GroupIds:
    """Numbers 0, 1, … for the keys of an aggregation."""

    def __init__(self, columns: tuple[tuple[Column, Expression], ...]) -> None:
        """`columns` are (column, expression) pairs of the aggregation; none where all tuples are one group."""
        self._numbers: dict[tuple[Any, ...], int] = {}  # by key
        self._keys = [_empty(column) for column, _ in columns]
        self._low = 0
        self._table: IntArray = np.empty(0, np.int64)  # numbers of integer keys from `_low` on, by key; -1: none

    def __len__(self) -> int:
        return max(1, len(self._numbers)) if not self._keys else len(self._numbers)

    def of(self, keys: list[Vector], length: int) -> IntArray:
        """The number of the group of each tuple; new groups get one. `length` is the number of tuples."""
        if not self._keys:
            return np.zeros(length, np.int64)
        numbers = self._look_up(keys)
        return self._add(keys, length) if numbers is None else numbers

    def _look_up(self, keys: list[Vector]) -> IntArray | None:
        """The numbers of single integer keys that are all known; None otherwise."""
        values = keys[0].values
        if len(keys) > 1 or keys[0].valid is not None or values.dtype != np.int64 or not len(values):
            return None
        if int(values.min()) < self._low or int(values.max()) >= self._low + len(self._table):
            return None
        numbers = self._table[values - self._low]
        return None if numbers.min() < 0 else numbers

    def _fill_table(self) -> None:
        """Tabulate the numbers of integer keys that are close together."""
        self._table = np.empty(0, np.int64)
        key = self._keys[0]
        if len(self._keys) == 1 and key.valid is None and key.values.dtype == np.int64 and len(key):
            self._low, high = int(key.values.min()), int(key.values.max())
            if high - self._low < thresholds.DENSE_FACTOR * len(key) + thresholds.DENSE_SLACK:
                self._table = np.full(high - self._low + 1, -1)
                self._table[key.values - self._low] = np.arange(len(key))

    def _add(self, keys: list[Vector], length: int) -> IntArray:
        """The same by a dictionary of keys, to which new ones are added."""
        code, count = factorize(keys, length)
        first = np.full(count, length)
        first[code[::-1]] = np.arange(length)[::-1]
        present = np.flatnonzero(first < length)
        distinct = [key.take(first[present]) for key in keys]
        known = len(self._numbers)
        new: list[int] = []
        numbers = np.empty(len(present), np.int64)
        for at, key in enumerate(zip(*(vector.to_list() for vector in distinct), strict=True)):
            numbers[at] = number = self._numbers.setdefault(key, len(self._numbers))
            if number >= known + len(new):
                new.append(at)
        if new:
            added = np.array(new, np.int64)
            pairs = zip(self._keys, distinct, strict=True)
            self._keys = [concatenate_vectors([held, vector.take(added)]) for held, vector in pairs]
            self._fill_table()
        by_code = np.empty(count, np.int64)
        by_code[present] = numbers
        return by_code[code]

    def keys(self, numbers: IntArray) -> list[Vector]:
        """The columns of the keys of groups."""
        return [key.take(numbers) for key in self._keys]

    def keep(self, numbers: IntArray) -> IntArray:
        """Drop all groups but these, which ascend. Returns the new numbers by the old ones; -1 for dropped groups."""
        renumbered = np.full(len(self._numbers), -1)
        renumbered[numbers] = np.arange(len(numbers))
        self._keys = self.keys(numbers)
        self._fill_table()
        new = renumbered.tolist()
        self._numbers = {key: new[number] for key, number in self._numbers.items() if new[number] >= 0}
        return renumbered


def _empty(column: Column) -> Vector:
    return Vector(np.empty(0, np.int64 if column.scale is not None else dtype_of(column.type)))

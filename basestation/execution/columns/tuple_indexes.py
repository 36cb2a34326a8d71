"""Indexes: which index each tuple of a stream took as it entered, by its number (SEMANTICS 1.5).

Tuples mostly enter in the order in which they were taken: so from one number to another the index is the number and something
more, and nothing is kept for each. What entered otherwise is written down.
"""

import numpy as np

from basestation.execution.columns.dense_id_map import DenseIdMap


class TupleIndexes:
    def __init__(self):
        self.last = 0
        self._newest = -1  # the greatest number that entered
        self._first = self._behind = 0  # the numbers of the latest that entered in a row …
        self._more = 0  # … and what their indexes are more than those
        self._others = DenseIdMap(np.int64)  # 0: not entered

    def enter(self, numbers, in_a_row):
        """Tuples, at least one, take the next indexes, in this order; `concatenate_encoded`: each number is the one before and 1."""
        begin, self.last = self.last + 1, self.last + len(numbers)
        self._newest = max(self._newest, int(numbers[-1] if in_a_row else numbers.max()))
        if not in_a_row:
            self._others[numbers] = np.arange(begin, self.last + 1)
            return
        first, more = int(numbers[0]), begin - int(numbers[0])
        if first != self._behind or more != self._more:
            self._write_down()
            self._first, self._more = first, more
        self._behind = first + len(numbers)

    def leave(self, numbers):
        """Tuples that come again have not entered."""
        if len(numbers) and int(numbers.min()) <= self._newest:
            self._write_down()
            self._first = self._behind
            self._others[numbers] = 0

    def _write_down(self):
        row = np.arange(self._first, self._behind)
        self._others[row] = row + self._more

    def of(self, numbers):
        """0 where a tuple has not entered yet."""
        if len(numbers) and self._first <= numbers.min() and numbers.max() < self._behind:
            return numbers + self._more
        inside = (numbers >= self._first) & (numbers < self._behind)
        return np.where(inside, numbers + self._more, self._others[np.where(inside, self._others.base, numbers)])

    def row_of(self, numbers):
        """The index of the first of some numbers in a row, if they entered so; else 0."""
        inside = self._first <= numbers[0] and numbers[-1] < self._behind
        return int(numbers[0]) + self._more if inside else 0

    def find(self, indexes):
        """The numbers of the tuples that entered with some indexes; -1 where there is none."""
        numbers = indexes - self._more
        others = (numbers < self._first) | (numbers >= self._behind)
        if others.any():
            numbers[others] = np.where(indexes[others] > 0, self._others.find(indexes[others]), -1)
        return numbers

    def drop_before(self, number):
        self._others.drop_before(number)
        self._first, self._behind = max(self._first, number), max(self._behind, number)

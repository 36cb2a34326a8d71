"""TupleIndexes: the index that each tuple of a stream took when it entered, by tuple number (semantics 1.5).

Tuples usually enter in the order of their numbers. Then the index is the number plus a constant, and only the run of the latest
numbers is stored. Other entries are stored one by one.
"""

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.columns.dense_id_map import DenseIdMap


class TupleIndexes:
    """Indexes from 1 on; 0 for a tuple that has not entered."""

    def __init__(self) -> None:
        self.last = 0  # the index that was given last
        self._newest = -1  # the greatest number that entered
        self._first = self._end = 0  # the latest run: numbers from _first to before _end …
        self._offset = 0  # … have index number + _offset
        self._stored = DenseIdMap(np.int64)  # the indexes of all other numbers

    def enter(self, numbers: IntArray, in_a_row: bool) -> None:
        """Give at least one tuple the next indexes, in this order; `in_a_row` says that the numbers are consecutive."""
        begin, self.last = self.last + 1, self.last + len(numbers)
        self._newest = max(self._newest, int(numbers[-1] if in_a_row else numbers.max()))
        if not in_a_row:
            self._stored[numbers] = np.arange(begin, self.last + 1)
            return
        first, offset = int(numbers[0]), begin - int(numbers[0])
        if first != self._end or offset != self._offset:
            self._store_run()
            self._first, self._offset = first, offset
        self._end = first + len(numbers)

    def leave(self, numbers: IntArray) -> None:
        """Take the indexes back from tuples that will enter anew."""
        if len(numbers) and int(numbers.min()) <= self._newest:
            self._store_run()
            self._first = self._end
            self._stored[numbers] = 0

    def _store_run(self) -> None:
        run = np.arange(self._first, self._end)
        self._stored[run] = run + self._offset

    def of(self, numbers: IntArray) -> IntArray:
        """Return the index of each number; 0 if the tuple has not entered."""
        if len(numbers) and self._first <= numbers.min() and numbers.max() < self._end:
            return numbers + self._offset
        inside = (numbers >= self._first) & (numbers < self._end)
        return np.where(inside, numbers + self._offset, self._stored[np.where(inside, self._stored.base, numbers)])

    def row_of(self, numbers: IntArray) -> int:
        """Return the index of the first of some consecutive numbers if all lie in the latest run; else 0."""
        inside = self._first <= numbers[0] and numbers[-1] < self._end
        return int(numbers[0]) + self._offset if inside else 0

    def find(self, indexes: IntArray) -> IntArray:
        """Return the number of the tuple with each index; -1 if there is none."""
        numbers = indexes - self._offset
        stored = (numbers < self._first) | (numbers >= self._end)
        if stored.any():
            numbers[stored] = np.where(indexes[stored] > 0, self._stored.find(indexes[stored]), -1)
        return numbers

    def drop_before(self, number: int) -> None:
        """Drop the indexes of smaller numbers."""
        self._stored.drop_before(number)
        self._first, self._end = max(self._first, number), max(self._end, number)

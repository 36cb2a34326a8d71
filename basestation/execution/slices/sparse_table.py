"""Doubling: windows of whole rows of a matrix, put together of spans of one, two, four, … rows, for all windows at once.

Which spans those are is found once, and gone through for each array of cells by itself: so an array stays in the caches.
"""

from functools import cached_property

import numpy as np

from basestation.algebra.vector import all_true, take_at
from basestation.execution.columns.integer_arrays import is_consecutive


class SparseTable:
    """Windows over the rows `begin` to before `end` of a matrix of so many rows and columns; cells of windows follow each other."""

    def __init__(self, rows, width, begin, end):
        self.longest = int((end - begin).max(initial=0))
        self._cells, self._width = len(begin) * width, width
        self._rows, self._begin, self._end = rows, begin, end

    @cached_property
    def _steps(self):
        """(which cells of windows take cells of spans in: None for all; which; the spans that are twice as long, if they are asked
        for: so many cells, and those so many further on)."""
        alike = is_consecutive(self._begin) and all_true(self._end - self._begin == self.longest)
        taken_in, steps, step = self._all if alike else self._some, [], 1
        while True:
            further = 2 * step <= min(self._rows, self.longest)
            count = (self._rows - 2 * step + 1) * self._width if further else 0
            steps.append((*taken_in(step), count, step * self._width))
            if not further:
                return steps
            step *= 2

    def _some(self, step):
        """Which windows take spans of so many rows in, and which spans."""
        length = self._end - self._begin
        which = np.flatnonzero(length & step)
        into = None if len(which) == len(length) else _rows(which, self._width)
        return into, _rows((self._begin + (length & (step - 1)))[which], self._width) if len(which) else None

    def _all(self, step):
        """The same where windows begin one row behind the other, and all are of one length."""
        if not self.longest & step:
            return None, None
        first = (int(self._begin[0]) + (self.longest & (step - 1))) * self._width
        return None, slice(first, first + self._cells)

    def array(self, fold, array, blank):
        """Arrays of cells, of which two become one by a fold."""
        if len(self._begin) == 1 and self._end[0] > self._begin[0]:
            rows = array[self._begin[0] * self._width : self._end[0] * self._width]
            return fold.reduce(rows.reshape(-1, self._width), axis=0)

        def put(whole, part, into):
            whole[into] = fold(whole[into], part)

        return self._together(array, take_at, fold, lambda: np.full(self._cells, blank, array.dtype), np.copy, put)

    def state(self, made, state):
        """The state of an aggregate of which cells do not fold one by one."""

        def take(of, which):
            return of.map_arrays(lambda array: take_at(array, which))

        def put(whole, part, into):
            made.merge(whole, part, np.arange(self._cells)[into])

        return self._together(
            state, take, made.combine, lambda: made.init(self._cells), lambda of: made.concatenate([of]), put
        )

    def _together(self, level, take, fold, blank, copy, put):
        whole, owned = None, False  # `owned`: nobody else has its arrays
        for into, of, count, further in self._steps:
            if of is not None:
                part = take(level, of)
                if into is None:
                    whole, owned = part if whole is None else fold(whole, part), whole is not None
                else:
                    if not owned:
                        whole, owned = blank() if whole is None else copy(whole), True
                    put(whole, part, into)
            if count:
                level = fold(take(level, slice(0, count)), take(level, slice(further, further + count)))
        return blank() if whole is None else whole


def _rows(numbers, width):
    """Where some rows of a matrix are: a slice if they follow each other."""
    if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]) * width, (int(numbers[-1]) + 1) * width)
    return ((numbers * width)[:, None] + np.arange(width)).ravel()

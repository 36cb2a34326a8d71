"""Sparse table: windows over rows of a matrix, merged from spans of one, two, four, … rows, for all windows at once.

The spans of each window are found once and used for each array of cells in turn, so that an array stays in the caches.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.vector import all_true, take_at
from basestation.execution.columns.integer_arrays import is_consecutive
from innet.aggregates.state import AggregateState, StateAggregate

Positions = IntArray | slice
_Level = TypeVar("_Level", AnyArray, AggregateState)


class SparseTable:
    """Windows over the rows begin[i] to before end[i] of a matrix of `rows` rows and `width` columns, row after row."""

    def __init__(self, rows: int, width: int, begin: IntArray, end: IntArray) -> None:
        self.longest = int((end - begin).max(initial=0))
        self._cells, self._width = len(begin) * width, width
        self._rows, self._begin, self._end = rows, begin, end

    @cached_property
    def _steps(self) -> list[tuple[Positions | None, Positions | None, int, int]]:
        """For spans of 1, 2, 4, … rows: (cells of windows that take a span in, None for all; cells of these spans, None for
        no spans; for spans of twice as many rows: their number of cells, and how far apart their halves are)."""
        equal = is_consecutive(self._begin) and all_true(self._end - self._begin == self.longest)
        find = self._find_equal if equal else self._find_some
        steps, step = [], 1
        while True:
            doubles = 2 * step <= min(self._rows, self.longest)
            count = (self._rows - 2 * step + 1) * self._width if doubles else 0
            steps.append((*find(step), count, step * self._width))
            if not doubles:
                return steps
            step *= 2

    def _find_some(self, step: int) -> tuple[Positions | None, Positions | None]:
        """The windows that contain spans of `step` rows, and these spans."""
        length = self._end - self._begin
        which = np.flatnonzero(length & step)
        into = None if len(which) == len(length) else _cells_of(which, self._width)
        return into, _cells_of((self._begin + (length & (step - 1)))[which], self._width) if len(which) else None

    def _find_equal(self, step: int) -> tuple[Positions | None, Positions | None]:
        """The same where windows have one length and begin one row after another."""
        if not self.longest & step:
            return None, None
        first = (int(self._begin[0]) + (self.longest & (step - 1))) * self._width
        return None, slice(first, first + self._cells)

    def array(self, fold: np.ufunc, array: AnyArray, blank: float) -> AnyArray:
        """The cells of windows, where two cells merge by a ufunc; `blank` in an empty window."""
        if len(self._begin) == 1 and self._end[0] > self._begin[0]:
            rows = array[self._begin[0] * self._width : self._end[0] * self._width]
            reduced: AnyArray = fold.reduce(rows.reshape(-1, self._width), axis=0)
            return reduced

        def put(whole: AnyArray, part: AnyArray, into: Positions) -> None:
            whole[into] = fold(whole[into], part)

        return self._merge(array, take_at, fold, lambda: np.full(self._cells, blank, array.dtype), np.copy, put)

    def state(self, function: StateAggregate, state: AggregateState) -> AggregateState:
        """The state of windows, for a function that does not merge array by array."""

        def take(of: AggregateState, which: Positions) -> AggregateState:
            return of.map_arrays(lambda array: take_at(array, which))

        def put(whole: AggregateState, part: AggregateState, into: Positions) -> None:
            function.merge(whole, part, np.arange(self._cells)[into])

        return self._merge(
            state,
            take,
            function.combine,
            lambda: function.init(self._cells),
            lambda of: function.concatenate([of]),
            put,
        )

    def _merge(
        self,
        level: _Level,
        take: Callable[[_Level, Positions], _Level],
        fold: Callable[[_Level, _Level], _Level],
        blank: Callable[[], _Level],
        copy: Callable[[_Level], _Level],
        put: Callable[[_Level, _Level, Positions], None],
    ) -> _Level:
        """The cells of windows, from the cells of rows."""
        whole, owned = None, False  # `owned`: its arrays are not shared
        for into, of, count, further in self._steps:
            if of is not None:
                part = take(level, of)
                if into is None:
                    whole, owned = part if whole is None else fold(whole, part), whole is not None
                else:
                    if whole is None or not owned:
                        whole, owned = blank() if whole is None else copy(whole), True
                    put(whole, part, into)
            if count:
                level = fold(take(level, slice(0, count)), take(level, slice(further, further + count)))
        return blank() if whole is None else whole


def _cells_of(rows: IntArray, width: int) -> Positions:
    """The cells of rows of a matrix: a slice if the rows are consecutive."""
    if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]) * width, (int(rows[-1]) + 1) * width)
    cells: IntArray = ((rows * width)[:, None] + np.arange(width)).ravel()
    return cells

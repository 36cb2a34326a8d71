"""Cells: partial aggregate states as columns, one row for each (slice, group), ordered by slice.

Each row also says when the group's first tuple entered, because groups stand in that order (semantics 6.4).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.record import record
from basestation.algebra.vector import as_positions, take_at
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state import AggregateState

Selection = IntArray | BoolArray | slice
"""Positions, a mask, or a slice of rows."""


@record
class Cells:
    """Rows of partial states.

    `slice` and `group` number the slice and the group of each row. `arrival` and `place` order the first tuples of the groups; over a
    union `arrival` includes the part.
    `states` has one state for each aggregate, the row count first.

    A positive `width` says that the rows are a matrix in the order of entry: each slice has groups 0 to width - 1. With 0,
    nothing is known.
    """

    slice: IntArray
    group: IntArray
    arrival: IntArray
    place: IntArray
    states: list[AggregateState]
    width: int = 0

    def __len__(self) -> int:
        return self.states[0].n_groups

    def take(self, which: Selection) -> "Cells":
        """Return the rows at positions, in a slice, or under a mask; they may share memory with these."""
        which = as_positions(which)
        return self._mapped(lambda array: take_at(array, which))

    def _mapped(self, change: Callable[[AnyArray], AnyArray]) -> "Cells":
        """Apply a function to each array, once to an array that several columns share."""
        once = IdentityMemo()
        columns = (self.slice, self.group, self.arrival, self.place)
        numbers, groups, arrival, place = (once(change, column) for column in columns)
        states = [state.map_arrays(partial(once, change)) for state in self.states]
        return Cells(numbers, groups, arrival, place, states)

    def between(self, begin: int, end: int) -> "Cells":
        """Return the rows from `begin` to before `end`, which are whole slices; they share memory with these."""
        return self if end - begin == len(self) else replace(self.take(slice(begin, end)), width=self.width)

    def copied(self) -> "Cells":
        """Return the same rows in memory of their own."""
        return replace(self._mapped(np.copy), width=self.width)

    def follows(self, others: "Cells") -> bool:
        """Return whether these rows and the matrix before them are one matrix together."""
        if not self.width == others.width > 0:
            return False
        if self.slice[0] <= others.slice[-1]:
            return False
        return bool((self.arrival[0], self.place[0]) >= (others.arrival[-1], others.place[-1]))


@record
class CellMatrix:
    """Partial states of a full matrix: the position of a cell says its window or slice, and its group.

    `ranks` order the first tuples of the cells; None if all rows are in the order of entry.
    """

    states: list[AggregateState]
    ranks: IntArray | None = None

    def __len__(self) -> int:
        return self.states[0].n_groups

    def take(self, which: Selection) -> "CellMatrix":
        """Return the cells at positions, in a slice, or under a mask; they may share memory with these."""
        which, once = as_positions(which), IdentityMemo()
        change = partial(once, lambda array: take_at(array, which))
        ranks = None if self.ranks is None else change(self.ranks)
        return CellMatrix([state.map_arrays(change) for state in self.states], ranks)

    @property
    def known_ranks(self) -> IntArray:
        """The ranks, where they were computed."""
        if self.ranks is None:
            raise TypeError("expected a matrix with ranks, found one in the order of entry")
        return self.ranks


def form_matrix(parts: Sequence[Cells]) -> bool:
    """Return whether the parts, one after another, are a matrix."""
    return parts[0].width > 0 and all(b.follows(a) for a, b in pairwise(parts))

"""Cells: the states of groups in slices, a row for each, by slice.

The order of entry of a group's first tuple is kept with them, because groups stand in that order (SEMANTICS 6.4).
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from basestation.algebra.record import record
from basestation.algebra.vector import as_positions, take_at
from innet.aggregates.state import IdentityMemo


@record
class Cells:
    """`arrival` and `place` say when the first tuple enters; `states` has one state for each aggregate, counts first.

    In a matrix of cells slice and group are known by the place, None here. `place` is the rank of the first tuple among all
    (`ranks`) there, or None where all cells stand in the order of entry.

    `width` is told of cells that are known to be all of a matrix as they are, in the order of entry: in each slice there are
    all groups up to it. 0: nobody knows.
    """

    slice: np.ndarray | None
    group: np.ndarray | None
    arrival: np.ndarray | None
    place: np.ndarray | None
    states: list
    width: int = 0

    def __len__(self):
        return self.states[0].n_groups

    def take(self, which):
        """Those at positions, in a slice, or under a mask; they may share memory with these."""
        which = as_positions(which)
        return self._mapped(lambda array: take_at(array, which))

    def _mapped(self, change):
        """What an array becomes it becomes once."""
        once = IdentityMemo()
        columns = (None if column is None else once(change, column) for column in self._columns)
        return Cells(*columns, [state.mapped(partial(once, change)) for state in self.states])

    def between(self, begin, end):
        """Those of whole slices, from one place to before another; they share memory with these."""
        return self if end - begin == len(self) else replace(self.take(slice(begin, end)), width=self.width)

    def copied(self):
        """The same in memory of their own."""
        return replace(self._mapped(np.copy), width=self.width)

    def follows(self, others):
        """Whether they are a matrix together with those before them, which are one."""
        if not self.width == others.width > 0 or self.slice[0] <= others.slice[-1]:
            return False
        return (self.arrival[0], self.place[0]) >= (others.arrival[-1], others.place[-1])

    @property
    def _columns(self):
        return self.slice, self.group, self.arrival, self.place


def form_matrix(parts):
    """Whether parts are a matrix together."""
    return parts[0].width > 0 and all(b.follows(a) for a, b in pairwise(parts))


def make_matrix(states, ranks=None):
    """A matrix of cells with such states, and the ranks of their first tuples if they are not in the order of entry."""
    return Cells(None, None, None, ranks, states)

"""Stretches: what COUNT, MIN and MAX need to know where each row is in all the groups from one to another.

A stretch of groups is covered by two blocks of one, two, four, … groups, which may overlap: to an extreme that is the same.
So a row is looked at twice, however many groups it is in; what a block holds is handed down to its halves.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows are in each of so many groups."""

    n_groups: int

    def __call__(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        edges = np.bincount(first, minlength=self.n_groups + 1)
        edges -= np.bincount(last + 1, minlength=self.n_groups + 1)
        return np.cumsum(edges[:-1])


def extremes(pick, blank, first, last, values):
    """The extreme of each group; `blank` has one that is worse than all, for each group."""
    level = np.frexp(last - first + 1)[1] - 1  # of the blocks: 2^level groups
    height = int(level.max(initial=0))
    found = blank.copy()
    for up in range(height, -1, -1):
        if up < height:  # the blocks from above fall into two
            half, above = 1 << up, found
            found = above.copy()
            pick(found[half:], above[:-half], out=found[half:])
        some = np.flatnonzero(level == up)
        if len(some) == len(level):
            some = slice(None)
        own = values[some]
        pick.at(found, first[some], own)
        if up:
            pick.at(found, last[some] + (1 - (1 << up)), own)
    return found

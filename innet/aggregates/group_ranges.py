"""Stretches: what COUNT, MIN and MAX need to know where each row is in all the groups from one to another.

A stretch of groups is covered by two blocks of one, two, four, … groups, which may overlap: to an extreme that is the same.
So a row is looked at twice, however many groups it is in; what a block holds is handed down to its halves.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class RangeCounter:
    """How many rows are in each of so many groups."""

    n_groups: int

    def __call__(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        edges = np.bincount(first, minlength=self.n_groups + 1)
        edges -= np.bincount(last + 1, minlength=self.n_groups + 1)
        return np.cumsum(edges[:-1])


def cover_with_blocks(first: np.ndarray, last: np.ndarray) -> list[tuple]:
    """Of blocks of 2^level groups, the longest first: (level, the rows that two of them cover, where the one and the other begin)."""
    length = last - first
    length += 1
    # How long stretches are is looked up: they are many, and of few lengths.
    level = (np.frexp(np.arange(int(length.max(initial=0)) + 1))[1] - 1).take(length)
    found: list[tuple] = []
    for up in range(int(level.max(initial=0)), -1, -1):
        some = np.flatnonzero(level == up)
        which = slice(None) if len(some) == len(level) else some
        found.append((up, which, first[which], last[which] + (1 - (1 << up))))
    return found


def find_extremes(pick, found, covered, values):
    """The extreme of each group; `found` has one that is worse than all, for each group, `covered` are the `blocks` of rows.

    `found` is written to.
    """
    height = covered[0][0]
    for up, which, one, other in covered:
        if up < height:  # the blocks from above fall into two
            half, above = 1 << up, found
            found = np.empty_like(above)
            found[:half] = above[:half]
            pick(above[half:], above[:-half], out=found[half:])
        own = values[which]
        pick.at(found, one, own)
        if up:
            pick.at(found, other, own)
    return found

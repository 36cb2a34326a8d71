"""COUNT, MIN and MAX of rows that each belong to all groups of a range.

Two blocks of 2^k groups, which may overlap, cover a range: a sparse table. So each row is visited twice, however many
groups it belongs to. Each block then passes its extreme on to its halves.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, IntArray

Blocks: TypeAlias = list[tuple[int, IntArray | slice, IntArray, IntArray]]
"""Longest blocks first: (level, rows that two blocks of 2^level groups cover, begin of one block, begin of the other)."""


@dataclass(frozen=True, slots=True)
class RangeCounter:
    """Counts the rows of each of `n_groups` groups."""

    n_groups: int

    def __call__(self, first: IntArray, last: IntArray) -> IntArray:
        """Return the number of rows of each group, where row i belongs to the groups first[i] to last[i]."""
        edges = np.bincount(first, minlength=self.n_groups + 1)
        edges -= np.bincount(last + 1, minlength=self.n_groups + 1)
        return np.cumsum(edges[:-1])


def cover_with_blocks(first: IntArray, last: IntArray) -> Blocks:
    """Cover the range of groups first[i] to last[i] of each row with two blocks."""
    length = last - first
    length += 1
    # Look the level up by length: there are many ranges, but few lengths.
    level = (np.frexp(np.arange(int(length.max(initial=0)) + 1))[1] - 1).take(length)
    found: Blocks = []
    for up in range(int(level.max(initial=0)), -1, -1):
        some = np.flatnonzero(level == up)
        which = slice(None) if len(some) == len(level) else some
        found.append((up, which, first[which], last[which] + (1 - (1 << up))))
    return found


def find_extremes(pick: np.ufunc, found: AnyArray, covered: Blocks, values: AnyArray) -> AnyArray:
    """Return the extreme of each group.

    `found` has one entry per group, worse than any value; it is overwritten. `covered` are the blocks of the rows.
    """
    height = covered[0][0]
    for up, which, one, other in covered:
        if up < height:  # split the blocks of the level above into halves
            half, above = 1 << up, found
            found = np.empty_like(above)
            found[:half] = above[:half]
            pick(above[half:], above[:-half], out=found[half:])
        own = values[which]
        pick.at(found, one, own)
        if up:
            pick.at(found, other, own)
    return found

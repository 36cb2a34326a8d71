"""Joined rows: tuples of several inputs by their positions, with the windows that contain all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Selection, all_true, as_positions, take_at
from basestation.execution.columns.window_batch import expand_ranges


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Row j has the tuple at position at[i][j] of each input i so far, and is in the windows first[j] to last[j].

    `first` and `last` are the same array where each row is in one window only.
    """

    first: IntArray
    last: IntArray
    at: dict[int, IntArray]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_single(self) -> bool:
        """Whether each row is in one window only."""
        return self.first is self.last

    def take(self, which: Selection) -> "JoinedRows":
        """The rows at positions, in a slice, or under a mask."""
        if all_true(which):
            return self
        which = as_positions(which)
        first = take_at(self.first, which)
        last = first if self.is_single else take_at(self.last, which)
        return JoinedRows(first, last, {i: take_at(at, which) for i, at in self.at.items()})

    def with_tuples(self, at: dict[int, IntArray]) -> "JoinedRows":
        """The same rows with tuples of other inputs."""
        return JoinedRows(self.first, self.last, self.at | at)

    def split_windows(self) -> "JoinedRows":
        """A row for each of the windows of each row."""
        if self.is_single:
            return self
        counts = self.last - self.first + 1
        if (counts == 1).all():
            return JoinedRows(self.first, self.first, self.at)
        which = np.repeat(np.arange(len(self)), counts)
        window = expand_ranges(self.first, counts)
        return JoinedRows(window, window, {i: at[which] for i, at in self.at.items()})

    def shift_windows(self, count: int) -> "JoinedRows":
        """The same rows where `count` windows are before these."""
        if not count:
            return self
        first = self.first + count
        return JoinedRows(first, first if self.is_single else self.last + count, self.at)


def rows_per_window(window: IntArray, at: dict[int, IntArray]) -> JoinedRows:
    """Rows that are in one window each."""
    return JoinedRows(window, window, at)


def concatenate_rows(parts: Sequence[JoinedRows]) -> JoinedRows:
    """Rows over the same inputs, one part after another."""
    if len(parts) == 1:
        return parts[0]
    first = np.concatenate([rows.first for rows in parts])
    last = first if all(rows.is_single for rows in parts) else np.concatenate([rows.last for rows in parts])
    return JoinedRows(first, last, {i: np.concatenate([rows.at[i] for rows in parts]) for i in parts[0].at})

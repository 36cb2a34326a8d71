"""Rows: what a join puts together: tuples of its inputs, by their positions, and the windows that hold all of them."""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import all_true, as_positions, take_at
from basestation.execution.columns.window_batch import expand_ranges


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Tuples that were put together: of each row the position of its tuple of each input so far, and the windows that
    hold all of them: from the first to the last. They are one array where each row is for one window."""

    first: np.ndarray
    last: np.ndarray
    at: dict[int, np.ndarray]

    def __len__(self):
        return len(self.first)

    @property
    def single(self):
        return self.first is self.last

    def take(self, which):
        """Those at positions, in a slice, or under a mask."""
        if all_true(which):
            return self
        which = as_positions(which)
        first = take_at(self.first, which)
        last = first if self.single else take_at(self.last, which)
        return JoinedRows(first, last, {i: take_at(at, which) for i, at in self.at.items()})

    def beside(self, found):
        """The same with tuples of other inputs."""
        return JoinedRows(self.first, self.last, self.at | found)

    def each(self):
        """A row for each of the windows."""
        if self.single:
            return self
        counts = self.last - self.first + 1
        if (counts == 1).all():
            return JoinedRows(self.first, self.first, self.at)
        which = np.repeat(np.arange(len(self)), counts)
        window = expand_ranges(self.first, counts)
        return JoinedRows(window, window, {i: at[which] for i, at in self.at.items()})

    def behind(self, count):
        """The same where so many windows stand before these."""
        if not count:
            return self
        first = self.first + count
        return JoinedRows(first, first if self.single else self.last + count, self.at)


def rows_per_window(window, at):
    """Rows, each for one window."""
    return JoinedRows(window, window, at)


def concatenate_rows(parts):
    """Rows over the same inputs, one after another."""
    if len(parts) == 1:
        return parts[0]
    first = np.concatenate([rows.first for rows in parts])
    last = first if all(rows.single for rows in parts) else np.concatenate([rows.last for rows in parts])
    return JoinedRows(first, last, {i: np.concatenate([rows.at[i] for rows in parts]) for i in parts[0].at})

"""Wins: windows of one input as columns, and the table of those that were given and may still be asked for.

A window is known by its number among all of its input. What a block asks of its inputs it asks for many windows at once.
"""

import numpy as np

from basestation.algebra.record import record
from basestation.algebra.vector import as_positions, cached_arange, take_at
from basestation.execution.columns.growable_array import ConstantOrArray, GrowableArray
from basestation.execution.columns.integer_arrays import is_consecutive, stable_argsort

NEVER = 2**62
NO_WINDOW = -1
"""The number of the window that is not there: nothing is in it."""
_COLUMNS = ("number", "tick", "n", "left", "right")


@record
class WindowBatch:
    """Made at `tick`, the n-th of it; the range of a window is left to right, of ticks or of rows."""

    number: np.ndarray
    tick: np.ndarray
    n: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def __len__(self):
        return len(self.tick)

    def take(self, which):
        which = as_positions(which)
        return WindowBatch(*(take_at(getattr(self, name), which) for name in _COLUMNS))

    @property
    def there(self):
        return self.number != NO_WINDOW

    @property
    def all_there(self):
        return int(self.number.min(initial=0)) != NO_WINDOW


@record
class RepeatedWindows:
    """The windows of one input that stand in combinations. Where one stands in several that follow each other it is there once:
    `at` has its number for each combination, which stays or goes on by one; None where there is a window for each."""

    windows: WindowBatch
    at: np.ndarray | None = None

    def __len__(self):
        return len(self.windows) if self.at is None else len(self.at)


def make_windows(tick, n, left, right):
    """Windows that have no numbers yet."""
    return WindowBatch(np.arange(len(tick)), tick, n, left, right)


_NONE = np.empty(0, np.int64)
NO_WINDOWS = make_windows(_NONE, _NONE, _NONE, _NONE)


def concatenate_windows(parts):
    """All windows of all parts, one after another."""
    some = [part for part in parts if len(part)]
    if len(some) == 1:
        return some[0]
    return WindowBatch(*(np.concatenate([getattr(p, name) for p in parts]) for name in _COLUMNS))


class IssuedWindows:
    """The windows of one input that were given, in the order of their numbers; the oldest are let go of."""

    def __init__(self):
        self._base = 0
        self._tick, self._left, self._right = (GrowableArray(_NONE) for _ in range(3))
        self._n = ConstantOrArray(_NONE)

    @property
    def next(self):
        """The number that the next window will have."""
        return self._base + len(self._tick)

    def add(self, found):
        """Take new windows in; their numbers."""
        first = self.next
        self._tick.extend(found.tick)
        self._n.extend(found.n)
        self._left.extend(found.left)
        self._right.extend(found.right)
        return cached_arange(len(found), first)

    def of(self, numbers):
        """The windows of these numbers."""
        following = is_consecutive(numbers) and int(numbers[0]) != NO_WINDOW
        first = int(numbers[0]) - self._base if following else 0
        at = slice(first, first + len(numbers)) if following else numbers - self._base
        if following or int(numbers.min(initial=0)) != NO_WINDOW:
            return WindowBatch(numbers, *(take_at(grown.values, at) for grown in self._columns))
        found, there = [np.full(len(numbers), blank) for blank in (-NEVER, 1, 1, 0)], numbers != NO_WINDOW
        for column, grown in zip(found, self._columns, strict=True):
            column[there] = grown.values[at[there]]
        return WindowBatch(numbers, *found)

    def standing(self, numbers):
        """The same where they stand in combinations."""
        more = (numbers[1:] - numbers[:-1]).view(np.uint64)  # what is less is very much more
        if not len(numbers) or int(numbers[0]) == NO_WINDOW or more.max(initial=0) > 1:
            return RepeatedWindows(self.of(numbers))
        first, behind = int(numbers[0]), int(numbers[-1]) + 1
        return RepeatedWindows(self._between(first, behind), None if behind - first == len(numbers) else numbers)

    def since(self, number):
        """All windows from a number on."""
        return self._between(max(number, self._base), self.next)

    def _between(self, first, behind):
        """The windows from one number to before another."""
        at = slice(first - self._base, behind - self._base)
        return WindowBatch(cached_arange(behind - first, first), *(grown.values[at] for grown in self._columns))

    @property
    def _columns(self):
        return self._tick, self._n, self._left, self._right

    def forget(self, first):
        """No window before this number is asked for again."""
        count = first - self._base
        if count > 0:
            for column in self._columns:
                column.drop(count)
            self._base = first


def expand_ranges(first, counts):
    """first[0], first[0] + 1, … (counts[0] of them), first[1], …"""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return cached_arange(total) + np.repeat(first - (ends - counts), counts)


def merge_ranges(first, counts):
    """(where each range begins among what all of them hold, each number once and ascending; and these numbers).

    Where ranges overlap so much that all from the least number to the greatest are fewer, they are all of these.
    """
    if not len(first):
        return first, slice(0, 0)
    low, high = int(first.min()), int((first + counts).max())
    if high - low <= int(counts.sum()):
        return first - low, slice(low, high)
    order = stable_argsort(first)
    begin, end = first[order], np.maximum.accumulate((first + counts)[order])
    apart = np.concatenate([[True], begin[1:] > end[:-1]])
    begins, ends = begin[apart], end[np.append(apart[1:], True)]
    sizes = ends - begins
    found = np.empty_like(first)
    found[order] = begin + (np.cumsum(sizes) - sizes - begins)[np.cumsum(apart) - 1]
    return found, select_ranges(begins, sizes)


def select_ranges(first, counts):
    """The same as a slice, where each range begins behind the one before."""
    if len(first) and (first[1:] == first[:-1] + counts[:-1]).all():
        return slice(int(first[0]), int(first[-1] + counts[-1]))
    return expand_ranges(first, counts)

"""WindowBatch: windows of one input as columns, and the table of those that were issued and may be asked for again.

A window is identified by its number among all windows of its input. A block asks its inputs for many windows at once.
"""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.record import record
from basestation.algebra.vector import Selection, as_positions, cached_arange, take_at
from basestation.execution.columns.compact_arrays import ConstantOrArray, ProgressionOrArray
from basestation.execution.columns.integer_arrays import is_consecutive, stable_argsort

NEVER = 2**62
"""A tick or number after all that occur; -NEVER is before all."""
NO_WINDOW = -1
"""The number of a window that does not exist; it has no tuples."""


@record
class WindowBatch:
    """Window `number[i]` is the n[i]-th one with tick[i]. Its range left[i] to right[i], of ticks or rows, is closed."""

    number: IntArray
    tick: IntArray
    n: IntArray
    left: IntArray
    right: IntArray

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: Selection) -> "WindowBatch":
        """Return the windows at positions, in a slice, or under a mask."""
        at = as_positions(which)
        return WindowBatch(*(take_at(column, at) for column in self._columns))

    @property
    def _columns(self) -> tuple[IntArray, ...]:
        return self.number, self.tick, self.n, self.left, self.right

    @property
    def exists(self) -> BoolArray:
        """A mask of the windows that exist."""
        return np.asarray(self.number != NO_WINDOW)

    @property
    def all_exist(self) -> bool:
        """Whether all windows exist."""
        return int(self.number.min(initial=0)) != NO_WINDOW


@record
class RepeatedWindows:
    """The windows of one input in consecutive combinations. A window that stands in several of them is stored once.

    `at` has the number of the window in each combination; it is ascending. None: each combination has a window of its own.
    """

    windows: WindowBatch
    at: IntArray | None = None

    def __len__(self) -> int:
        return len(self.windows) if self.at is None else len(self.at)


def make_windows(tick: IntArray, n: IntArray, left: IntArray, right: IntArray) -> WindowBatch:
    """Return windows that are not issued yet, numbered from 0."""
    return WindowBatch(np.arange(len(tick)), tick, n, left, right)


_NONE: IntArray = np.empty(0, np.int64)
NO_WINDOWS = make_windows(_NONE, _NONE, _NONE, _NONE)


def concatenate_windows(parts: Sequence[WindowBatch]) -> WindowBatch:
    """Concatenate batches of windows, in the order given."""
    some = [part for part in parts if len(part)]
    if len(some) == 1:
        return some[0]
    return WindowBatch(
        np.concatenate([part.number for part in parts]),
        np.concatenate([part.tick for part in parts]),
        np.concatenate([part.n for part in parts]),
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
    )


class IssuedWindows:
    """The windows of one input that were issued, in the order of their numbers; the oldest are dropped."""

    def __init__(self) -> None:
        self._base = 0  # the number of the first one held
        self._tick, self._left, self._right = (ProgressionOrArray(_NONE) for _ in range(3))
        self._n = ConstantOrArray(_NONE)

    @property
    def next(self) -> int:
        """The number that the next window will have."""
        return self._base + len(self._tick)

    def add(self, found: WindowBatch) -> IntArray:
        """Issue windows, and return their numbers."""
        first = self.next
        self._tick.extend(found.tick)
        self._n.extend(found.n)
        self._left.extend(found.left)
        self._right.extend(found.right)
        return cached_arange(len(found), first)

    def of(self, numbers: IntArray) -> WindowBatch:
        """Return the windows with these numbers; for NO_WINDOW one with an empty range."""
        following = is_consecutive(numbers) and int(numbers[0]) != NO_WINDOW
        first = int(numbers[0]) - self._base if following else 0
        at = slice(first, first + len(numbers)) if following else numbers - self._base
        if following or int(numbers.min(initial=0)) != NO_WINDOW:
            return WindowBatch(numbers, *(column[at] for column in self._columns))
        found, exists = [np.full(len(numbers), blank) for blank in (-NEVER, 1, 1, 0)], numbers != NO_WINDOW
        for out, column in zip(found, self._columns, strict=True):
            out[exists] = column[(numbers - self._base)[exists]]
        return WindowBatch(numbers, *found)

    def repeated(self, numbers: IntArray) -> RepeatedWindows:
        """Return the windows with these numbers, one for each of consecutive combinations."""
        more = (numbers[1:] - numbers[:-1]).view(np.uint64)  # a negative step becomes very large
        if not len(numbers) or int(numbers[0]) == NO_WINDOW or more.max(initial=0) > 1:
            return RepeatedWindows(self.of(numbers))
        first, end = int(numbers[0]), int(numbers[-1]) + 1
        return RepeatedWindows(self._between(first, end), None if end - first == len(numbers) else numbers)

    def since(self, number: int) -> WindowBatch:
        """Return all windows from a number on."""
        return self._between(max(number, self._base), self.next)

    def _between(self, first: int, end: int) -> WindowBatch:
        """Return the windows numbered `first` to before `end`."""
        at = slice(first - self._base, end - self._base)
        return WindowBatch(cached_arange(end - first, first), *(column[at] for column in self._columns))

    @property
    def _columns(self) -> tuple[ProgressionOrArray | ConstantOrArray, ...]:
        return self._tick, self._n, self._left, self._right

    def forget(self, first: int) -> None:
        """Drop the windows with smaller numbers."""
        count = first - self._base
        if count > 0:
            for column in self._columns:
                column.drop(count)
            self._base = first


def expand_ranges(first: IntArray, counts: IntArray) -> IntArray:
    """Return first[0], first[0] + 1, … (counts[0] numbers), first[1], …"""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: IntArray = cached_arange(total) + np.repeat(first - (ends - counts), counts)
    return numbers


def merge_ranges(first: IntArray, counts: IntArray) -> tuple[IntArray, IntArray | slice]:
    """Merge ranges of counts[i] numbers from first[i] on.

    Returns (the position of the start of each range among the merged numbers, the merged numbers: distinct and ascending).
    If all numbers from the least to the greatest are fewer than the ranges contain together, these are returned as a slice.
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


def select_ranges(first: IntArray, counts: IntArray) -> IntArray | slice:
    """Return the numbers of ranges like `expand_ranges`; as a slice if each range begins where the one before ends."""
    if len(first) and (first[1:] == first[:-1] + counts[:-1]).all():
        return slice(int(first[0]), int(first[-1] + counts[-1]))
    return expand_ranges(first, counts)

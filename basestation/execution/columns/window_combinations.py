"""WindowCombinations: the windows of a block as columns, each a combination of windows of its inputs.

`AnsweredWindows` is the list of those that were answered and may still change.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.vector import Selection, as_positions, take_at
from basestation.execution import thresholds
from basestation.execution.columns.compact_arrays import ConstantOrArray, ProgressionOrArray
from basestation.execution.columns.integer_arrays import as_slice, is_consecutive, rank_distinct
from basestation.execution.columns.window_batch import NEVER

_NONE: IntArray = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class WindowCombinations:
    """Window i is the n[i]-th one made at tick[i]; parts[i, k] is the number of its window of input k."""

    number: IntArray  # among all windows of the block, from 0
    tick: IntArray
    n: IntArray
    parts: IntArray  # shape (windows, inputs)
    t: AnyArray  # the variables of loops, None elsewhere
    withdrawn: BoolArray  # answered early (semantics 11), and then there was no such window

    def __len__(self) -> int:
        return len(self.number)

    def take(self, which: Selection) -> "WindowCombinations":
        """Return the windows at positions, in a slice, or under a mask."""
        at = as_positions(which)
        at = at if isinstance(at, slice) else as_slice(at)
        return WindowCombinations(*(take_at(column, at) for column in self.columns))

    @property
    def columns(self) -> tuple[AnyArray, ...]:
        """All columns, in the order of the fields."""
        return self.number, self.tick, self.n, self.parts, self.t, self.withdrawn

    def keys(self) -> list[tuple[int, int, object]]:
        """Return (tick, n, t) of each window."""
        return list(zip(self.tick.tolist(), self.n.tolist(), self.t.tolist(), strict=True))

    def in_order(self) -> "WindowCombinations":
        """Return the windows ordered by (tick, n)."""
        order = np.lexsort((self.n, self.tick))
        return self if (order[1:] > order[:-1]).all() else self.take(order)


def concatenate_combinations(parts: Sequence[WindowCombinations]) -> WindowCombinations:
    """Concatenate combinations of windows, in the order given."""
    return WindowCombinations(*(np.concatenate(of) for of in zip(*(part.columns for part in parts), strict=True)))


def merge_with_positions(
    windows: WindowCombinations, others: WindowCombinations
) -> tuple[WindowCombinations, IntArray, IntArray]:
    """Merge as many windows as others.

    Returns (all windows, each once; the position of each of `windows` there; the position of each of `others` there).
    """
    count = len(windows)
    if (others.number[1:] == windows.number[:-1]).all():  # each with the one before it
        return concatenate_combinations([others.take(slice(0, 1)), windows]), np.arange(1, count + 1), np.arange(count)
    both = concatenate_combinations([windows, others])
    numbers, place = rank_distinct(both.number)
    first = np.empty(len(numbers), np.int64)
    first[place] = np.arange(len(both))
    return both.take(first), place[:count], place[count:]


class AnsweredWindows:
    """The answered windows of a block in the order of their keys (tick, n); the oldest are dropped."""

    def __init__(self, width: int) -> None:
        """`width` is the number of inputs."""
        self._start_with(
            WindowCombinations(
                _NONE, _NONE, _NONE, np.empty((0, width), np.int64), np.empty(0, object), np.empty(0, bool)
            )
        )
        self.none = self.all()
        self._numbered = True  # numbers ascend as keys do

    def _start_with(self, windows: WindowCombinations) -> None:
        self._columns: tuple[ProgressionOrArray | ConstantOrArray, ...] = (
            ProgressionOrArray(windows.number), ProgressionOrArray(windows.tick), ConstantOrArray(windows.n),
            ConstantOrArray(windows.t), ConstantOrArray(windows.withdrawn), *map(ProgressionOrArray, windows.parts.T),
        )  # fmt: skip
        self._all: WindowCombinations | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_all": None}

    def __len__(self) -> int:
        return len(self._columns[0])

    def all(self) -> WindowCombinations:
        """Return all windows that are held."""
        if self._all is None:
            self._all = self.take(slice(0, len(self)))
        return self._all

    def take(self, which: IntArray | slice) -> WindowCombinations:
        """Return the windows at positions, or in a slice."""
        columns: list[Any] = [column[which] for column in self._columns]
        number, tick, n, t, withdrawn, *parts = columns
        return WindowCombinations(number, tick, n, np.stack(parts, axis=1), t, withdrawn)

    def add(self, windows: WindowCombinations) -> WindowCombinations:
        """Add new windows, which are in order; some may belong before older ones. Returns the same windows."""
        last = self.take(slice(max(0, len(self) - 1), len(self)))
        all_values = windows.number, windows.tick, windows.n, windows.t, windows.withdrawn, *windows.parts.T
        for column, values in zip(self._columns, all_values, strict=True):
            column.extend(values)
        self._all = None
        if len(last) and (windows.tick[0], windows.n[0]) < (last.tick[0], last.n[0]):
            self.set(self.all().in_order())
        return windows

    def set(self, windows: WindowCombinations) -> None:
        """Hold these windows instead."""
        self._start_with(windows)
        self._numbered = bool((windows.number[1:] > windows.number[:-1]).all())

    def drop(self, count: int) -> None:
        """Drop the first `count` windows."""
        for column in self._columns:
            column.drop(count)
        self._all = None

    def find(self, ticks: IntArray, n: IntArray) -> IntArray:
        """Return the position of the window with each key; -1 if there is none."""
        if not len(self):
            return np.full(len(ticks), -1)
        last = self.take(slice(max(0, len(self) - len(ticks)), len(self)))
        if np.array_equal(last.tick, ticks) and np.array_equal(last.n, n):
            return np.arange(max(0, len(self) - len(ticks)), len(self))
        held = self.all()
        at = np.searchsorted(held.tick, ticks)
        if (held.tick[1:] == held.tick[:-1]).any():
            room = max(int(held.n.max()), int(n.max(initial=0))) + 1
            at = np.searchsorted(np.searchsorted(held.tick, held.tick) * room + held.n, at * room + n)
        at = np.minimum(at, len(held) - 1)
        return np.where((held.tick[at] == ticks) & (held.n[at] == n), at, -1)

    def between(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Return (first, end): the positions of the windows with ticks low[i] to high[i]."""
        least, begin = int(low.min(initial=NEVER)), max(0, len(self) - thresholds.PACKED_VALUES)
        if begin and int(self._columns[1][slice(begin, begin + 1)][0]) >= least:
            begin = 0  # older ones are read only if they are asked for
        ticks = self._columns[1][slice(begin, len(self))]
        return begin + np.searchsorted(ticks, low), begin + np.searchsorted(ticks, high, "right")

    def places(self, windows: WindowCombinations) -> IntArray:
        """Return the position of each window; where a withdrawn one would be inserted."""
        return self._places(windows, after=False)

    def places_behind(self, windows: WindowCombinations) -> IntArray:
        """Return the position after each window."""
        return self._places(windows, after=True)

    def _places(self, windows: WindowCombinations, after: bool) -> IntArray:
        if self._numbered and not windows.withdrawn.any():
            numbers = self._columns[0].values
            if is_consecutive(numbers):
                at: IntArray = np.clip(windows.number - numbers[0], 0, len(numbers))
            else:
                at = np.searchsorted(numbers, windows.number)
            return at + int(after)
        held = self.all()
        keys = list(zip(held.tick.tolist(), held.n.tolist(), strict=True))
        wanted = zip(windows.tick.tolist(), windows.n.tolist(), strict=True)
        find = bisect_right if after else bisect_left
        return np.array([find(keys, key) for key in wanted], np.int64)

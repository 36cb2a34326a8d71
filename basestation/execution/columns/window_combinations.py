"""Combined: the windows of a block as columns, and those of them that were answered, in order."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, fields

import numpy as np

from basestation.algebra.vector import as_positions, take_at
from basestation.execution.columns.growable_array import ConstantOrArray, GrowableArray
from basestation.execution.columns.integer_arrays import as_slice, is_consecutive, rank_distinct

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class WindowCombinations:
    """Made at `tick`, the n-th of it; `parts` has the number of its window of each input, a column for each."""

    number: np.ndarray  # among all windows of the block, from 0
    tick: np.ndarray
    n: np.ndarray
    parts: np.ndarray
    t: np.ndarray  # the variables of loops, None elsewhere
    withdrawn: np.ndarray  # it was answered early (11), and then it turned out that there is no such window

    def __len__(self):
        return len(self.number)

    def take(self, which):
        """Those at positions, in a slice, or under a mask."""
        which = as_positions(which)
        which = which if isinstance(which, slice) else as_slice(which)
        return WindowCombinations(*(take_at(getattr(self, name), which) for name in _COLUMNS))

    def keys(self):
        return list(zip(self.tick.tolist(), self.n.tolist(), self.t.tolist(), strict=True))

    def in_order(self):
        order = np.lexsort((self.n, self.tick))
        return self if (order[1:] > order[:-1]).all() else self.take(order)


_COLUMNS = tuple(field.name for field in fields(WindowCombinations))
_KIND = dict.fromkeys(("n", "t", "withdrawn"), ConstantOrArray)


def concatenate_combinations(parts):
    """All windows of all parts, one after another."""
    return WindowCombinations(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


def merge_with_positions(windows, others):
    """(the windows of both, each once; the place of each of the windows; of each of the others), of as many others."""
    count = len(windows)
    if (others.number[1:] == windows.number[:-1]).all():  # each with the one before it
        return concatenate_combinations([others.take(slice(0, 1)), windows]), np.arange(1, count + 1), np.arange(count)
    both = concatenate_combinations([windows, others])
    numbers, place = rank_distinct(both.number)
    first = np.empty(len(numbers), np.int64)
    first[place] = np.arange(len(both))
    return both.take(first), place[:count], place[count:]


class AnsweredWindows:
    """The answered windows of a block in the order of their keys, (tick, n); the oldest are let go of."""

    def __init__(self, width):
        blank = {"parts": np.empty((0, width), np.int64), "t": np.empty(0, object), "withdrawn": np.empty(0, bool)}
        self._columns = [_KIND.get(name, GrowableArray)(blank.get(name, _NONE)) for name in _COLUMNS]
        self._all = None
        self.none = self.all()
        self._numbered = True  # numbers ascend like keys

    def __len__(self):
        return len(self._columns[0])

    def all(self):
        if self._all is None:
            self._all = WindowCombinations(*(grown.values for grown in self._columns))
        return self._all

    def add(self, windows):
        """Take new windows in, in order; some may belong before older ones. They are given back, as they are held if they can be."""
        last = len(self) - 1
        key = (self.all().tick[last], self.all().n[last]) if len(self) else None
        for grown, name in zip(self._columns, _COLUMNS, strict=True):
            grown.extend(getattr(windows, name))
        self._all = None
        if key is not None and (windows.tick[0], windows.n[0]) < key:
            self.set(self.all().in_order())
            return windows
        return self.all().take(slice(last + 1, None))

    def set(self, windows):
        """These instead of all."""
        self._columns = [_KIND.get(name, GrowableArray)(getattr(windows, name)) for name in _COLUMNS]
        self._all = None
        self._numbered = bool((windows.number[1:] > windows.number[:-1]).all())

    def drop(self, count):
        for grown in self._columns:
            grown.drop(count)
        self._all = None

    def find(self, ticks, n):
        """Where the windows of some keys are; -1 where there is none."""
        held = self.all()
        if not len(held):
            return np.full(len(ticks), -1)
        last = slice(max(0, len(held) - len(ticks)), None)
        if np.array_equal(held.tick[last], ticks) and np.array_equal(held.n[last], n):
            return np.arange(len(held))[last]
        at = np.searchsorted(held.tick, ticks)
        if (held.tick[1:] == held.tick[:-1]).any():
            room = max(int(held.n.max()), int(n.max(initial=0))) + 1
            at = np.searchsorted(np.searchsorted(held.tick, held.tick) * room + held.n, at * room + n)
        at = np.minimum(at, len(held) - 1)
        return np.where((held.tick[at] == ticks) & (held.n[at] == n), at, -1)

    def places(self, windows):
        """Where windows are; where one that went away would be."""
        return self._places(windows, 0)

    def places_behind(self, windows):
        """Where those that follow windows are."""
        return self._places(windows, 1)

    def _places(self, windows, behind):
        held = self.all()
        if self._numbered and not windows.withdrawn.any():
            if is_consecutive(held.number):
                return np.clip(windows.number - held.number[0], 0, len(held)) + behind
            return np.searchsorted(held.number, windows.number) + behind
        keys = list(zip(held.tick.tolist(), held.n.tolist(), strict=True))
        wanted = zip(windows.tick.tolist(), windows.n.tolist(), strict=True)
        side = bisect_right if behind else bisect_left
        return np.array([side(keys, key) for key in wanted], np.int64)

"""Frame: the tuples of several windows at once, as columns.

`window` says for each tuple which of the windows it is in, by their numbers 0, 1, …; tuples of one window stand together,
in their order. `tick` and `second` are what FIRST and LAST go by (10.5); they are there only where the tuples come
straight from one stream.
"""

from dataclasses import replace

import numpy as np

from basestation.algebra.dictionary_vector import DictionaryVector
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.record import record
from basestation.algebra.vector import Vector, all_true, as_positions, cached_arange, take_at, unique_by_identity
from basestation.execution.columns.bags import fits_table, subtract_bag, subtract_by_counts
from basestation.execution.columns.integer_arrays import as_slice, is_consecutive
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_batch import select_ranges


@record
class WindowContents:
    windows: int  # how many windows there are, empty ones too
    window: np.ndarray
    columns: dict[int, Vector]
    tick: np.ndarray | None = None
    second: np.ndarray | None = None

    def __len__(self):
        return len(self.window)

    def take(self, which):
        which = as_positions(which)
        order = () if self.tick is None else (take_at(self.tick, which), take_at(self.second, which))
        return WindowContents(
            self.windows, take_at(self.window, which), {id: v.take(which) for id, v in self.columns.items()}, *order
        )

    def with_columns(self, columns):
        return replace(self, columns=columns)

    def parted(self, parts, ids):
        """Some tuples of it, part by part, with some columns: the windows of one part stand before those of the next."""
        at = np.concatenate(parts)
        before = np.repeat(np.arange(len(parts)) * self.windows, list(map(len, parts)))
        order = () if self.tick is None else (self.tick[at], self.second[at])
        columns = {id: self.columns[id].take(at) for id in ids}
        return WindowContents(len(parts) * self.windows, before + self.window[at], columns, *order)

    @property
    def evaluation(self):
        return Evaluation(self.columns, len(self))

    def bounds(self):
        """Where each window begins and ends."""
        if len(self) == self.windows and is_consecutive(self.window):  # one in each
            return cached_arange(self.windows + 1)
        if _MANY * self.windows < len(self):
            return np.searchsorted(self.window, np.arange(self.windows + 1))
        each = len(self) // max(self.windows, 1)
        if each * self.windows == len(self) and self._alike(each):
            return np.arange(self.windows + 1) * each
        found = np.zeros(self.windows + 1, np.int64)
        np.cumsum(np.bincount(self.window, minlength=self.windows), out=found[1:])
        return found

    def _alike(self, each):
        """Whether there are so many tuples in each window."""
        numbers = np.arange(self.windows)
        return not each or all_true((self.window[::each] == numbers) & (self.window[each - 1 :: each] == numbers))


_MANY = 16  # with more tuples in a window than this, their edges are found sooner by halving than by counting


def factorize(vectors, length):
    """A number for each row, equal where all values are equal, null with null (5.7, 6.1); and how many there can be."""
    code, count = np.zeros(length, np.int64), 1
    for vector in vectors:
        if isinstance(vector, DictionaryVector) and vector.has_few_entries:
            some = vector.dictionary
            some.entry_ids = some.entry_ids or _numbered(some.values)
            more, size = some.entry_ids[0].take(vector.codes), some.entry_ids[1]
        else:
            more, size = _numbered(vector.values)
        if vector.valid is not None:
            more, size = np.where(vector.valid, more + 1, 0), size + 1
        if count > 1:
            code = code * size
            code += more
        else:
            code = more
        count *= size
        if not fits_table(count, length):
            _, code = np.unique(code, return_inverse=True)
            count = int(code.max(initial=-1)) + 1
    return code, max(count, 1)


def _numbered(values):
    """A number for each value, equal where they are, and how many there can be."""
    if values.dtype == object:
        numbers = {}
        some, place = unique_by_identity(values)
        code = np.array([numbers.setdefault(value, len(numbers)) for value in some], np.int64)
        return code[place], max(1, len(numbers))
    if values.dtype == np.int64 and len(values):
        low, high = int(values.min()), int(values.max())
        if fits_table(high - low + 1, len(values)):
            return values - low, high - low + 1
    found, code = np.unique(values, return_inverse=True)
    return code, max(1, len(found))


def diff_both_ways(left, right):
    """Where rows are (of left, of right): what is in left and not in right, and the other way round, window by window.

    Each right tuple removes the first equal left one, and the other way round, as `\\` does (6.1, 6.4).
    """
    mine, theirs, room = _keys(left, right)
    return subtract_bag(mine, theirs, room), subtract_bag(theirs, mine, room)


def subtract_contents(left, right):
    """Where the rows are that left has and right has not: the first of both."""
    return subtract_bag(*_keys(left, right))


def diff_windows(frame, mine, theirs):
    """What some windows of a Frame have that others of it have not, in order: a window for each pair of their numbers."""
    code, count = factorize(list(frame.columns.values()), len(frame))
    keys = frame.window * count
    keys += code
    more, rows = _rows(frame, mine)
    if fits_table(frame.windows * count, len(frame)):
        counts = np.bincount(keys, minlength=frame.windows * count).reshape(-1, count)
        own = keys[rows]
        own -= more * count
        left = subtract_by_counts(own, *(counts[as_slice(of)].ravel() for of in (mine, theirs)))
    else:
        theirs_more, others = _rows(frame, theirs)
        left = subtract_bag(keys[rows] - more * count, keys[others] - theirs_more * count, len(mine) * count)
    columns = {id: vector.take(rows).take(left) for id, vector in frame.columns.items()}
    return WindowContents(len(mine), (frame.window[rows] - more).take(left), columns)


def _rows(frame, windows):
    """Of all rows of some windows, one window after another: (how much the numbers of their windows are more than the places
    of these, the rows in a slice or as positions)."""
    if is_consecutive(windows):
        first = int(windows[0])
        return first, slice(*np.searchsorted(frame.window, (first, first + len(windows))).tolist())
    bounds = frame.bounds()
    sizes = (bounds[1:] - bounds[:-1])[windows]
    return np.repeat(windows - np.arange(len(windows)), sizes), select_ranges(bounds[windows], sizes)


def _keys(left, right):
    """Numbers of the rows of both, equal where window and values are, and how many there can be."""
    if not len(left) or not len(right):  # nothing is removed
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64), 1
    both = [
        concatenate_vectors([left.columns[id], right.columns[other]])
        for id, other in zip(left.columns, right.columns, strict=True)
    ]
    window = np.concatenate([left.window, right.window])
    code, count = factorize(both, len(window))
    keys = window * count + code
    return keys[: len(left)], keys[len(left) :], left.windows * count

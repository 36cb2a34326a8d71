"""WindowContents: the tuples of several windows at once, as columns; and the bag difference of such contents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.dictionary_vector import DictionaryVector
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.record import record
from basestation.algebra.vector import (
    Selection,
    Vector,
    all_true,
    as_positions,
    cached_arange,
    take_at,
    unique_by_identity,
)
from basestation.execution import thresholds
from basestation.execution.columns.bags import fits_table, subtract_bag, subtract_by_counts
from basestation.execution.columns.integer_arrays import as_slice, is_consecutive
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_batch import select_ranges


@record
class WindowContents:
    """Tuple i is in window window[i] of `windows` windows, numbered from 0, some of which may be empty.

    The tuples of a window stand together, in its order. FIRST and LAST go by (tick, second) (semantics 10.5); these columns are
    present only if the tuples come straight from one stream.
    """

    windows: int
    window: IntArray
    columns: Mapping[int, Vector]
    tick: IntArray | None = None
    second: IntArray | None = None

    def __len__(self) -> int:
        return len(self.window)

    def take(self, which: Selection) -> "WindowContents":
        """Return the tuples at positions, in a slice, or under a mask."""
        at = as_positions(which)
        return WindowContents(
            self.windows,
            take_at(self.window, at),
            {id: vector.take(at) for id, vector in self.columns.items()},
            None if self.tick is None else take_at(self.tick, at),
            None if self.second is None else take_at(self.second, at),
        )

    def with_columns(self, columns: Mapping[int, Vector]) -> "WindowContents":
        """Return the same tuples with other columns."""
        return replace(self, columns=columns)

    def select_windows(self, windows: IntArray) -> "WindowContents":
        """Return some windows, numbered by their position in `windows`, which are ascending."""
        bounds = self.bounds()
        sizes = bounds[windows + 1] - bounds[windows]
        found = self.take(select_ranges(bounds[windows], sizes))
        return replace(found, windows=len(windows), window=np.repeat(np.arange(len(windows)), sizes))

    def take_parts(self, parts: Sequence[IntArray], ids: set[int]) -> "WindowContents":
        """Return several selections of tuples with some columns: the windows of each part follow those of the part before.

        `parts` has positions, `ids` the columns.
        """
        at = np.concatenate(parts)
        before = np.repeat(np.arange(len(parts)) * self.windows, list(map(len, parts)))
        columns = {id: self.columns[id].take(at) for id in ids}
        tick, second = (None if order is None else order[at] for order in (self.tick, self.second))
        return WindowContents(len(parts) * self.windows, before + self.window[at], columns, tick, second)

    @property
    def evaluation(self) -> Evaluation:
        """Evaluates expressions over the tuples."""
        return Evaluation(self.columns, len(self))

    def bounds(self) -> IntArray:
        """Return windows + 1 positions: window w has the tuples from bounds[w] to before bounds[w + 1]."""
        if len(self) == self.windows and is_consecutive(self.window):  # one tuple in each
            return cached_arange(self.windows + 1)
        if thresholds.BINARY_SEARCH_ROWS * self.windows < len(self):
            return np.searchsorted(self.window, np.arange(self.windows + 1))
        size = len(self) // max(self.windows, 1)
        if size * self.windows == len(self) and self._all_have(size):
            return np.arange(self.windows + 1) * size
        found = np.zeros(self.windows + 1, np.int64)
        np.cumsum(np.bincount(self.window, minlength=self.windows), out=found[1:])
        return found

    def _all_have(self, size: int) -> bool:
        """Return whether each window has `size` tuples, given that there are windows * size tuples."""
        numbers = np.arange(self.windows)
        return not size or all_true((self.window[::size] == numbers) & (self.window[size - 1 :: size] == numbers))


def factorize(vectors: Sequence[Vector], length: int) -> tuple[IntArray, int]:
    """Return (a code for each row, how many codes there can be).

    Codes are equal exactly where all values are; null equals null (semantics 5.7, 6.1).
    """
    code, count = np.zeros(length, np.int64), 1
    for vector in vectors:
        if isinstance(vector, DictionaryVector) and vector.has_few_entries:
            entries = vector.dictionary
            if entries.entry_ids is None:
                entries.entry_ids = _factorize_values(entries.values)
            more, size = entries.entry_ids[0].take(vector.codes), entries.entry_ids[1]
        else:
            more, size = _factorize_values(vector.values)
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


def _factorize_values(values: AnyArray) -> tuple[IntArray, int]:
    """Return (a code for each value, how many codes there can be)."""
    if values.dtype == object:
        numbers: dict[object, int] = {}
        some, place = unique_by_identity(values)
        code = np.array([numbers.setdefault(value, len(numbers)) for value in some], np.int64)
        return code[place], max(1, len(numbers))
    if values.dtype == np.int64 and len(values):
        low, high = int(values.min()), int(values.max())
        if fits_table(high - low + 1, len(values)):
            return values - low, high - low + 1
    found, code = np.unique(values, return_inverse=True)
    return code, max(1, len(found))


def diff_both_ways(left: WindowContents, right: WindowContents) -> tuple[IntArray, IntArray]:
    """Return the positions (in left, in right) of the rows that only one side has, window by window.

    Each right row removes the first equal left one, and the other way round, as `\\` does (semantics 6.1, 6.4).
    """
    mine, theirs, room = _row_keys(left, right)
    return subtract_bag(mine, theirs, room), subtract_bag(theirs, mine, room)


def subtract_contents(left: WindowContents, right: WindowContents) -> IntArray:
    """Return the positions of the rows that left has and right has not."""
    return subtract_bag(*_row_keys(left, right))


def diff_windows(frame: WindowContents, mine: IntArray, theirs: IntArray) -> WindowContents:
    """Return the bag difference of window mine[i] and window theirs[i] of the same contents, as window i, in order."""
    code, count = factorize(list(frame.columns.values()), len(frame))
    keys = frame.window * count
    keys += code
    shift, rows = _rows_of(frame, mine)
    if fits_table(frame.windows * count, len(frame)):
        counts = np.bincount(keys, minlength=frame.windows * count).reshape(-1, count)
        own = keys[rows]
        own -= shift * count
        left = subtract_by_counts(own, counts[as_slice(mine)].ravel(), counts[as_slice(theirs)].ravel())
    else:
        their_shift, others = _rows_of(frame, theirs)
        left = subtract_bag(keys[rows] - shift * count, keys[others] - their_shift * count, len(mine) * count)
    columns = {id: vector.take(rows).take(left) for id, vector in frame.columns.items()}
    return WindowContents(len(mine), (frame.window[rows] - shift).take(left), columns)


def _rows_of(frame: WindowContents, windows: IntArray) -> tuple[IntArray | int, IntArray | slice]:
    """Select the rows of some windows, one window after another.

    Returns (by how much the window of each row exceeds its position in `windows`, the rows).
    """
    if is_consecutive(windows):
        first = int(windows[0])
        return first, slice(*np.searchsorted(frame.window, (first, first + len(windows))).tolist())
    bounds = frame.bounds()
    sizes = (bounds[1:] - bounds[:-1])[windows]
    return np.repeat(windows - np.arange(len(windows)), sizes), select_ranges(bounds[windows], sizes)


def _row_keys(left: WindowContents, right: WindowContents) -> tuple[IntArray, IntArray, int]:
    """Return (keys of the left rows, keys of the right rows, how many keys there can be).

    Keys are equal exactly where window and values are. If one side is empty, no row is removed and all keys are 0.
    """
    if not len(left) or not len(right):
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64), 1
    both = [
        concatenate_vectors([left.columns[id], right.columns[other]])
        for id, other in zip(left.columns, right.columns, strict=True)
    ]
    window = np.concatenate([left.window, right.window])
    code, count = factorize(both, len(window))
    keys = window * count + code
    return keys[: len(left)], keys[len(left) :], left.windows * count

"""Moving: differences of windows over one stream: of those that overlap, what only one has is at their ends.

The ends of all windows are one stretch of the stream, mostly: what came into one window goes out of a later one. So each row is
looked at once, whatever the number of its windows, and ends are ranges of places among these rows.
"""

import numpy as np

from basestation.execution.columns.bags import subtract_bag
from basestation.execution.columns.integer_arrays import locate_ranges
from basestation.execution.columns.window_batch import WindowBatch, expand_ranges, merge_ranges, select_ranges
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.relational.window_delta import apply_steps, find_mixed_windows, find_row_steps, restore_order
from basestation.execution.windowing.stream_windows import RowWindows, TimeWindows, find_entry_order


class SlidingDelta:
    """`steps` are the selections and projections above the windows of one input."""

    def __init__(self, input, steps):
        self._input, self._steps = input, steps

    def overlap(self, stands, mine, theirs):
        """Whether some of the windows hold the same; what both ranges hold need not have arrived for both (3.6)."""
        return not self._input.has_late_appends and bool(
            _overlapping(stands[0].take(mine), stands[0].take(theirs)).any()
        )

    def except_all(self, stands, mine, theirs):
        """What windows have that others have not, in order; `stands` has the windows of the one input."""
        mine, theirs = stands[0].take(mine), stands[0].take(theirs)
        came, went = _ends(mine, theirs), _ends(theirs, mine)
        reached = self._reached(*(np.concatenate(each) for each in zip(came[1:], went[1:], strict=True)))
        if reached is None:
            return apply_steps(self._input.empty(len(mine)), self._steps)
        tuples, frame, first, counts = reached
        code, count = factorize(list(frame.columns.values()), len(frame))
        many, straight = len(came[0]), self._input.in_order
        window, rows = _spread(came[0], first[:many], counts[:many])
        other, others = _spread(went[0], first[many:], counts[many:])
        if not straight:
            piece, rows = np.repeat(np.arange(many), counts[:many]), expand_ranges(first[:many], counts[:many])
            _, order = find_entry_order(tuples.take(frame.window[rows]), piece, self._input.stream)
            rows = rows if order is None else rows[order]
        left = subtract_bag(window * count + code[rows], other * count + code[others], len(mine) * count)
        columns = {id: vector.take(rows).take(left) for id, vector in frame.columns.items()}
        left = WindowContents(len(mine), window.take(left), columns)
        doubtful = _overlapping(mine, theirs)
        if straight:
            doubtful &= mine.left < theirs.left  # else what came stands behind what stayed
        if doubtful.any():
            doubtful &= find_mixed_windows(left)
        if not doubtful.any():
            return left
        edges = np.where(doubtful, mine.left, 1), np.where(doubtful, mine.right, 0)
        whole = self._input.content(WindowBatch(mine.number, mine.tick, mine.n, *edges))
        return restore_order(left, doubtful, apply_steps(whole, self._steps))

    def _reached(self, left, right):
        """(the tuples that some ranges reach, each once; what becomes of them, as a Frame with a window for each of the tuples;
        where the rows of each range begin in it, and how many they are). None where there never was a tuple."""
        tuples, numbers = self._input.ordered_tuples()
        if tuples is None:
            return None
        first, counts = locate_ranges(numbers, left, right)
        first, at = merge_ranges(first, counts)
        tuples = tuples.take(at)
        frame = apply_steps(
            WindowContents(len(tuples), np.arange(len(tuples)), self._input.untagged(tuples)), self._steps
        )
        if len(frame) < len(tuples):
            before = np.zeros(len(tuples) + 1, np.int64)
            np.cumsum(np.bincount(frame.window, minlength=len(tuples)), out=before[1:])
            first, counts = before[first], before[first + counts] - before[first]
        return tuples, frame, first, counts


def _ends(mine, theirs):
    """The ranges of windows that lie before and behind the others: (of which window each is, left, right)."""
    empty = theirs.left > theirs.right
    left = np.stack([mine.left, np.where(empty, 1, np.maximum(mine.left, theirs.right + 1))], axis=1).ravel()
    before = np.where(empty, mine.right, np.minimum(mine.right, theirs.left - 1))
    right = np.stack([before, np.where(empty, 0, mine.right)], axis=1).ravel()
    some = np.flatnonzero(left <= right)
    return some // 2, left[some], right[some]


def _spread(of, first, counts):
    """(to which window each row of some ranges belongs, the rows: a slice or places)."""
    return np.repeat(of, counts), select_ranges(first, counts)


def _overlapping(mine, theirs):
    return np.maximum(mine.left, theirs.left) <= np.minimum(mine.right, theirs.right)


def make_sliding_delta(node, leaves, inputs):
    """Differences of the windows of a block over one stream; None where it is over more, or does more than select and project."""
    if len(inputs) > 1 or type(inputs[0]) not in (TimeWindows, RowWindows):
        return None
    steps = find_row_steps(node, leaves[0])
    return None if steps is None else SlidingDelta(inputs[0], steps)

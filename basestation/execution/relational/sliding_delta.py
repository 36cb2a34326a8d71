"""Moving: differences of windows over one stream: of those that overlap, what only one has is at their ends.

The ends of all windows are one stretch of the stream, mostly: what came into one window goes out of a later one. So each row is
looked at once, whatever the number of its windows, and ends are ranges of places among these rows.
"""

import numpy as np

from basestation.execution.columns.bags import left_of
from basestation.execution.columns.integer_arrays import within
from basestation.execution.columns.window_batch import Wins, merged, ranges, stretch
from basestation.execution.columns.window_contents import Frame, codes
from basestation.execution.relational.window_delta import finished, in_order, mixed, steps_above
from basestation.execution.windowing.stream_windows import RowWindows, TimeWindows, entry_order


class Moving:
    """`steps` are the selections and projections above the windows of one input."""

    def __init__(self, input, steps):
        self._input, self._steps = input, steps

    def overlap(self, stands, mine, theirs):
        """Whether some of the windows hold the same; what both ranges hold need not have arrived for both (3.6)."""
        return not self._input.appends and bool(_overlapping(stands[0].take(mine), stands[0].take(theirs)).any())

    def beyond(self, stands, mine, theirs):
        """What windows have that others have not, in order; `stands` has the windows of the one input."""
        mine, theirs = stands[0].take(mine), stands[0].take(theirs)
        came, went = _ends(mine, theirs), _ends(theirs, mine)
        reached = self._reached(*(np.concatenate(each) for each in zip(came[1:], went[1:], strict=True)))
        if reached is None:
            return finished(self._input.empty(len(mine)), self._steps)
        tuples, frame, first, counts = reached
        code, count = codes(list(frame.columns.values()), len(frame))
        many, straight = len(came[0]), self._input.in_order
        window, rows = _spread(came[0], first[:many], counts[:many])
        other, others = _spread(went[0], first[many:], counts[many:])
        if not straight:
            piece, rows = np.repeat(np.arange(many), counts[:many]), ranges(first[:many], counts[:many])
            _, order = entry_order(tuples.take(frame.window[rows]), piece, self._input.stream)
            rows = rows if order is None else rows[order]
        left = left_of(window * count + code[rows], other * count + code[others], len(mine) * count)
        columns = {id: vector.take(rows).take(left) for id, vector in frame.columns.items()}
        left = Frame(len(mine), window.take(left), columns)
        doubtful = _overlapping(mine, theirs)
        if straight:
            doubtful &= mine.left < theirs.left  # else what came stands behind what stayed
        if doubtful.any():
            doubtful &= mixed(left)
        if not doubtful.any():
            return left
        edges = np.where(doubtful, mine.left, 1), np.where(doubtful, mine.right, 0)
        whole = self._input.content(Wins(mine.number, mine.tick, mine.n, *edges))
        return in_order(left, doubtful, finished(whole, self._steps))

    def _reached(self, left, right):
        """(the tuples that some ranges reach, each once; what becomes of them, as a Frame with a window for each of the tuples;
        where the rows of each range begin in it, and how many they are). None where there never was a tuple."""
        tuples, numbers = self._input.along()
        if tuples is None:
            return None
        first, counts = within(numbers, left, right)
        first, at = merged(first, counts)
        tuples = tuples.take(at)
        frame = finished(Frame(len(tuples), np.arange(len(tuples)), self._input.untagged(tuples)), self._steps)
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
    return np.repeat(of, counts), stretch(first, counts)


def _overlapping(mine, theirs):
    return np.maximum(mine.left, theirs.left) <= np.minimum(mine.right, theirs.right)


def moving(node, leaves, inputs):
    """Differences of the windows of a block over one stream; None where it is over more, or does more than select and project."""
    if len(inputs) > 1 or type(inputs[0]) not in (TimeWindows, RowWindows):
        return None
    steps = steps_above(node, leaves[0])
    return None if steps is None else Moving(inputs[0], steps)

"""Sliding delta: bag differences of windows over one stream. Of windows that overlap, only the ends differ.

The ends of all windows are mostly one range of the stream: what came into one window leaves a later one. So each row is
read once, however many windows there are, and ends are ranges of positions among these rows.
"""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.node import PlanNode
from basestation.algebra.vector import Selection
from basestation.execution.columns.bags import subtract_bag
from basestation.execution.columns.integer_arrays import locate_ranges
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER, WindowBatch, expand_ranges, merge_ranges, select_ranges
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.interfaces import WindowSource
from basestation.execution.relational.window_delta import (
    RowStep,
    apply_steps,
    find_mixed_windows,
    find_row_steps,
    restore_order,
)
from basestation.execution.windowing.row_windows import RowWindows
from basestation.execution.windowing.time_windows import TimeWindows, find_entry_order


class SlidingDelta:
    """Differences of windows of one input, below selections and projections."""

    def __init__(self, input: TimeWindows | RowWindows, steps: Sequence[RowStep]) -> None:
        """`steps` are the selections and projections above the windows, the lowest first."""
        self._input, self._steps = input, steps

    def overlap(self, windows: WindowBatch, first: IntArray, second: IntArray) -> bool:
        """Whether some of the windows at positions first[i] and second[i] share tuples.

        False with `late append`: a tuple in both ranges may have arrived in time for one of them only (3.6).
        """
        if self._input.has_late_appends:
            return False
        return bool(_overlapping(windows.take(first), windows.take(second)).any())

    def except_all(self, windows: WindowBatch, first_windows: IntArray, second_windows: IntArray) -> WindowContents:
        """The rows that window first_windows[i] has and second_windows[i] has not, in order."""
        self._input.recall(windows)
        mine, theirs = windows.take(first_windows), windows.take(second_windows)
        came, went = _ends(mine, theirs), _ends(theirs, mine)
        reached = self._read(np.concatenate([came[1], went[1]]), np.concatenate([came[2], went[2]]))
        if reached is None:
            return apply_steps(self._input.empty(len(mine)), self._steps)
        tuples, frame, first, counts = reached
        code, count = factorize(list(frame.columns.values()), len(frame))
        count_came, in_order = len(came[0]), self._input.in_order
        window, rows = _spread(came[0], first[:count_came], counts[:count_came])
        other, others = _spread(went[0], first[count_came:], counts[count_came:])
        if not in_order:
            piece, rows = (
                np.repeat(np.arange(count_came), counts[:count_came]),
                expand_ranges(first[:count_came], counts[:count_came]),
            )
            _, order = find_entry_order(tuples.take(frame.window[rows]), piece, self._input.stream)
            rows = rows if order is None else rows[order]
        kept = subtract_bag(window * count + code[rows], other * count + code[others], len(mine) * count)
        columns = {id: vector.take(rows).take(kept) for id, vector in frame.columns.items()}
        left = WindowContents(len(mine), window.take(kept), columns)
        doubtful = _overlapping(mine, theirs)
        if in_order:
            doubtful &= mine.left < theirs.left  # else rows that came are behind rows that stayed
        if doubtful.any():
            doubtful &= find_mixed_windows(left)
        if not doubtful.any():
            return left
        edges = np.where(doubtful, mine.left, 1), np.where(doubtful, mine.right, 0)
        contents = self._input.content(WindowBatch(mine.number, mine.tick, mine.n, *edges))
        if contents is None:
            contents = self._input.empty(len(mine))
        return restore_order(left, doubtful, apply_steps(contents, self._steps))

    def _read(self, left: IntArray, right: IntArray) -> tuple[Tuples, WindowContents, IntArray, IntArray] | None:
        """(the tuples in ranges left[i] to right[i], each once; their rows after the steps, with a window for each tuple;
        where the rows of each range begin; how many they are). None where there never was a tuple."""
        held = self._input.ordered_tuples(int(left.min(initial=NEVER)))
        if held is None:
            return None
        tuples, numbers = held
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


def _ends(mine: WindowBatch, theirs: WindowBatch) -> tuple[IntArray, IntArray, IntArray]:
    """The ranges of windows that lie before and behind the others: (of which window each is, left, right)."""
    empty = theirs.left > theirs.right
    left = np.stack([mine.left, np.where(empty, 1, np.maximum(mine.left, theirs.right + 1))], axis=1).ravel()
    before = np.where(empty, mine.right, np.minimum(mine.right, theirs.left - 1))
    right = np.stack([before, np.where(empty, 0, mine.right)], axis=1).ravel()
    nonempty = np.flatnonzero(left <= right)
    return nonempty // 2, left[nonempty], right[nonempty]


def _spread(of: IntArray, first: IntArray, counts: IntArray) -> tuple[IntArray, Selection]:
    """(the window of each row of some ranges, the rows)."""
    return np.repeat(of, counts), select_ranges(first, counts)


def _overlapping(mine: WindowBatch, theirs: WindowBatch) -> BoolArray:
    return np.maximum(mine.left, theirs.left) <= np.minimum(mine.right, theirs.right)


def make_sliding_delta(
    node: PlanNode, leaves: tuple[PlanNode, ...], inputs: Sequence[WindowSource]
) -> SlidingDelta | None:
    """The SlidingDelta of a block; None where it reads several inputs, or does more than select and project."""
    source = inputs[0]
    if len(inputs) > 1 or not isinstance(source, TimeWindows | RowWindows) or type(source) not in _PLAIN:
        return None
    steps = find_row_steps(node, leaves[0])
    return None if steps is None else SlidingDelta(source, steps)


_PLAIN = (TimeWindows, RowWindows)  # not those of slices or loops

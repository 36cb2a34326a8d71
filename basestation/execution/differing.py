"""Differing: what a window has that another has not, as bags, from what came and what went (SEMANTICS 6.1).

With S the rows of both, came those that only the one window has, went those that only the other has: (S + came) \\\\ (S +
went) is came \\\\ went, as bags. Which of equal rows are left decides their order only (6.4); where rows of several values
are left, and not all that stayed stand before all that came, that order is looked up in S + came.
"""

import numpy as np

from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution import relational
from basestation.execution.bags import occurrence
from basestation.execution.distinct import stable_order
from basestation.execution.frame import Frame, beyond, codes
from basestation.execution.tuples import concatenated
from basestation.execution.windowing import RowWindows, TimeWindows
from basestation.execution.wins import Wins


def steps_above(node, below):
    """The selections and projections above a node, the lowest first; None where there is something else."""
    steps = []
    while node is not below:
        if not isinstance(node, WindowSelect | WindowProject):
            return None
        steps.append(node)
        node = node.child
    return steps[::-1]


def finished(frame, steps):
    """What selections and projections make of rows."""
    for node in steps:
        if isinstance(node, WindowSelect):
            frame = relational.select(frame, node.predicate)
        else:
            frame = relational.project(frame, node.outputs)
    return frame


def mixed(left):
    """The windows in which rows of several values are left."""
    code, _ = codes(list(left.columns.values()), len(left))
    found = np.zeros(left.windows, bool)
    found[left.window[1:][(left.window[1:] == left.window[:-1]) & (code[1:] != code[:-1])]] = True
    return found


def in_order(left, doubtful, candidates):
    """The rows that are left, in the `doubtful` windows in the places that the figures leave them: the last of equal ones.

    `candidates` are rows of these windows in order, all of them at least that are equal to one that is left.
    """
    theirs = left.take(doubtful[left.window])
    both = [concatenated([theirs.columns[id], candidates.columns[id]]) for id in theirs.columns]
    code, count = codes(both, len(theirs) + len(candidates))
    keys = np.concatenate([theirs.window, candidates.window]) * count + code
    wanted, candidate = keys[: len(theirs)], keys[len(theirs) :]
    values, counts = np.unique(wanted, return_counts=True)
    at = np.minimum(np.searchsorted(values, candidate), len(values) - 1)
    many = np.where(values[at] == candidate, counts[at], 0)
    last = occurrence(candidate[::-1])[::-1] < many
    return _merged(left.take(~doubtful[left.window]), candidates.take(last))


def _merged(a, b):
    """Two Frames of the same windows, each window in one of them only."""
    window = np.concatenate([a.window, b.window])
    order = stable_order(window)
    columns = {id: concatenated([a.columns[id], b.columns[id]]).take(order) for id in a.columns}
    return Frame(a.windows, window[order], columns)


# --- over one stream -------------------------------------------------------------------------------------------------


class Moving:
    """Differences of windows over one stream: of those that overlap, what only one has is at their ends."""

    def __init__(self, input, steps):
        self._input, self._steps = input, steps

    def beyond(self, stands, mine, theirs):
        """What windows have that others have not, in order; `stands` has the windows of the one input."""
        mine, theirs = stands[0].take(mine), stands[0].take(theirs)
        came = self._ends(mine, theirs)
        if not len(came):
            return came
        left = came.take(beyond(came, self._ends(theirs, mine)))
        behind = (mine.left >= theirs.left) & self._input.in_order
        doubtful = ~behind & _overlapping(mine, theirs)
        if doubtful.any():
            doubtful &= mixed(left)
        if not doubtful.any():
            return left
        nowhere = Wins(
            mine.number, mine.tick, mine.n, np.where(doubtful, mine.left, 1), np.where(doubtful, mine.right, 0)
        )
        return in_order(left, doubtful, self._content(nowhere))

    def overlap(self, stands, mine, theirs):
        """Whether some of the windows hold the same; what both ranges hold need not have arrived for both (3.6)."""
        return not self._input.appends and bool(_overlapping(stands[0].take(mine), stands[0].take(theirs)).any())

    def _ends(self, mine, theirs):
        """The rows of windows that lie before and behind the others."""
        empty = theirs.left > theirs.right
        left = np.stack([mine.left, np.where(empty, 1, np.maximum(mine.left, theirs.right + 1))], axis=1).ravel()
        before = np.where(empty, mine.right, np.minimum(mine.right, theirs.left - 1))
        right = np.stack([before, np.where(empty, 0, mine.right)], axis=1).ravel()
        some = np.flatnonzero(left <= right)
        of = some // 2
        found = self._content(Wins(mine.number[of], mine.tick[of], mine.n[of], left[some], right[some]))
        return Frame(len(mine), of[found.window], found.columns)

    def _content(self, windows):
        found = self._input.content(windows) if len(windows) else None
        return finished(self._input.empty(len(windows)) if found is None else found, self._steps)


def _overlapping(mine, theirs):
    return np.maximum(mine.left, theirs.left) <= np.minimum(mine.right, theirs.right)


def moving(node, leaves, inputs):
    """Differences of the windows of a block over one stream; None where it is over more, or does more than select and project."""
    if len(inputs) > 1 or type(inputs[0]) not in (TimeWindows, RowWindows):
        return None
    steps = steps_above(node, leaves[0])
    return None if steps is None else Moving(inputs[0], steps)

"""Window delta: the rows that one window has and another has not, as bags, from rows that came and rows that went (semantics 6.1).

With S the rows of both windows, `came` those of the one window only, and `went` those of the other only:
(S + came) except all (S + went) equals came except all went. Which of equal rows are left decides their order only
(6.4). Where rows of several values are left, and not all rows of S are before all of `came`, that order is looked up in
S + came.
"""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.node import PlanNode
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways, factorize
from basestation.execution.relational import row_operators
from basestation.execution.relational.aggregation import aggregate

RowStep = WindowSelect | WindowProject | WindowAggregation
"""An operator above windows that is applied to their rows."""


def find_row_steps(node: PlanNode, below: PlanNode) -> list[RowStep] | None:
    """The selections and projections above a node, the lowest first; None where there is something else."""
    steps: list[RowStep] = []
    while node is not below:
        if not isinstance(node, WindowSelect | WindowProject):
            return None
        steps.append(node)
        node = node.child
    return steps[::-1]


def apply_steps(frame: WindowContents, steps: Sequence[RowStep]) -> WindowContents:
    """The rows after selections, projections and aggregations."""
    for node in steps:
        if isinstance(node, WindowSelect):
            frame = row_operators.select(frame, node.predicate)
        elif isinstance(node, WindowAggregation):
            frame = aggregate(frame, node)
        else:
            frame = row_operators.project(frame, node.outputs)
    return frame


def find_mixed_windows(left: WindowContents) -> BoolArray:
    """A mask of the windows in which rows of several values are left."""
    code, _ = factorize(list(left.columns.values()), len(left))
    found = np.zeros(left.windows, bool)
    found[left.window[1:][(left.window[1:] == left.window[:-1]) & (code[1:] != code[:-1])]] = True
    return found


def restore_order(left: WindowContents, doubtful: BoolArray, candidates: WindowContents) -> WindowContents:
    """The rows that are left, in `doubtful` windows at the positions of the last equal rows.

    `candidates` are rows of these windows in order: at least all that equal a row that is left.
    """
    unordered = left.take(doubtful[left.window])
    both = [concatenate_vectors([unordered.columns[id], candidates.columns[id]]) for id in unordered.columns]
    code, count = factorize(both, len(unordered) + len(candidates))
    keys = np.concatenate([unordered.window, candidates.window]) * count + code
    keys_left, candidate = keys[: len(unordered)], keys[len(unordered) :]
    values, counts = np.unique(keys_left, return_counts=True)
    at = np.minimum(np.searchsorted(values, candidate), len(values) - 1)
    many = np.where(values[at] == candidate, counts[at], 0)
    last = number_occurrences(candidate[::-1])[::-1] < many
    return merge_disjoint(left.take(~doubtful[left.window]), candidates.take(last))


def diff_doubtful_windows(
    added: WindowContents,
    removed: WindowContents,
    doubtful: IntArray,
    after: WindowContents,
    before: WindowContents,
) -> tuple[WindowContents, WindowContents]:
    """The added and the removed rows, those of `doubtful` windows as the difference of all of their rows, in that order.

    Window i of `after` and `before` is doubtful[i]. Which of several equal rows are left decides the order (semantics 6.4), and
    the equal ones may be among the rows that did not change.
    """
    certain = np.ones(added.windows, bool)
    certain[doubtful] = False
    gained, lost = diff_both_ways(after, before)
    found = []
    for rows, whole, left in ((added, after, gained), (removed, before, lost)):
        ordered = WindowContents(
            rows.windows,
            doubtful[whole.window[left]],
            {id: whole.columns[id].take(left) for id in rows.columns},
        )
        found.append(merge_disjoint(rows.take(certain[rows.window]), ordered))
    return found[0], found[1]


def merge_disjoint(a: WindowContents, b: WindowContents) -> WindowContents:
    """The rows of both: of the same windows, each of which has rows in one of them only."""
    window = np.concatenate([a.window, b.window])
    order = stable_argsort(window)
    columns = {id: concatenate_vectors([a.columns[id], b.columns[id]]).take(order) for id in a.columns}
    return WindowContents(a.windows, window[order], columns)

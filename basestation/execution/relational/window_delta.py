"""Differing: what a window has that another has not, as bags, from what came and what went (SEMANTICS 6.1).

With S the rows of both, came those that only the one window has, went those that only the other has: (S + came) \\\\ (S +
went) is came \\\\ went, as bags. Which of equal rows are left decides their order only (6.4); where rows of several values
are left, and not all that stayed stand before all that came, that order is looked up in S + came.
"""

import numpy as np

from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.relational import row_operators
from basestation.execution.relational.aggregation import aggregate


def find_row_steps(node, below):
    """The selections and projections above a node, the lowest first; None where there is something else."""
    steps = []
    while node is not below:
        if not isinstance(node, WindowSelect | WindowProject):
            return None
        steps.append(node)
        node = node.child
    return steps[::-1]


def apply_steps(frame, steps):
    """What selections, projections and aggregations make of rows."""
    for node in steps:
        if isinstance(node, WindowSelect):
            frame = row_operators.select(frame, node.predicate)
        elif isinstance(node, WindowAggregation):
            frame = aggregate(frame, node)
        else:
            frame = row_operators.project(frame, node.outputs)
    return frame


def find_mixed_windows(left):
    """The windows in which rows of several values are left."""
    code, _ = factorize(list(left.columns.values()), len(left))
    found = np.zeros(left.windows, bool)
    found[left.window[1:][(left.window[1:] == left.window[:-1]) & (code[1:] != code[:-1])]] = True
    return found


def restore_order(left, doubtful, candidates):
    """The rows that are left, in the `doubtful` windows in the places that the figures leave them: the last of equal ones.

    `candidates` are rows of these windows in order, all of them at least that are equal to one that is left.
    """
    theirs = left.take(doubtful[left.window])
    both = [concatenate_vectors([theirs.columns[id], candidates.columns[id]]) for id in theirs.columns]
    code, count = factorize(both, len(theirs) + len(candidates))
    keys = np.concatenate([theirs.window, candidates.window]) * count + code
    wanted, candidate = keys[: len(theirs)], keys[len(theirs) :]
    values, counts = np.unique(wanted, return_counts=True)
    at = np.minimum(np.searchsorted(values, candidate), len(values) - 1)
    many = np.where(values[at] == candidate, counts[at], 0)
    last = number_occurrences(candidate[::-1])[::-1] < many
    return _merged(left.take(~doubtful[left.window]), candidates.take(last))


def _merged(a, b):
    """Two Frames of the same windows, each window in one of them only."""
    window = np.concatenate([a.window, b.window])
    order = stable_argsort(window)
    columns = {id: concatenate_vectors([a.columns[id], b.columns[id]]).take(order) for id in a.columns}
    return WindowContents(a.windows, window[order], columns)

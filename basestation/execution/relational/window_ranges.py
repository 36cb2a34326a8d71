"""Stretches: tuples of many windows, each once for all the windows in a row that hold it, and what aggregates make of them.

A tuple that stands in ten windows is told by the first and the last of them; some aggregates need no more.
"""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import Vector, cached_arange
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.relational.aggregation import evaluate_argument, make_aggregate, result_vector
from innet.aggregates.identity_memo import IdentityMemo


@dataclass(frozen=True, slots=True)
class WindowRanges:
    """Of so many windows; `first` and `last` have for each tuple its windows."""

    windows: int
    first: np.ndarray
    last: np.ndarray
    columns: dict[int, Vector]

    def __len__(self):
        return len(self.first)

    def parted(self, parts, ids):
        """Some tuples of it, part by part, with some columns: the windows of one part stand before those of the next."""
        at = np.concatenate(parts)
        before = np.repeat(np.arange(len(parts)) * self.windows, list(map(len, parts)))
        columns = {id: self.columns[id].take(at) for id in ids}
        return WindowRanges(len(parts) * self.windows, before + self.first[at], before + self.last[at], columns)


def can_aggregate_ranges(node):
    """Whether an aggregation over windows can be told from stretches."""
    return not node.grouped and all(make_aggregate(aggregate).can_evaluate_ranges for _, aggregate in node.aggregates)


def aggregate_ranges(stretches, node):
    """One tuple for each window."""
    columns, once = {}, IdentityMemo()
    for column, aggregate in node.aggregates:
        made = make_aggregate(aggregate)
        values, valid = evaluate_argument(aggregate, stretches.columns, len(stretches))
        found = made.evaluate_ranges(stretches.windows, stretches.first, stretches.last, values, valid, once)
        columns[column.id] = result_vector(made, *found)
    return WindowContents(stretches.windows, cached_arange(stretches.windows), columns)

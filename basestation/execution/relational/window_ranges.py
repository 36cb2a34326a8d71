"""Stretches: tuples of many windows, each once for all the windows in a row that hold it, and what aggregates make of them.

A tuple that stands in ten windows is told by the first and the last of them; some aggregates need no more.
"""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import Vector, row
from basestation.execution.columns.window_contents import Frame
from basestation.execution.relational.aggregation import answer, made_for, values_of
from innet.aggregates.state import Once


@dataclass(frozen=True, slots=True)
class Stretches:
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
        return Stretches(len(parts) * self.windows, before + self.first[at], before + self.last[at], columns)


def suffice(node):
    """Whether an aggregation over windows can be told from stretches."""
    return not node.grouped and all(made_for(aggregate).stretches for _, aggregate in node.aggregates)


def aggregate_over(stretches, node):
    """One tuple for each window."""
    columns, once = {}, Once()
    for column, aggregate in node.aggregates:
        made = made_for(aggregate)
        values, valid = values_of(aggregate, stretches.columns, len(stretches))
        found = made.over(stretches.windows, stretches.first, stretches.last, values, valid, once)
        columns[column.id] = answer(made, *found)
    return Frame(stretches.windows, row(stretches.windows), columns)

"""Settling: what came and what is gone in one step of an extent, of each tuple told once."""

import numpy as np

from basestation.algebra.vector import constant
from basestation.execution.columns.tuples import concatenate_tuples


class StepDelta:
    """A tuple may come, get other values and be taken back within one step: `none` are no tuples, with all columns."""

    def __init__(self, none, began):
        """`began`: the number of the first tuple of this step."""
        self._none, self.began = none, began
        self._come, self._gone = [], []

    def insert(self, tuples):
        self._come.append(tuples)

    def remove(self, tuples):
        """With the values that they had."""
        self._gone.append(tuples)

    def settled(self, live):
        """(what came, what is gone, which of what came is new): each with the values it has now, or had before the step.

        `live` tells of a number whether its tuple is seen.
        """
        come, gone = (concatenate_tuples(parts) if parts else self._none for parts in (self._come, self._gone))
        if not len(gone):
            return come, gone, constant(True, len(come))
        come = come.take(_last_of_each(come.ident))
        come = come.take(live[come.ident])
        gone = gone.take(_first_of_each(gone.ident))
        gone = gone.take(gone.ident < self.began)
        return come, gone, ~np.isin(come.ident, gone.ident)


def _last_of_each(idents):
    mask = np.zeros(len(idents), bool)
    mask[len(idents) - 1 - np.unique(idents[::-1], return_index=True)[1]] = True
    return mask


def _first_of_each(idents):
    mask = np.zeros(len(idents), bool)
    mask[np.unique(idents, return_index=True)[1]] = True
    return mask

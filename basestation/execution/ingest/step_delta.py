"""StepDelta: the net change that one step makes to an extent, each tuple once."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import constant
from basestation.execution.columns.sparse_flags import SparseFlags
from basestation.execution.columns.tuples import Tuples, concatenate_tuples


class StepDelta:
    """Collects insertions and removals. A tuple may be inserted, get other values, and be taken back within one step."""

    def __init__(self, none: Tuples, began: int) -> None:
        """`none` has no tuples, and all columns. `began` is the number of the first tuple of this step."""
        self._none, self.began = none, began
        self._inserted: list[Tuples] = []
        self._removed: list[Tuples] = []

    def insert(self, tuples: Tuples) -> None:
        """Add tuples with their new values."""
        self._inserted.append(tuples)

    def remove(self, tuples: Tuples) -> None:
        """Remove tuples; they have the values that they had until now."""
        self._removed.append(tuples)

    def net(self, live: SparseFlags) -> tuple[Tuples, Tuples, BoolArray]:
        """Return (inserted, removed, mask of the inserted tuples that are new).

        Inserted tuples have their values of now, removed ones those before the step. `live` says which tuples streams see.
        """
        inserted, removed = (
            concatenate_tuples(parts) if parts else self._none for parts in (self._inserted, self._removed)
        )
        if not len(removed):
            return inserted, removed, constant(True, len(inserted))
        inserted = inserted.take(_last_of_each(inserted.ident))
        inserted = inserted.take(live[inserted.ident])
        removed = removed.take(_first_of_each(removed.ident))
        removed = removed.take(removed.ident < self.began)
        return inserted, removed, ~np.isin(inserted.ident, removed.ident)


def _last_of_each(idents: IntArray) -> BoolArray:
    mask = np.zeros(len(idents), bool)
    mask[len(idents) - 1 - np.unique(idents[::-1], return_index=True)[1]] = True
    return mask


def _first_of_each(idents: IntArray) -> BoolArray:
    mask = np.zeros(len(idents), bool)
    mask[np.unique(idents, return_index=True)[1]] = True
    return mask

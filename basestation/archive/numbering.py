"""Numbering: the index and the revision of each tuple that goes to an archive."""

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import BY_KEY, Batch, replaced_indexes
from acquisition.extent import Extent, ExtentKind

INDEX, REVISION = "_index", "_revision"
"""Columns that a numbered batch has beside its attributes."""


class TupleNumbers:
    """The last index and the last revision of each extent."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._revised: dict[str, int] = {}

    def number(self, extent: Extent, batch: Batch) -> Batch:
        """Delivered tuples with their numbers: each gets the next index.

        A pushed tuple too far ahead of the clock, which no query sees, gets 0. So an index says how many were taken up to it.
        """
        is_taken = np.ones(len(batch), bool)
        if extent.kind is ExtentKind.PUSHED and extent.ahead is not None:
            is_taken = batch.tick <= batch.arrival + extent.ahead
        index = np.where(is_taken, self._last.get(extent.name, 0) + np.cumsum(is_taken), 0)
        self._last[extent.name] = self._last.get(extent.name, 0) + int(is_taken.sum())
        return _numbered(batch, index, np.zeros(len(batch), np.int64))

    def number_corrections(self, extent: Extent, batch: Batch) -> Batch:
        """Corrections with their numbers: the index of the tuple, 0 by key, and the next revision of the extent.

        An inserted tuple gets the next index. In a sensed extent with corrections it is a revision too: its key may have been corrected.
        """
        replaced = replaced_indexes(batch)
        is_inserted = replaced == 0
        last, revised = self._last.get(extent.name, 0), self._revised.get(extent.name, 0)
        index = np.where(is_inserted, last + np.cumsum(is_inserted), np.where(replaced == BY_KEY, 0, replaced))
        is_revision = ~is_inserted
        if extent.kind is ExtentKind.SENSED:
            is_revision = np.logical_or.accumulate(is_revision | (revised > 0))
        revision = np.where(is_revision, revised + np.cumsum(is_revision), 0)
        self._last[extent.name] = last + int(is_inserted.sum())
        self._revised[extent.name] = revised + int(is_revision.sum())
        return _numbered(batch, index, revision)


def _numbered(batch: Batch, index: IntArray, revision: IntArray) -> Batch:
    columns = {**batch.columns, INDEX: index, REVISION: revision}
    return Batch(batch.tick, batch.site, batch.arrival, batch.weight, columns, batch.valid)

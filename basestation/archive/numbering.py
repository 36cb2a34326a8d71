"""Numbering: the index and the revision of each tuple that goes to an archive."""

import numpy as np

from acquisition.batch import BY_KEY, Batch, replaced_indexes

INDEX, REVISION = "_index", "_revision"
"""Columns that a numbered batch has beside its attributes."""


class TupleNumbers:
    """The last index of each extent, and how often each corrected tuple was corrected."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._revisions: dict[tuple[str, int, int, int], int] = {}

    def number(self, extent: str, batch: Batch) -> Batch:
        """The batch with its numbers. A new tuple gets the next index; a correction keeps that of its tuple, 0 by key."""
        replaced = replaced_indexes(batch)
        is_new = replaced == 0
        last = self._last.get(extent, 0)
        index = np.where(is_new, last + np.cumsum(is_new), np.where(replaced == BY_KEY, 0, replaced))
        revision = np.zeros(len(batch), np.int64)
        for row in np.flatnonzero(~is_new).tolist():
            by_key = index[row] == 0
            key = extent, int(index[row]), int(batch.tick[row]) * by_key, int(batch.site[row]) * by_key
            self._revisions[key] = self._revisions.get(key, 0) + 1
            revision[row] = self._revisions[key]
        self._last[extent] = last + int(is_new.sum())
        columns = {**batch.columns, INDEX: index, REVISION: revision}
        return Batch(batch.tick, batch.site, batch.arrival, batch.weight, columns, batch.valid)

"""Index offsets: the indexes that one query gives to tuples of a stream that it shares with queries that begin at other times."""

import numpy as np

from acquisition.arrays import IntArray


class IndexOffsets:
    """Runs of indexes of the stream. In each run the index of the query is that of the stream plus one offset."""

    def __init__(self) -> None:
        self._first = np.empty(0, np.int64)  # the first index of each run, ascending
        self._offset = np.empty(0, np.int64)

    def add(self, shared: IntArray, own: IntArray) -> None:
        """Give the query's tuples with ascending indexes `shared`, behind all earlier ones, the indexes `own`."""
        if not len(shared):
            return
        offset = own - shared
        begins = np.append(True, offset[1:] != offset[:-1])
        begins[0] = not len(self._offset) or offset[0] != self._offset[-1]
        if begins.any():
            self._first = np.concatenate([self._first, shared[begins]])
            self._offset = np.concatenate([self._offset, offset[begins]])

    def of(self, shared: IntArray) -> IntArray:
        """Return the query's indexes of tuples that it has, by the indexes of the stream."""
        run = 0 if len(self._offset) == 1 else np.searchsorted(self._first, shared, "right") - 1
        own: IntArray = shared + self._offset[run]
        return own

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._first)

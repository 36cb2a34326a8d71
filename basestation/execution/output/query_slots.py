"""QuerySlots: arrays of facts about many queries, by slot: a small number that is reused after a query is removed."""

import numpy as np

from acquisition.arrays import IntArray


class QuerySlots:
    """Arrays with an entry for each slot.

    `shape`, `rest` and `epochs` are numbers of what queries share: the columns shown, the conjuncts that are no ranges, and the
    epochs reported. Tuples with an index up to `first` entered before the query did (semantics 1.1). `limit` is the last arrival of a query
    that ends (semantics 11). `given` counts tuples. `query` is the number of the query, or of the first of equal ones.
    """

    __slots__ = ("epochs", "first", "given", "limit", "query", "rest", "shape")
    shape: IntArray
    rest: IntArray
    epochs: IntArray
    first: IntArray
    limit: IntArray
    given: IntArray
    query: IntArray

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, np.zeros(1, np.int64))

    def reserve(self, slot: int) -> None:
        """Make room for a slot."""
        if slot >= len(self.given):
            for name in self.__slots__:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(slot + 1, np.int64)]))

"""Slots: what is known of each of many queries, by a small number that is taken again when a query has gone."""

import numpy as np


class QuerySlots:
    """An array for each thing that is known, with an entry for each slot."""

    __slots__ = ("first", "given", "limit", "query", "rest", "shape", "told")
    # Numbers of what is done alike: `shape` is what is shown, `rest` what is asked beside ranges, `told` of which epochs it is told.
    # `first`: up to this index tuples entered before the query did (1.1). `limit`: of arrivals, for a query that ends (11).
    # `given`: how many tuples. `query`: its number, or that of the first of equal ones.

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, np.zeros(1, np.int64))

    def reach(self, slot):
        """There is room for a slot."""
        if slot >= len(self.given):
            for name in self.__slots__:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros(slot + 1, np.int64)]))

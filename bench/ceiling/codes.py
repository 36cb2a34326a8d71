"""Small numbers for integers such as sites, in the order in which they are first seen."""

import numpy as np

_TABLE = 1 << 20


class Codes:
    """`values` are the integers that have codes 0, 1, 2, …"""

    def __init__(self):
        self.values = np.empty(0, np.int64)
        self._table = np.full(16, -1)

    def __len__(self):
        return len(self.values)

    def of(self, integers):
        if len(integers) and (integers.min() < 0 or integers.max() >= len(self._table)):
            self._widen(integers)
        codes = self._table[integers]
        if len(codes) and codes.min() < 0:
            new = integers[codes < 0]
            new = new[np.sort(np.unique(new, return_index=True)[1])]
            self._table[new] = len(self) + np.arange(len(new))
            self.values = np.concatenate([self.values, new])
            codes = self._table[integers]
        return codes

    def _widen(self, integers):
        if integers.min() < 0 or integers.max() >= _TABLE:
            raise ValueError("only integers from 0 to a million have codes here")
        wider = np.full(2 * int(integers.max()) + 1, -1)
        wider[: len(self._table)] = self._table
        self._table = wider

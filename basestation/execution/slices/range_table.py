"""Range table: the ranges of windows that queries have over the same slices, each under a number."""

from collections.abc import Iterator

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.slice_aggregation import TickRange
from basestation.execution.columns.intern_table import InternTable


class RangeTable:
    """Ranges by number, from 0 on, and since which window each is there."""

    def __init__(self) -> None:
        self._ranges: InternTable[TickRange] = InternTable(reuses=True)
        self._since: dict[int, int] = {}
        self._arrays: tuple[IntArray, IntArray, IntArray, IntArray] | None = None
        self.room = 0
        """All numbers are less."""

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[TickRange]:
        return (range_ for _, range_ in self._ranges.items())

    def take(self, range_: TickRange, tick: int) -> int:
        """Add a use of a range, and return its number. `tick` is that of the next window."""
        known = len(self._ranges)
        number = self._ranges.take(range_, range_) - 1
        if len(self._ranges) > known:
            self._since[number], self._arrays = tick, None
            self.room = max(self.room, number + 1)
        return number

    def number_of(self, range_: TickRange) -> int:
        """Return the number of a range in use."""
        return self._ranges.number_of(range_) - 1

    def release(self, number: int) -> None:
        """End a use of a range."""
        known = len(self._ranges)
        self._ranges.release(number + 1)
        if len(self._ranges) < known:
            del self._since[number]
            self._arrays = None

    def recycle(self) -> None:
        """Let new ranges take the numbers of dropped ones."""
        self._ranges.recycle()

    @property
    def columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """(number, begin, end, tick of the first window) of all ranges, those that begin first before others."""
        if self._arrays is None:
            rows = [
                (range_.begin, range_.end, number - 1, self._since[number - 1])
                for number, range_ in self._ranges.items()
            ]
            begin, end, number, since = np.array(sorted(rows), np.int64).reshape(-1, 4).T.copy()
            self._arrays = number, begin, end, since
        return self._arrays

"""DenseIdMap: a value for each number of a dense, growing range, such as tuple or window numbers; old numbers are dropped."""

from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.execution import thresholds
from basestation.execution.columns.growable_array import spare_length
from basestation.execution.columns.integer_arrays import is_consecutive
from basestation.execution.columns.packed_array import PackedArray


class DenseIdMap:
    """Values by number, zero until set. Numbers below `base` were dropped and must not be read."""

    def __init__(self, dtype: type) -> None:
        self.base, self._end = 0, 0  # entries up to _end were read or set
        self._values: AnyArray = np.zeros(spare_length(0), dtype)

    def __getstate__(self) -> dict[str, Any]:
        used = np.flatnonzero(self._values if self._values.ndim == 1 else self._values.any(axis=1))
        end = int(used[-1]) + 1 if len(used) else 0
        return {"base": self.base, "_end": end, "_values": self._values[:end].copy()}

    def __getitem__(self, numbers: IntArray | int | slice) -> AnyArray:
        places = self._places(numbers)
        return self._values[places].copy() if isinstance(places, slice) else self._values[places]

    def __setitem__(self, numbers: IntArray | slice, values: Any) -> None:
        places = self._places(numbers)  # first, because it may replace the array
        self._values[places] = values

    def _places(self, numbers: IntArray | int | slice) -> IntArray | slice:
        """Return where the entries of numbers are; make room for them."""
        if not isinstance(numbers, slice):
            numbers = np.asarray(numbers)
            if numbers.ndim and is_consecutive(numbers):
                numbers = slice(int(numbers[0]), int(numbers[-1]) + 1)
        places: IntArray | slice
        if isinstance(numbers, slice):
            end = numbers.stop - self.base
            places = slice(numbers.start - self.base, end)
        else:
            places = numbers - self.base
            end = int(places.max()) + 1 if places.size else 0
        if end > len(self._values):
            more = self._zeros(spare_length(end))
            more[: len(self._values)] = self._values
            self._values = more
        self._end = max(self._end, end)
        return places

    def _zeros(self, length: int) -> AnyArray:
        return np.zeros((length, *self._values.shape[1:]), self._values.dtype)

    def find(self, values: AnyArray) -> IntArray:
        """Return the number that has each value, -1 if none has. Each value is set at most once."""
        if not len(self._values):  # as in a restored state
            return np.full(len(values), -1)
        order = np.argsort(self._values, kind="stable")
        at = np.minimum(np.searchsorted(self._values, values, sorter=order), len(order) - 1)
        return np.where(self._values[order[at]] == values, order[at] + self.base, -1)

    def drop_before(self, number: int) -> None:
        """Drop the values of smaller numbers."""
        if number > self.base:
            kept = self._values[number - self.base : self._end]
            if not self._end:  # no entry was ever used
                self.base = number
                return
            if thresholds.SPARSE_FACTOR * self._end < len(self._values):
                self._values = np.concatenate([kept, self._zeros(spare_length(len(kept)))])
            else:  # as many entries will be used again: keep the array
                self._values[: len(kept)] = kept
                self._values[len(kept) : self._end] = 0
            self.base, self._end = number, len(kept)


class CountRows(DenseIdMap):
    """Several counts by number, each in as few bytes as the greatest one takes."""

    def __init__(self) -> None:
        super().__init__(np.int16)
        self._values = np.zeros((spare_length(0), 0), np.int16)

    def widen(self, width: int) -> None:
        """Have at least so many counts by number."""
        more = width - self._values.shape[1]
        if more > 0:
            self._values = np.pad(self._values, ((0, 0), (0, more)))

    def __setitem__(self, numbers: IntArray | slice, values: IntArray) -> None:
        while int(values.max(initial=0)) > np.iinfo(self._values.dtype).max:
            self._values = self._values.astype(f"i{2 * self._values.itemsize}")
        super().__setitem__(numbers, values)


class DenseCounts:
    """Counts by number, zero until set, in a few bytes each. Numbers below `base` were dropped and must not be read."""

    def __init__(self) -> None:
        self.base = 0
        self._counts = PackedArray(np.empty(0, np.int64))

    def __getitem__(self, numbers: IntArray | slice) -> IntArray:
        return self._counts[self._places(numbers)]

    def __setitem__(self, numbers: IntArray | slice, values: IntArray) -> None:
        places = self._places(numbers, len(values))
        if isinstance(places, slice) and places.start == len(self._counts):
            self._counts.extend(values)
        else:
            self._counts.put(np.arange(places.start, places.stop) if isinstance(places, slice) else places, values)

    def _places(self, numbers: IntArray | slice, appended: int = 0) -> IntArray | slice:
        """Return where the counts of numbers are; make room for all but `appended` ones that go on where the counts end."""
        if not isinstance(numbers, slice):
            if not is_consecutive(numbers):
                self._extend(int(numbers.max(initial=self.base - 1)) + 1)
                return numbers - self.base
            numbers = slice(int(numbers[0]), int(numbers[-1]) + 1)
        self._extend(numbers.start if appended and numbers.start - self.base >= len(self._counts) else numbers.stop)
        return slice(numbers.start - self.base, numbers.stop - self.base)

    def _extend(self, end: int) -> None:
        missing = end - self.base - len(self._counts)
        if missing > 0:
            self._counts.extend(np.zeros(missing, np.int64))

    def drop_before(self, number: int) -> None:
        """Drop the counts of smaller numbers."""
        if number > self.base:
            self._counts.drop(min(number - self.base, len(self._counts)))
            self.base = number

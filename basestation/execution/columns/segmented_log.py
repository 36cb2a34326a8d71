"""SegmentedLog: tuples with consecutive numbers, stored without a copy in the batches in which they came.

Tuples are appended at the end and dropped from the beginning. Many small batches are concatenated into one.
"""

from bisect import bisect_right

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution import thresholds
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like


class SegmentedLog:
    """A list of segments. Segment i starts with tuple number _begins[i]."""

    def __init__(self) -> None:
        self._parts: list[Tuples] = []
        self._begins: list[int] = []
        self._ticks: list[tuple[int, int]] = []  # the least and the greatest tick of each segment, or beyond
        self._ordered: list[bool] = []  # whether the segment is known to be in the order of ticks, each tuple on time
        self._whole = 0  # the length of the arrays that the first segment is a slice of
        self._loose = 0  # how many of the last segments were not concatenated yet

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, tuples: Tuples, ordered: bool = False) -> None:
        """Append at least one tuple, numbered on; `ordered` says that they are in the order of their ticks and on time."""
        if not self._parts:
            self._whole = len(tuples)
        self._parts.append(tuples)
        self._begins.append(int(tuples.ident[0]))
        self._ticks.append((int(tuples.tick.min()), int(tuples.tick.max())))
        self._ordered.append(ordered)
        self._loose += 1
        if self._loose > thresholds.LOG_PARTS:
            self._concatenate(len(self._parts) - self._loose)

    def is_last(self, tuples: Tuples) -> bool:
        """Return whether these are exactly the tuples that were appended last."""
        return bool(self._parts) and tuples.ident is self._parts[-1].ident

    def all(self) -> Tuples:
        """Return all tuples; there is at least one."""
        if len(self._parts) > 1:
            self._concatenate(0)
        return self._parts[0]

    def _concatenate(self, first: int) -> None:
        """Make one segment of all from `first` on."""
        self._parts[first:] = [concatenate_tuples(self._parts[first:])]
        lows, highs = zip(*self._ticks[first:], strict=True)
        self._ticks[first:] = [(min(lows), max(highs))]
        self._ordered[first:] = [all(self._ordered[first:])]
        del self._begins[first + 1 :]
        self._loose = 0
        if not first:
            self._whole = len(self._parts[0])

    def of(self, numbers: IntArray) -> Tuples:
        """Return the tuples with these numbers, at least one, in this order; all of them are held."""
        low, high = int(numbers.min()), int(numbers.max())
        at = bisect_right(self._begins, low) - 1
        if high < self._begins[at] + len(self._parts[at]):
            return self._parts[at].take(numbers - self._begins[at])
        begins = np.array(self._begins)
        which = np.searchsorted(begins, numbers, "right") - 1
        order = np.argsort(which, kind="stable")
        touched, edges = np.unique(which[order], return_index=True)
        within = np.split((numbers - begins[which])[order], edges[1:])
        found = concatenate_tuples(
            [self._parts[at].take(places) for at, places in zip(touched.tolist(), within, strict=True)]
        )
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return found.take(back)

    def between(self, low: int, high: int) -> Tuples:
        """Return the tuples from tick low to tick high; at least one tuple is held. Only segments with such ticks are read."""
        near = [
            part for part, (least, last) in zip(self._parts, self._ticks, strict=True) if least <= high and last >= low
        ]
        found = [part.take((part.tick >= low) & (part.tick <= high)) for part in near]
        return concatenate_tuples(found or [empty_like(self._parts[0])])

    def forget(self, before: int, watermark: int) -> int | None:
        """Drop tuples of earlier ticks that have entered, up to the first that is not one, or some before it.

        `watermark` is at least `before`. Returns the number of the first tuple that is still held; None if none was dropped.
        """
        number = None
        while self._parts:
            part, middle = self._parts[0], len(self._parts[0]) // 2
            if part.tick[middle] >= before or part.arrival[middle] > watermark:
                if 2 * len(part) < self._whole:  # a few tuples must not keep large arrays alive
                    self._parts[0] = part.take(np.arange(len(part)))
                    self._whole = len(part)
                return number  # search a segment only when about half of it may go
            first = self._find_first_kept(before, watermark)
            if not first:
                return number
            if first < len(part):
                self._begins[0] += first
                self._parts[0] = part.take(slice(first, None))
                return self._begins[0]
            del self._ordered[0], self._ticks[0]
            number = self._begins.pop(0) + len(self._parts.pop(0))
            self._loose = min(self._loose, len(self._parts))
            self._whole = len(self._parts[0]) if self._parts else 0
        return number

    def _find_first_kept(self, before: int, watermark: int) -> int:
        """Return the position of the first tuple of the first segment that has to stay; its length if none has."""
        part = self._parts[0]
        if self._ordered[0]:
            return int(part.tick.searchsorted(before))
        young = part.tick >= before
        if part.arrival is not part.tick:
            young |= part.arrival > watermark
        first = int(young.argmax())
        return first if young[first] else len(part)

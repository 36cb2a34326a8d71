"""TickSpans: disjoint ranges of ticks, in order."""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.window_batch import NEVER

Span = tuple[int, int]
"""The first and the last tick of a range."""


class TickSpans:
    """Closed ranges that neither overlap nor touch. Values: no method changes one."""

    def __init__(self, spans: Sequence[Span] = ()) -> None:
        """`spans` are disjoint, in order."""
        self._spans = tuple(spans)

    def __bool__(self) -> bool:
        return bool(self._spans)

    @classmethod
    def of(cls, left: IntArray, right: IntArray) -> "TickSpans":
        """Return all ticks left[i] to right[i] of any i; a range with right < left has none."""
        nonempty = left <= right
        left, right = left[nonempty], right[nonempty]
        order = np.argsort(left, kind="stable")
        left, reached = left[order], np.maximum.accumulate(right[order])
        begins = np.append(True, left[1:] > reached[:-1] + 1)[: len(left)]
        ends = reached[np.append(begins[1:], True)[: len(left)]]
        return cls(list(zip(left[begins].tolist(), ends.tolist(), strict=True)))

    def with_spans(self, others: "TickSpans") -> "TickSpans":
        """Return the ticks in one of both."""
        both = np.array((*self._spans, *others._spans), np.int64).reshape(-1, 2)
        return TickSpans.of(both[:, 0], both[:, 1])

    def without(self, others: "TickSpans") -> list[Span]:
        """Return the ticks that are in none of the others, as ranges in order."""
        found = []
        for low, high in self._spans:
            for begin, end in others._spans:
                if end < low or begin > high:
                    continue
                if low < begin:
                    found.append((low, begin - 1))
                low = end + 1
            if low <= high:
                found.append((low, high))
        return found

    @property
    def first(self) -> int:
        """The first tick of all; NEVER if there is none."""
        return self._spans[0][0] if self._spans else NEVER

    def contains(self, ticks: IntArray) -> BoolArray:
        """Return a mask of the ticks that are in one of the ranges."""
        spans = np.array(self._spans, np.int64).reshape(-1, 2)
        return np.searchsorted(spans[:, 0], ticks, "right") > np.searchsorted(spans[:, 1], ticks)

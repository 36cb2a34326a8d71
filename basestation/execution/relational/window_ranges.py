"""Window ranges: rows of many windows, each once for all consecutive windows that contain it, and their aggregates.

A row in ten windows is stored with the first and the last of them; some aggregates need no more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Vector, cached_arange
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.relational.aggregation import evaluate_argument, make_aggregate, result_vector
from innet.aggregates.identity_memo import IdentityMemo


@dataclass(frozen=True, slots=True)
class WindowRanges:
    """Rows of windows 0 to `windows` - 1: row i is in the windows first[i] to last[i]."""

    windows: int
    first: IntArray
    last: IntArray
    columns: dict[int, Vector]

    def __len__(self) -> int:
        return len(self.first)

    def take_parts(self, parts: Sequence[IntArray], ids: Iterable[int]) -> "WindowRanges":
        """The rows at positions of several parts, with some columns: the windows of one part are before those of the next."""
        at = np.concatenate(parts)
        before = np.repeat(np.arange(len(parts)) * self.windows, list(map(len, parts)))
        columns = {id: self.columns[id].take(at) for id in ids}
        return WindowRanges(len(parts) * self.windows, before + self.first[at], before + self.last[at], columns)


def can_aggregate_ranges(node: WindowAggregation) -> bool:
    """Whether an aggregation can be computed from ranges of windows."""
    return not node.grouped and all(make_aggregate(aggregate).can_evaluate_ranges for _, aggregate in node.aggregates)


def aggregate_ranges(ranges: WindowRanges, node: WindowAggregation) -> WindowContents:
    """One row for each window."""
    columns, memo = {}, IdentityMemo()
    for column, aggregate in node.aggregates:
        function = make_aggregate(aggregate)
        values, valid = evaluate_argument(aggregate, ranges.columns, len(ranges))
        result = function.evaluate_ranges(ranges.windows, ranges.first, ranges.last, values, valid, memo)
        columns[column.id] = result_vector(function, *result)
    return WindowContents(ranges.windows, cached_arange(ranges.windows), columns)

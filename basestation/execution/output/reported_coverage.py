"""Reported coverage: the coverage of windows as the last update of each stated it."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.execution.columns.dense_id_map import CountRows, DenseCounts
from basestation.updates.update import CoverageColumns, coverage_of

Counts: TypeAlias = CountRows | DenseCounts
"""Counts by window, or by window and range."""


class ReportedCoverage:
    """By extent, (used, due) of each window by number; of windows with several ranges, of each range by its number."""

    def __init__(self, ranged: bool) -> None:
        self._ranged = ranged
        self._counts: dict[str, tuple[Counts, Counts]] = {}

    def find_changed(self, numbers: IntArray, covered: CoverageColumns, touched: BoolArray | None = None) -> BoolArray:
        """Return a mask of the windows whose coverage differs from the reported one: (windows,) or (windows, ranges).

        With ranges, `touched` is a mask of those that may differ. A pushed extent has no coverage.
        """
        mask: BoolArray = np.zeros(len(numbers) if touched is None else touched.shape, bool)
        for name, of in covered.items():
            for reported, now in zip(self._counts_of(name, of), of or (), strict=bool(of)):
                mask |= reported[numbers] != now
        return mask if touched is None else mask & touched

    def record(self, numbers: IntArray, covered: CoverageColumns, changed: BoolArray | None = None) -> None:
        """Record the coverage of windows as reported; only what is `changed`, if that is given."""
        for name, of in covered.items():
            for reported, now in zip(self._counts_of(name, of), of or (), strict=bool(of)):
                reported[numbers] = now if changed is None else np.where(changed, now, reported[numbers])

    def record_some(self, numbers: IntArray, covered: CoverageColumns, at: IntArray, number: int | None) -> None:
        """Record the coverage of the windows at some positions, of the range with a number if that is given."""
        changed: BoolArray | None = None
        if number is not None:
            room = max((of[0].shape[1] for of in covered.values() if of), default=0)
            changed = np.zeros((len(numbers), room), bool)
            changed[at, number if room else slice(None)] = True
        else:
            numbers, covered = numbers[at], coverage_of(covered, at)
        self.record(numbers, covered, changed)

    def _counts_of(self, name: str, of: tuple[IntArray, IntArray] | None) -> tuple[Counts, Counts]:
        """Return the counts of an extent, with room for the ranges of `of`."""
        if not self._ranged:
            return self._counts.setdefault(name, (DenseCounts(), DenseCounts()))
        counts = self._counts.setdefault(name, (CountRows(), CountRows()))
        for each in counts if of else ():
            assert isinstance(each, CountRows) and of is not None, "windows with ranges have rows of counts"
            each.widen(of[0].shape[1])
        return counts

    def drop_before(self, number: int) -> None:
        """Drop the windows with smaller numbers."""
        for counts in self._counts.values():
            for each in counts:
                each.drop_before(number)


def coverage_of_range(coverage: CoverageColumns, number: int | None) -> CoverageColumns:
    """Return the coverage of the windows of one range; None: of windows that have no other."""
    if number is None:
        return coverage
    return {name: of and (of[0][:, number], of[1][:, number]) for name, of in coverage.items()}


def coverage_by_query(coverage: CoverageColumns, numbers: Sequence[int | None]) -> CoverageColumns:
    """Return coverage as arrays (queries, windows), for queries whose ranges have these numbers."""
    columns: AnyArray = np.array(numbers)
    return {name: of and (of[0][:, columns].T, of[1][:, columns].T) for name, of in coverage.items()}

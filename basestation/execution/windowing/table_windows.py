"""Windows over a table: what it contains at each multiple of an interval, or once. They are WindowSources, as those
over streams.
"""

from collections.abc import Callable

import numpy as np

from acquisition.arrays import BoolArray
from acquisition.ticks import grid_at_or_after
from basestation.algebra.expression import Column
from basestation.execution import thresholds
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import NEVER_DUE, NextDue
from basestation.execution.columns.window_batch import NEVER, NO_WINDOWS, WindowBatch, make_windows
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription, StateDescription
from basestation.execution.interfaces import ScannedTable


class ScanWindows:
    """Scan: at each multiple of the interval, what a table contains then (1.6)."""

    level = 0
    horizon = 0

    def __init__(self, table: ScannedTable, interval: int, columns: tuple[Column, ...], start: int) -> None:
        """`interval` is in ticks, `start` the first tick of the query."""
        self.table, self.interval, self._columns = table, interval, columns
        self._next = self.needed = grid_at_or_after(start, interval)
        """`needed`: no tick before it is scanned again."""

    def describe(self) -> OperatorDescription:
        return OperatorDescription(
            f"scan {self.table.extent.name}", f"newest version every {self.interval} ticks", self._describe_rows()
        )

    def _describe_rows(self) -> StateDescription:
        return StateDescription("rows of the table", None, 8 * len(self._columns))

    @property
    def max_rows(self) -> int | None:
        return None

    @property
    def tick_slide(self) -> int | None:
        return self.interval

    @property
    def watermark(self) -> int:
        return self.table.watermark

    @property
    def certain(self) -> int:
        return self.table.watermark

    def due(self, upto: int) -> WindowBatch:
        ticks = np.arange(self._next, upto + 1, self.interval)
        if not len(ticks):
            return NO_WINDOWS
        self._next = int(ticks[-1]) + self.interval
        return make_windows(ticks, np.ones_like(ticks), ticks, ticks)

    @property
    def next_due(self) -> NextDue:
        return NextDue(self._next + self.table.lag)

    def find_step_end(self, begin: int, end: int, count_rows: Callable[[int], int]) -> int:
        """Return the last clock tick up to `end` of a step after `begin` in which scans read STEP_ROWS rows at most, or there is one.

        `count_rows` returns how many rows the table has at a clock tick.
        """
        lag = self.table.lag
        first = grid_at_or_after(max(self._next, begin + 1 - lag), self.interval) + lag
        last, scans = first, 2
        while last < end and scans * count_rows(first + (scans - 1) * self.interval) <= thresholds.STEP_ROWS:
            last = first + (scans - 1) * self.interval
            scans *= 2
        return min(last, end)

    @property
    def may_be_dirty(self) -> bool:
        return self.table.changed_from < NEVER

    def dirty(self, given: WindowBatch) -> BoolArray:
        return given.tick >= self.table.changed_from

    def apply(self) -> None:
        self.table.apply()

    def content(self, given: WindowBatch) -> WindowContents:
        return self.table.frame(self._columns, given.tick)

    def covers(self, given: WindowBatch) -> list[CoverageRanges]:
        return []

    def empty_covers(self) -> list[CoverageRanges]:
        return []

    def empty(self, count: int) -> WindowContents:
        none = self.table.frame(self._columns, np.array([-NEVER]))
        return WindowContents(count, none.window, none.columns)

    def final(self, before: int, given: WindowBatch) -> BoolArray:
        return given.tick < before

    def forget(self, before: int, kept: WindowBatch) -> None:
        self.needed = min(self._next, int(kept.tick.min(initial=NEVER)))


class OnceWindow(ScanWindows):
    """Once: one window at the start of the query (2.6)."""

    def __init__(self, table: ScannedTable, columns: tuple[Column, ...], start: int) -> None:
        super().__init__(table, 1, columns, start)
        self._start = start
        self._given = False

    def describe(self) -> OperatorDescription:
        return OperatorDescription(f"read {self.table.extent.name}", "once, at the start", self._describe_rows())

    @property
    def tick_slide(self) -> int | None:
        return None

    @property
    def next_due(self) -> NextDue:
        if not self._given:
            return super().next_due
        # One more step shows that the answer is settled; only then the query ends.
        return NEVER_DUE if self.watermark > self._start else NextDue(self._start + 1 + self.table.lag)

    def find_step_end(self, begin: int, end: int, count_rows: Callable[[int], int]) -> int:
        return end

    def due(self, upto: int) -> WindowBatch:
        if self._given or upto < self._start:
            return NO_WINDOWS
        self._given = True
        at = np.array([self._start])
        return make_windows(at, np.ones_like(at), at, at)

"""Windows whose ends a for-loop gives: the streams that a loop names, as inputs of a block."""

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.window_batch import NEVER, WindowBatch
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.row_windows import RowWindows
from basestation.execution.windowing.time_windows import TimeWindows
from basestation.execution.windowing.window_store import WindowStore


class LoopTimeWindows(TimeWindows):
    """A stream in a loop of ticks."""

    def __init__(self, stream: Stream, columns: tuple[Column, ...], store: WindowStore) -> None:
        self.earliest_left = self.earliest_right = -NEVER
        """No later window begins before the one tick, or ends before the other."""
        super().__init__(stream, columns, None, 0, 1, 0, store)

    def describe(self) -> OperatorDescription:
        return OperatorDescription("loop windows", "ticks from t")

    @property
    def tick_slide(self) -> int | None:
        return None

    @property
    def may_be_dirty(self) -> bool:
        """True: a loop may go back in time."""
        return True

    @property
    def open_from(self) -> int:
        return min(self.earliest_left, self.stream.watermark + 1)  # NEVER once the loop is over


class LoopRowWindows(RowWindows):
    """A stream in a loop of rows. The arrivals of rows are kept for as long as the loop may read them."""

    def __init__(self, stream: Stream, columns: tuple[Column, ...], start: int) -> None:
        super().__init__(stream, columns, None, 0, 1)
        self._start, self._arrived, self._dropped = start, GrowableArray(np.empty(0, np.int64)), 0
        self.earliest_left = self.earliest_right = -NEVER
        """No later window begins before the one row, or ends before the other."""

    def describe(self) -> OperatorDescription:
        return OperatorDescription("loop windows", "rows from t", super().describe().state)

    @property
    def first_row(self) -> int:
        """Row 1, or the oldest row in the log."""
        return 1 - self._earlier

    def arrival_of(self, row: int) -> int | None:
        """The arrival of a row; None of one that has not come. A row below 1 counts as arrived at the start (14)."""
        if row < 1:
            return self._start
        at = row - 1 - self._dropped
        return int(self._arrived.values[at]) if at < len(self._arrived) else None

    def _made_by(self, arrivals: IntArray, first: int) -> None:
        self._arrived.extend(arrivals)

    def _next_left(self) -> int:
        return self.earliest_left

    def _open_left(self) -> int:
        return self.earliest_left

    def forget(self, before: int, kept: WindowBatch) -> None:
        super().forget(before, kept)
        count = min(self.earliest_right - 1 - self._dropped, len(self._arrived))
        if count > 0:
            self._arrived.drop(count)
            self._dropped += count

"""Loop slices: aggregates over the windows of a for-loop whose ends move by fixed steps, merged from slices."""

from dataclasses import replace

from basestation.algebra.loop_grid import LoopGrid
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.execution.columns.window_batch import NEVER, WindowBatch
from basestation.execution.description import OperatorDescription
from basestation.execution.slices.slice_windows import SharedSlices, SliceWindows
from basestation.execution.streams.stream import Stream


def cut_slices(node: SliceAggregation, grid: LoopGrid, start: int) -> tuple[SliceAggregation, int]:
    """Return (the aggregation with slices on the grid of its loop, the first tick of all windows if that is fixed).

    `start` is ST. The begin and the end of the aggregation are those of a window at tick 0, as they repeat with every slide.
    """
    left, right = grid.ends(start)
    if grid.fixed:
        return replace(node, begin=None, end=right % grid.slide, slide=grid.slide), max(-NEVER, min(left, NEVER))
    begin = left % grid.slide
    return replace(node, begin=begin, end=begin + (right - left) % grid.slide, slide=grid.slide), 0


class LoopSliceWindows(SliceWindows):
    """The windows of a for-loop over slices, each with one row for each group."""

    def __init__(self, stream: Stream, node: SliceAggregation, start: int, store: SharedSlices) -> None:
        """`node` and `start` are those of `cut_slices`."""
        self.earliest_left = self.earliest_right = -NEVER
        """No later window begins before the one tick, or ends before the other."""
        super().__init__(stream, node, start, store)
        store.widen(None)

    def describe(self) -> OperatorDescription:
        return OperatorDescription("loop windows of slices", "ticks from t")

    @property
    def max_rows(self) -> int | None:
        return None if self._groups else 1

    @property
    def tick_slide(self) -> int | None:
        return None

    @property
    def may_be_dirty(self) -> bool:
        """True: a loop may go back in time."""
        return True

    def _earliest(self, kept: WindowBatch) -> int:
        return min(self.earliest_left, int(kept.left.min(initial=NEVER)))

    def forget(self, before: int, kept: WindowBatch) -> None:
        earliest = min(before, self._earliest(kept))
        if self.begin is None:  # slices before all ends of windows are in all windows: they are merged into one
            earliest = min(before, int(kept.right.min(initial=NEVER)), self.earliest_right)
        self.store.need(earliest)
        self.stream.need(min(before, self.store.needs(earliest)))

"""Ranged slices: aggregates of many queries that differ in the range of their windows, from the same slices, in one pass.

The stream is cut at the edges of all ranges. At each tick with a window there is one for all queries, with the rows of every
range; a column has the number of the range, and each query shows the rows of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.schema import Type
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate, Attr, Compare, Literal
from basestation.algebra.slice_aggregation import SliceAggregation, TickRange
from basestation.algebra.vector import Vector, cached_arange, constant
from basestation.execution import thresholds
from basestation.execution.columns.cells import CellMatrix, Cells
from basestation.execution.columns.window_batch import NEVER, WindowBatch
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import Claims, View
from basestation.execution.slices.range_table import RangeTable
from basestation.execution.slices.slice_folder import is_in_entry_order, rank_by_entry
from basestation.execution.slices.split_slices import SplitSlices
from basestation.execution.slices.suffix_blocks import SuffixBlocks
from basestation.execution.slices.tagged_windows import TaggedSliceWindows
from basestation.execution.slices.window_merger import WindowAggregates
from basestation.execution.streams.coverage import count_coverage
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.stream_windows import find_touched
from basestation.updates.update import CoverageColumns

RANGE = Column(0, Type.INTEGER, "range")
"""The column with the number of the range that a row belongs to. Columns of plans have other ids."""


class RangedSliceWindows(TaggedSliceWindows):
    """The windows of RangedSlices: each goes from the first tick of all ranges to the last one."""

    store: "RangedSlices"

    def __init__(self, stream: Stream, node: SliceAggregation, start: int, store: "RangedSlices") -> None:
        self.ranges = RangeTable()
        super().__init__(stream, node, start, store)

    def describe(self) -> OperatorDescription:
        how = f"{len(self.ranges)} ranges FROM NOW{self.begin:+} TO NOW{self.end:+} SLIDE {self.slide} (ticks)"
        return OperatorDescription("windows of slices", how)

    # --- ranges --------------------------------------------------------------------------------------------------------

    def show(self, view: View) -> Claims:
        if view.range is None:
            raise TypeError("expected a view with a range of its own")
        self.ranges.take(view.range, self._next)
        self._find_hull()
        self.store.cut_at(view.range)
        self.store.widen(1 - view.range.begin)
        self.store.reach_back(self.open_from)
        return [*super().show(view), (self, view.range)]

    def release(self, what: Any) -> None:
        """End one use of an aggregate, or of a range."""
        if isinstance(what, TickRange):
            self.ranges.release(self.ranges.number_of(what))
            self._find_hull()
        else:
            super().release(what)

    def _find_hull(self) -> None:
        """Let windows reach from the first tick of all ranges to the last one."""
        if len(self.ranges):
            self.begin = min(range_.begin for range_ in self.ranges)
            self.end = max(range_.end for range_ in self.ranges)

    def match(self, view: View) -> Expression:
        return Compare("=", Attr(RANGE), Literal(self.number_of(view), Type.INTEGER))

    def number_of(self, view: View) -> int:
        """Return the number of the range of a view."""
        if view.range is None:
            raise TypeError("expected a view with a range of its own")
        return self.ranges.number_of(view.range)

    @property
    def key_ids(self) -> set[int]:
        return {column.id for column in self._groups}

    # --- contents ------------------------------------------------------------------------------------------------------

    def content(self, given: WindowBatch) -> WindowContents:
        number, begin, end, since = self.ranges.columns
        if len(given) == 1 and (since <= given.tick).all():
            found = self.store.windows(given.tick + begin, given.tick + end)
            return self._tag(found, 1, np.zeros(len(number), np.int64), number)
        window, row = np.nonzero(given.tick[:, None] >= since)
        tick = given.tick[window]
        found = self.store.windows(tick + begin[row], tick + end[row])
        return self._tag(found, len(given), window, number[row])

    def changed_content(self, given: WindowBatch, by_group: bool) -> WindowContents:
        number, begin, end, _ = self.ranges.columns
        window, row = np.nonzero(self._touched_rows(given))
        tick = given.tick[window]
        found = self.store.changed_windows(tick + begin[row], tick + end[row], by_group)
        return self._tag(found, len(given), window, number[row])

    def empty(self, count: int) -> WindowContents:
        none = np.empty(0, np.int64)
        return self._tag(self.store.windows(none, none), count, none, none)

    def by_range(self, given: WindowBatch) -> Iterator[tuple[int | None, IntArray, WindowBatch]]:
        for number, begin, end, since in zip(*(column.tolist() for column in self.ranges.columns), strict=True):
            which = np.flatnonzero(given.tick >= since)
            found = given.take(which)
            yield number, which, replace(found, left=found.tick + begin, right=found.tick + end)

    def _of_range(self, rows: WindowContents, number: int | None) -> WindowContents:
        return rows.with_columns({RANGE.id: Vector(constant(number, len(rows))), **rows.columns})

    def _tag(self, found: WindowAggregates, windows: int, window: IntArray, number: IntArray) -> WindowContents:
        """The rows of ranges with number[i] in window[i], as rows of windows with the number as a column."""
        rows = found.frame(self._groups, self._used)
        columns = {RANGE.id: Vector(number[rows.window]), **rows.columns}
        return WindowContents(windows, window[rows.window], columns)

    # --- changes and coverage ------------------------------------------------------------------------------------------

    def _touched_rows(self, given: WindowBatch) -> BoolArray:
        """A mask (windows, ranges in the order of their columns) of those that the change of the stream may affect."""
        _, begin, end, since = self.ranges.columns
        tick = given.tick[:, None]
        ticks = self.stream.change.ticks(int(given.right.max(initial=-NEVER)))
        return find_touched(ticks, tick + begin, tick + end) & (tick >= since)

    def touched(self, given: WindowBatch) -> BoolArray:
        """A mask (windows, numbers of ranges) of those that the change of the stream may affect."""
        mask = np.zeros((len(given), self.ranges.room), bool)
        mask[:, self.ranges.columns[0]] = self._touched_rows(given)
        return mask

    def coverage(self, given: WindowBatch) -> CoverageColumns:
        """{extent: (used, due)}, each an array (windows, numbers of ranges); None for a pushed extent."""
        number, begin, end, _ = self.ranges.columns
        tick = np.repeat(given.tick, len(number))
        left, right = tick + np.tile(begin, len(given)), tick + np.tile(end, len(given))
        counted = count_coverage([*self.stream.covers(left, right, tick), *self.empty_covers()], len(tick))
        found: dict[str, tuple[IntArray, IntArray] | None] = {}
        for name, of in counted.items():
            used, due = (np.zeros((len(given), self.ranges.room), np.int64) for _ in range(2))
            for sums, column in zip((used, due), of or (), strict=bool(of)):
                sums[:, number] = column.reshape(len(given), -1)
            found[name] = (used, due) if of else None
        return found

    def forget(self, before: int, kept: WindowBatch) -> None:
        super().forget(before, kept)
        self.ranges.recycle()


class RangedSlices(SplitSlices):
    """Slices that are cut at the edges of all ranges."""

    def __init__(
        self,
        stream: Stream,
        level: int,
        node: SliceAggregation,
        start: int,
        own: Iterable[tuple[Column, Aggregate]] = (),
    ) -> None:
        self._blocks: SuffixBlocks | None = None
        super().__init__(stream, level, node, start, own)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_blocks": None}

    def cut_at(self, range_: TickRange) -> None:
        """Cut the stream at the edges of a range too."""
        grid = self._grid.with_edges((range_.begin, range_.end + 1))
        if grid is not self._grid:
            self._settle()
            self._grid = grid
            self._changed()
            self.refill()

    def clear(self) -> None:
        self._blocks = None
        super().clear()

    def _renew_aggregates(self) -> None:
        if not self._folder.registry.current:
            self._blocks = None
        super()._renew_aggregates()

    def forget(self, before: int) -> None:
        super().forget(before)
        if len(self) <= thresholds.UNTRIMMED_ROWS:
            self._blocks = None

    def _make_windows(self, left: IntArray, right: IntArray) -> WindowAggregates:
        """The windows over some ticks; those of one tick with equal ends, the first ones first, from blocks."""
        if not len(left) or (right != right[0]).any() or (left[1:] < left[:-1]).any():
            return super()._make_windows(left, right)
        self._settle()
        first, last = self._grid.slices_at(left), int(self._grid.slice_at(int(right[0])))
        self._fold_waiting(last)
        parts, width = self._held.split_between(int(first[0]), last), len(self._folder.groups)
        if not parts or width * len(parts) > thresholds.MATRIX_FACTOR * sum(map(len, parts)) + thresholds.MATRIX_SLACK:
            return super()._make_windows(left, right)
        if self._blocks is None:
            self._blocks = SuffixBlocks(self._folder)
        numbers = np.array([part.slice[0] for part in parts])
        return self._finish(self._blocks.over(parts, np.searchsorted(numbers, first), width), len(left), width)

    def _finish(self, cells: Cells, windows: int, width: int) -> WindowAggregates:
        """The windows with these cells, `width` for each."""
        window, group = np.repeat(np.arange(windows), width), np.tile(cached_arange(width), windows)
        if self._folder.is_grouped:
            exists = self._folder.count_tuples(cells) > 0
            if not exists.all():
                window, group, cells = window[exists], group[exists], cells.take(exists)
            ranks = rank_by_entry(cells.arrival, cells.place)
            if not is_in_entry_order(window, ranks):
                order = np.lexsort((ranks, window))
                window, group, cells = window[order], group[order], cells.take(order)
        return self._merger.finish(window, group, CellMatrix(cells.states), windows)

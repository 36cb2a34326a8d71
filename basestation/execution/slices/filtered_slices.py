"""Filtered slices: aggregates of many queries that differ in WHERE, over the same windows of time, in one pass.

The stream has each tuple once for every filter that it passes (`lineage_stream.py`). The filter is one more column to group by, so
a slice has a partial state for each filter and group, and a window the rows of all queries. Each query shows those of its filter.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from acquisition.schema import Type
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate, Attr, Compare, Literal
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.vector import Vector, constant
from basestation.execution import thresholds
from basestation.execution.columns.cells import CellMatrix, Cells
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER, WindowBatch
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.interfaces import Claims, View
from basestation.execution.slices.dense_stacks import DenseStacks
from basestation.execution.slices.filter_groups import FilterGroups
from basestation.execution.slices.slice_folder import SliceFolder, is_ascending, rank_by_entry
from basestation.execution.slices.split_slices import SplitSlices
from basestation.execution.slices.tagged_windows import TaggedSliceWindows
from basestation.execution.slices.window_merger import WindowAggregates
from basestation.execution.streams.lineage_stream import FILTER, LineageStream


def group_by_filter(node: SliceAggregation) -> SliceAggregation:
    """An aggregation over an extent as one over its lineage stream."""
    return replace(node, groups=((FILTER, Attr(FILTER)), *node.groups))


class FilteredSliceWindows(TaggedSliceWindows):
    """The windows of FilteredSlices, with the rows of all queries."""

    store: "FilteredSlices"

    @property
    def max_rows(self) -> int | None:
        return 1 if len(self._groups) == 1 else None

    def show(self, view: View) -> Claims:
        if view.filter is None:
            raise TypeError("expected a view with a filter of its own")
        return [*super().show(view), (self.store.lineage, self.store.add_filter(view.filter))]

    @property
    def key_ids(self) -> set[int]:
        return {column.id for column in self._groups} - {FILTER.id}

    def changed_content(self, given: WindowBatch, by_group: bool) -> WindowContents:
        if not by_group:
            return self.content(given)
        return self.store.changed_windows(given.left, given.right, by_group).frame(self._groups, self._used)

    def match(self, view: View) -> Expression:
        if view.filter is None:
            raise TypeError("expected a view with a filter of its own")
        number = self.store.lineage.filters.number_of(view.filter)
        return Compare("=", Attr(FILTER), Literal(number, Type.INTEGER))


class FilteredSlices(SplitSlices):
    """SplitSlices over a lineage stream, which no other store reads."""

    _groups_by_filter: FilterGroups

    def __init__(self, lineage: LineageStream, level: int, node: SliceAggregation, start: int) -> None:
        self.lineage = lineage
        self._young: list[Cells] = []  # of filters that were added since the last step
        super().__init__(lineage, level, group_by_filter(node), start)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_stacks": {}}

    def __len__(self) -> int:
        return super().__len__() + sum(map(len, self._young))

    def _make_folder(self, node: SliceAggregation, own: Iterable[tuple[Column, Aggregate]]) -> SliceFolder:
        self._groups_by_filter = FilterGroups(node.groups)
        return SliceFolder(node, own, self._groups_by_filter)

    def clear(self) -> None:
        self._young = []
        self._stacks: dict[int, DenseStacks] = {}  # by the number of slices of a window
        self._read_columns()
        super().clear()

    def _read_columns(self) -> None:
        self.lineage.give_columns(self._folder.read_columns - {FILTER.id})

    def read_parts(self, low: int, high: int) -> Iterable[Tuples]:
        if self.is_behind:
            self._settle()
        versions = None if self._versions is None else self._versions.tuples.ident
        for part in self.lineage.in_parts(self.read(self.lineage.child, low, high)):
            yield part if versions is None else part.take(~np.isin(part.ident, versions))

    # --- queries come and go -------------------------------------------------------------------------------------------

    def add_filter(self, filter_: Expression) -> int:
        """Add a use of a filter, and return its number. The past of a new one is read from the stream."""
        number, is_new = self.lineage.add(filter_)
        if is_new:
            super()._settle()
            self._changed()
            self._drop_before_kept()
            matches = self.lineage.matches_of(number, self.lineage.child.between(self._kept_from, NEVER))
            slices, tuples, _ = self._held_of(self._folder.needed(matches))
            if not self._folder.is_grouped:  # a query without GROUP BY has a row even in an empty window
                self._groups_by_filter.of([Vector(np.array([number]))], 1)
            if len(tuples):
                self._young.append(self._folder.cells(slices, tuples, self.stream))
        return number

    def _renew_aggregates(self) -> None:
        if self._folder.registry.current:
            return
        if self._folder.registry.has_new:  # all states are made again, in parts of bounded size
            self._folder.registry.renew()
            self._changed()
            self.refill()
        else:
            super()._renew_aggregates()
            self._read_columns()

    def _settle(self) -> None:
        super()._settle()
        if self._young:
            parts, self._young = [*self._held.all(), *self._young], []
            cells = self._folder.concatenate(parts)  # a filter that was added later has greater numbers of groups
            self._held.set([cells.take(np.argsort(cells.slice, kind="stable"))])

    def forget(self, before: int) -> None:
        super().forget(before)
        self._stacks = {}
        dropped = self.lineage.filters.dropped
        if dropped:
            gone = np.isin(self._groups_by_filter.filters, dropped)
            waiting = self._waiting.all()
            if waiting is not None:
                self._waiting.keep(~np.isin(waiting.columns[FILTER.id].values, dropped))
            parts = [part.take(~gone[part.group]) for part in self._held.all()]
            self._held.set(self._folder.keep_groups(np.flatnonzero(~gone), parts))
            self.lineage.filters.recycle()

    # --- cells -------------------------------------------------------------------------------------------------------

    def _wait(self, tuples: Tuples) -> None:
        super()._wait(tuples)
        if len(self._waiting) > thresholds.LINEAGE_PAIRS:
            self._fold_waiting()

    # --- reading windows ---------------------------------------------------------------------------------------------

    def _make_windows(self, left: IntArray, right: IntArray) -> WindowAggregates:
        if len(left) != 1:
            return super()._make_windows(left, right)
        self._settle()
        first, last = int(self._grid.slices_at(left)[0]), int(self._grid.slices_at(right)[0])
        self._fold_waiting(last)
        parts, width = self._held.split_between(first, last), len(self._groups_by_filter)
        if not parts or width > thresholds.MATRIX_FACTOR * sum(map(len, parts)) + thresholds.MATRIX_SLACK:
            return super()._make_windows(left, right)
        stacks = self._stacks.setdefault(last - first, DenseStacks())
        return self._finish(stacks.over(parts, width, self._folder.spread, self._folder.combine), width)

    def _finish(self, cells: Cells, width: int) -> WindowAggregates:
        """The one window with these cells, of which the first `width` are groups."""
        group = np.arange(width)
        if self._folder.is_grouped:
            group = np.flatnonzero(self._folder.count_tuples(cells)[:width])
            arrival, place = cells.arrival[group], cells.place[group]
            if not is_ascending(arrival, place):
                group = group[np.argsort(rank_by_entry(arrival, place), kind="stable")]
        found = CellMatrix(cells.states).take(group)
        return self._merger.finish(constant(0, len(group)), group, found, 1)

"""Window merger: how windows are made of the cells of their slices, for many windows at once.

Three ways lead to the same: a sparse table over a full matrix of slices and groups, the same over cells spread out to such a
matrix, or each window's cells merged one by one where they are few.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, all_true, cached_arange, constant
from basestation.execution import thresholds
from basestation.execution.columns.cells import CellMatrix, Cells, form_matrix
from basestation.execution.columns.integer_arrays import locate_ranges
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.relational.aggregation import result_vector
from basestation.execution.slices.slice_folder import (
    SliceFolder,
    is_ascending,
    is_in_entry_order,
    rank_by_entry,
)
from basestation.execution.slices.sparse_table import SparseTable
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state import AggregateState, StateAggregate
from innet.aggregates.state_bundle import StateBundle, bundle_states

Merged = tuple[IntArray, IntArray, CellMatrix]
"""(the window of each row, its group, its states and rank), by window, then by group."""


class WindowAggregates:
    """The groups of windows in the order of their first tuples. Results are computed when they are read, each once."""

    def __init__(
        self,
        functions: Sequence[StateAggregate],
        positions: Mapping[int, int],
        windows: int,
        window: IntArray,
        keys: list[Vector],
        states: list[AggregateState],
    ) -> None:
        """`positions` has by the number of an aggregate its position among functions and states."""
        self._functions, self._positions = functions, positions
        self._windows, self._window, self._keys, self._states = windows, window, keys, states
        self._results: dict[int, Vector] = {}

    def frame(self, groups: Sequence[Column], aggregates: Mapping[tuple[Column, int], int]) -> WindowContents:
        """The rows with keys as the columns `groups`, and the results of aggregates (column, number)."""
        columns = {column.id: key for column, key in zip(groups, self._keys, strict=True)}
        columns |= {column.id: self._result(number) for column, number in aggregates}
        return WindowContents(self._windows, self._window, columns)

    def _result(self, number: int) -> Vector:
        if number not in self._results:
            position = self._positions[number]
            function = self._functions[position]
            self._results[number] = result_vector(function, *function.finalize(self._states[position]))
        return self._results[number]


class WindowMerger:
    """Merges the cells of one SliceFolder."""

    def __init__(self, folder: SliceFolder) -> None:
        self._folder, self._registry = folder, folder.registry

    def windows(self, parts: Sequence[Cells], first: IntArray, last: IntArray) -> WindowAggregates:
        """The windows over the slices first[i] to last[i], of cells in parts."""
        folder = self._folder
        if parts and form_matrix(parts):
            slices = np.concatenate([part.slice[:: part.width] for part in parts])
            found = self._merge_all(
                slices, parts[0].width, first, last,
                lambda: CellMatrix(folder.concatenate_states(parts, IdentityMemo())),
            )  # fmt: skip
            if found is not None:
                return self.finish(*found, len(first))
        cells = folder.concatenate(parts)
        ordered = cells.width or is_ascending(cells.arrival, cells.place)
        ranks = None if ordered else rank_by_entry(cells.arrival, cells.place)
        window, group, merged = self.merge(cells, first, last, ranks)
        if merged.ranks is not None and not is_in_entry_order(window, merged.ranks):
            order = np.lexsort((merged.ranks, window))
            window, group, merged = window[order], group[order], merged.take(order)
        return self.finish(window, group, merged, len(first))

    def bundle(self, cells: Cells) -> StateBundle | None:
        """The bundle of the states of cells; None where states do not merge cell by cell."""
        return bundle_states(self._registry.functions, cells.states)

    def finish_bundle(self, bundle: StateBundle) -> WindowAggregates:
        """The one window that has all groups, of which this is the bundle."""
        states = bundle.states()
        count = states[0].n_groups
        return self.finish(constant(0, count), cached_arange(count), CellMatrix(states), 1)

    def finish(self, window: IntArray, group: IntArray, cells: CellMatrix, windows: int) -> WindowAggregates:
        """The WindowAggregates of cells that are sorted by window."""
        registry = self._registry
        keys = self._folder.groups.keys(group)
        return WindowAggregates(registry.functions, registry.positions, windows, window, keys, cells.states)

    def merge(self, cells: Cells, first: IntArray, last: IntArray, ranks: IntArray | None) -> Merged:
        """The merged cells of windows over the slices first[i] to last[i].

        `ranks` are those of the cells; None where these are in the order of entry.
        """
        if cells.width:
            slices = cells.slice[:: cells.width]
            found = self._merge_all(slices, cells.width, first, last, lambda: CellMatrix(cells.states, ranks))
            if found is not None:
                return found
        begins = _find_begins(cells.slice)
        slices = cells.slice[begins]
        begin, length = locate_ranges(slices, first, last)
        end = begin + length
        used = np.cumsum(np.bincount(begin, minlength=len(slices) + 1) - np.bincount(end, minlength=len(slices) + 1))
        used = used[:-1] > 0
        row = np.repeat(np.arange(len(slices)), np.diff(begins, append=len(cells)))
        if not used.all():  # windows far apart
            which = used[row]
            cells, row, number = cells.take(which), row[which], np.append(0, np.cumsum(used))
            ranks = None if ranks is None else ranks[which]
            slices, begin, end, row = slices[used], number[begin], number[end], number[row]
        groups = self._present_groups(cells)
        column = np.zeros(len(self._folder.groups), np.int64)
        column[groups] = np.arange(len(groups))
        column, size = column[cells.group], len(slices) * len(groups)
        many = not self._folder.is_grouped or int((end - begin).sum()) * len(groups) > thresholds.MATRIX_SLACK
        ranked = CellMatrix(cells.states, np.arange(len(cells)) if ranks is None else ranks)
        if many and size <= thresholds.MATRIX_FACTOR * len(cells) + thresholds.MATRIX_SLACK:
            matrix = CellMatrix(cells.states, ranks)
            if size != len(cells):
                matrix = self.scatter(size, ranked, row * len(groups) + column)
            window, at, merged = self._merge_matrix(matrix, len(slices), len(groups), begin, end)
        else:
            window, at, merged = self._merge_one_by_one(ranked, row, column, len(groups), begin, end)
        return window, groups[at], merged

    def _merge_all(
        self, slices: IntArray, width: int, first: IntArray, last: IntArray, make: Callable[[], CellMatrix]
    ) -> Merged | None:
        """The same for all cells of a matrix; None where windows leave some of it out, or where it is small."""
        begin, length = locate_ranges(slices, first, last)
        end = begin + length
        many = not self._folder.is_grouped or int(length.sum()) * width > thresholds.MATRIX_SLACK
        whole = self._folder.is_grouped or width == len(self._folder.groups)
        if not (many and whole and _cover(begin, end, len(slices))):
            return None
        return self._merge_matrix(make(), len(slices), width, begin, end)

    def _present_groups(self, cells: Cells) -> IntArray:
        """The groups of cells; without grouping all there are, even if they are empty."""
        if not self._folder.is_grouped:
            return np.arange(len(self._folder.groups))
        present = np.zeros(len(self._folder.groups), bool)
        present[cells.group] = True
        return np.flatnonzero(present)

    def scatter(self, count: int, cells: CellMatrix, into: IntArray) -> CellMatrix:
        """A matrix of `count` cells, of which into[i] is cell i, and the others are empty."""
        ranks, memo = np.full(count, NEVER), IdentityMemo()
        ranks[into] = cells.known_ranks
        pairs = zip(self._registry.functions, cells.states, strict=True)
        return CellMatrix([function.scatter(state, count, into, memo) for function, state in pairs], ranks)

    def combine(self, a: CellMatrix, b: CellMatrix) -> CellMatrix:
        """Two matrices of the same shape, merged cell by cell."""
        memo = IdentityMemo()
        pairs = zip(self._registry.functions, a.states, b.states, strict=True)
        states = [function.combine(x, y, memo) for function, x, y in pairs]
        return CellMatrix(states, None if a.ranks is None or b.ranks is None else np.minimum(a.ranks, b.ranks))

    def _merge_matrix(self, matrix: CellMatrix, rows: int, width: int, begin: IntArray, end: IntArray) -> Merged:
        """(window, position of the group, cells) of windows over the rows begin[i] to before end[i] of a matrix."""
        windows = len(begin)
        whole = self._merge_rows(matrix, windows * width, SparseTable(rows, width, begin, end))
        window, at = np.repeat(np.arange(windows), width), np.tile(np.arange(width), windows)
        exists = self._folder.exists(whole)
        if exists.all():
            return window, at, whole
        return window[exists], at[exists], whole.take(exists)

    def _merge_rows(self, matrix: CellMatrix, count: int, table: SparseTable) -> CellMatrix:
        """The `count` cells of windows over rows of a matrix."""
        found: dict[tuple[np.ufunc, int], tuple[AnyArray, AnyArray]] = {}

        def reduce(fold: np.ufunc, array: AnyArray, blank: float) -> AnyArray:
            key = fold, id(array)
            if key not in found:
                found[key] = table.array(fold, array, blank), array  # with the array, so that no other gets its id
            return found[key][0]

        states = [
            table.state(function, state)
            if function.folds is None
            else function.reduce_segments(state, count, table.longest, reduce)
            for function, state in zip(self._registry.functions, matrix.states, strict=True)
        ]
        return CellMatrix(states, None if matrix.ranks is None else reduce(np.minimum, matrix.ranks, NEVER))

    def _merge_one_by_one(
        self, cells: CellMatrix, row: IntArray, column: IntArray, width: int, begin: IntArray, end: IntArray
    ) -> Merged:
        """The same for few cells: those of each window are collected and merged."""
        bounds = np.searchsorted(row, np.arange(int(row[-1]) + 2 if len(row) else 1))
        first, counts = bounds[begin], bounds[end] - bounds[begin]
        window = np.repeat(np.arange(len(begin)), counts)
        positions = expand_ranges(first, counts)
        into = window * width + column[positions]
        if self._folder.is_grouped:
            found, into = np.unique(into, return_inverse=True)
        else:  # empty groups have rows, too
            found = np.arange(len(begin) * width)
        window, at = np.divmod(found, width)
        cells, ranks = cells.take(positions), np.full(len(found), NEVER)
        np.minimum.at(ranks, into, cells.known_ranks)
        return window, at, CellMatrix(self._folder.merge_states(cells, into, len(found)), ranks)


def _cover(begin: IntArray, end: IntArray, count: int) -> bool:
    """Whether each of `count` rows is in one of the ranges, which begin in order."""
    if not len(begin) or begin[0] or end.max() < count:
        return False
    return all_true((begin[1:] >= begin[:-1]) & (begin[1:] <= end[:-1]))


def _find_begins(ordered: IntArray) -> IntArray:
    """The positions at which a new number begins; equal numbers are consecutive."""
    return np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)[: len(ordered)]

"""Slice folder: how tuples become partial states of slices and groups, how states merge, and how tuples are taken back.

Partial states are kept as `Cells`. How windows are made of cells is in `window_merger.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.expressions import Aggregate, columns_of
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_union import count_parts
from basestation.algebra.vector import all_true, any_true, cached_arange, constant
from basestation.execution import thresholds
from basestation.execution.columns.cells import CellMatrix, Cells, form_matrix
from basestation.execution.columns.integer_arrays import find_in, rank_distinct
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.relational.aggregation import group_keys
from basestation.execution.relational.group_ids import GroupIds
from basestation.execution.slices.aggregate_registry import AggregateRegistry
from basestation.execution.slices.filter_groups import FilterGroups
from basestation.execution.streams.stream import REVISION_RANK, Stream
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state import AggregateState

_NONE = np.empty(0, np.int64)


class SliceFolder:
    """Folds the tuples of one stream for all SliceAggregations that cut and group it alike."""

    def __init__(
        self,
        node: SliceAggregation,
        own: Iterable[tuple[Column, Aggregate]] = (),
        groups: GroupIds | FilterGroups | None = None,
    ) -> None:
        """`node` is one of the aggregations; `own` are aggregates that are always folded; `groups` numbers the groups."""
        self.is_grouped = node.grouped
        self._node, self.registry = node, AggregateRegistry()
        self._parts = count_parts(node.child)
        self.groups = GroupIds(node.groups) if groups is None else groups
        self._keys = {column.id for _, key in node.groups for column in columns_of(key)}
        self.own = self.registry.take(own)
        self.registry.renew()

    @property
    def read_columns(self) -> set[int]:
        """The ids of the columns that keys and aggregates read."""
        return self._keys | self.registry.columns

    def renew(self, cells: Cells, read: Callable[[], tuple[IntArray, Tuples]], stream: Stream) -> Cells:
        """Cells with states for the aggregates in use; new states are made of the (slices, tuples) that `read` returns."""
        sources, new = self.registry.renew()
        added = iter(self._aggregate_new(cells, new, *read(), stream) if new else ())
        return replace(cells, states=[next(added) if at is None else cells.states[at] for at in sources])

    def _aggregate_new(
        self, cells: Cells, new: Sequence[int], slices: IntArray, tuples: Tuples, stream: Stream
    ) -> list[AggregateState]:
        """The states of the functions at `new` positions."""
        groups, width = self.groups_of(tuples), len(self.groups)
        at, found = find_in(cells.slice * width + cells.group, slices * width + groups)
        at = at[found]
        return self.registry.aggregate_at(new, np.bincount(at, minlength=len(cells)), at, tuples.take(found), stream)

    # --- tuples to cells ---------------------------------------------------------------------------------------------

    def cells(self, slices: IntArray, tuples: Tuples, stream: Stream) -> Cells:
        """The Cells of tuples; tuple i is in slices[i]."""
        groups, width = self.groups_of(tuples), len(self.groups)
        key = slices * width + groups
        if all_true(key[1:] > key[:-1]):
            return self._single_cells(slices, groups, tuples, stream)
        numbers, place = rank_distinct(slices)
        key, count = place * width + groups, len(numbers) * width
        if count > thresholds.MATRIX_FACTOR * len(tuples) + thresholds.MATRIX_SLACK:
            found, key = np.unique(key, return_inverse=True)
            count = len(found)
        else:
            found = np.arange(count)
        counts = np.bincount(key, minlength=count)
        row = found // width
        slices, groups, present = numbers[row], found - row * width, np.flatnonzero(counts)
        if int(counts.max()) == 1:
            row = np.empty(count, np.int64)
            row[key] = np.arange(len(key))
            return self._single_cells(slices[present], groups[present], tuples.take(row[present]), stream)
        states = self.registry.aggregate_rows(counts, key, tuples, stream)
        first = _find_first(*self.entry_of(tuples), key, count)
        return self.with_width(_take_cells(Cells(slices, groups, *first, states), present))

    def _single_cells(self, slices: IntArray, groups: IntArray, tuples: Tuples, stream: Stream) -> Cells:
        """Cells of one tuple each, in order."""
        states = self.registry.aggregate_rows(constant(1, len(tuples)), None, tuples, stream)
        return self.with_width(Cells(slices, groups, *self.entry_of(tuples), states))

    def with_width(self, cells: Cells) -> Cells:
        """Cells in order, with their width if they are a matrix."""
        width = len(self.groups)
        if not len(cells) or len(cells) % width or any_true(cells.slice[::width] != cells.slice[width - 1 :: width]):
            return cells
        if not is_ascending(cells.arrival, cells.place):
            return cells
        return replace(cells, width=width, group=cached_arange(width) if len(cells) == width else cells.group)

    def matrix(self, count: int, key: IntArray, tuples: Tuples, ranks: IntArray, stream: Stream) -> CellMatrix:
        """A matrix of `count` cells; tuple i is in cell key[i]."""
        first = np.full(count, NEVER)
        np.minimum.at(first, key, ranks)
        counts = np.bincount(key, minlength=count)
        return CellMatrix(self.registry.aggregate_rows(counts, key, tuples, stream), first)

    def exists(self, cells: CellMatrix) -> BoolArray:
        """A mask of the cells that are groups: without grouping all, empty ones too."""
        return self.count_tuples(cells) > 0 if self.is_grouped else np.ones(len(cells), bool)

    def needed(self, tuples: Tuples) -> Tuples:
        """Tuples with only the columns that keys and aggregates read."""
        return tuples.with_columns({id_: tuples.columns[id_] for id_ in sorted(self.read_columns)})

    def groups_of(self, tuples: Tuples) -> IntArray:
        """The group of each tuple."""
        return self.groups.of(group_keys(self._node, tuples.columns), len(tuples))

    def entry_of(self, tuples: Tuples) -> tuple[IntArray, IntArray]:
        """(arrival, place) of tuples, by which they enter. Of equal arrivals the left part of a union comes first (10.6)."""
        arrival = tuples.arrival if self._parts == 1 else tuples.arrival * self._parts + tuples.part
        return arrival, _entry_places(tuples)

    def count_tuples(self, cells: Cells | CellMatrix) -> IntArray:
        """The number of tuples in each cell."""
        counts: IntArray = cells.states[0].cells["count"]
        return counts

    # --- cells to cells ----------------------------------------------------------------------------------------------

    def concatenate(self, parts: Sequence[Cells]) -> Cells:
        """All cells of all parts, in order; they may share memory with the parts and with each other."""
        return parts[0] if len(parts) == 1 else self._concatenate(parts, IdentityMemo())

    def separate(self, parts: Sequence[Cells]) -> Cells:
        """The same in memory of their own: undoing in one state leaves the others."""
        return self._concatenate(parts, None)

    def _concatenate(self, parts: Sequence[Cells], memo: IdentityMemo | None) -> Cells:
        return Cells(
            np.concatenate([_NONE, *(part.slice for part in parts)]),
            np.concatenate([_NONE, *(part.group for part in parts)]),
            np.concatenate([_NONE, *(part.arrival for part in parts)]),
            np.concatenate([_NONE, *(part.place for part in parts)]),
            self.concatenate_states(parts, memo),
            parts[0].width if parts and form_matrix(parts) else 0,
        )

    def concatenate_matrices(self, parts: Sequence[CellMatrix]) -> CellMatrix:
        """All cells of matrices with ranks, in order."""
        return CellMatrix(
            self.concatenate_states(parts, IdentityMemo()), np.concatenate([part.known_ranks for part in parts])
        )

    def concatenate_states(
        self, parts: Sequence[Cells] | Sequence[CellMatrix], memo: IdentityMemo | None
    ) -> list[AggregateState]:
        """The states of all parts, function by function."""
        return [function.concatenate([part.states[i] for part in parts], memo) if parts else function.init(0)
                for i, function in enumerate(self.registry.functions)]  # fmt: skip

    def insert(self, cells: Cells, others: Cells) -> Cells:
        """The union of two Cells, both in order with one row for each slice and group; common rows are merged."""
        width = len(self.groups)
        keys, new = cells.slice * width + cells.group, others.slice * width + others.group
        at, known = find_in(keys, new)
        at, here, more = at[known], others.take(known), others.take(~known)
        row = np.arange(len(keys))
        row[at] = len(keys) + np.arange(len(at))
        row = np.append(row, len(keys) + len(at) + np.arange(len(more)))
        if len(more):
            row = row[np.argsort(np.append(keys, new[~known]), kind="stable")]
        return self.concatenate([cells, self.combine(cells.take(at), here), more]).take(row)

    def combine(self, a: Cells, b: Cells) -> Cells:
        """Cells of the same slices and groups, merged row by row."""
        memo = IdentityMemo()
        pairs = zip(self.registry.functions, a.states, b.states, strict=True)
        states = [function.combine(x, y, memo) for function, x, y in pairs]
        earlier = (b.arrival < a.arrival) | ((b.arrival == a.arrival) & (b.place < a.place))
        arrival, place = (np.where(earlier, y, x) for x, y in ((a.arrival, b.arrival), (a.place, b.place)))
        return Cells(a.slice, a.group, arrival, place, states)

    def unite(self, cells: Cells) -> Cells:
        """Cells in order with one row for each slice and group."""
        width = len(self.groups)
        base = int(cells.slice.min(initial=NEVER))
        found, into = np.unique((cells.slice - base) * width + cells.group, return_inverse=True)
        slices, groups = np.divmod(found, width)
        first = _find_first(cells.arrival, cells.place, into, len(found))
        return Cells(slices + base, groups, *first, self.merge_states(cells, into, len(found)))

    def merge_states(self, cells: Cells | CellMatrix, into: IntArray, count: int) -> list[AggregateState]:
        """The states of `count` cells; cell i is merged into into[i]."""
        states = [function.init(count) for function in self.registry.functions]
        for function, state, part in zip(self.registry.functions, states, cells.states, strict=True):
            function.merge(state, part, into)
        return states

    def drop_unused_groups(self, parts: list[Cells]) -> list[Cells]:
        """The same cells; once most groups are in none of them, these groups are dropped and the others renumbered."""
        if not self.is_grouped or len(self.groups) <= thresholds.MATRIX_SLACK:
            return parts
        present = np.zeros(len(self.groups), bool)
        for part in parts:
            present[part.group] = True
        kept = np.flatnonzero(present)
        if len(self.groups) <= 2 * len(kept) + thresholds.MATRIX_SLACK:
            return parts
        return self.keep_groups(kept, parts)

    def keep_groups(self, kept: IntArray, parts: list[Cells]) -> list[Cells]:
        """The same cells, which have only these groups; the others are dropped, and these renumbered."""
        renumbered = self.groups.keep(kept)
        return [replace(part, group=renumbered[part.group]) for part in parts]

    def spread(self, cells: Cells, count: int) -> Cells:
        """The cells of one slice spread out to groups 0 to count - 1; those of groups that are not in it are empty."""
        memo, arrival, place = IdentityMemo(), np.full(count, NEVER), np.full(count, NEVER)
        arrival[cells.group], place[cells.group] = cells.arrival, cells.place
        pairs = zip(self.registry.functions, cells.states, strict=True)
        states = [function.scatter(state, count, cells.group, memo) for function, state in pairs]
        return Cells(constant(int(cells.slice[0]), count), cached_arange(count), arrival, place, states)

    # --- taking tuples back ------------------------------------------------------------------------------------------

    def undo(self, cells: Cells, slices: IntArray, tuples: Tuples) -> tuple[Cells, tuple[IntArray, IntArray]]:
        """(Cells without tuples that they contain; (slices, groups) of cells that have to be made again).

        A cell is made again where a function cannot undo, and where a group loses its first tuple: the next is unknown.
        """
        group, width = self.groups_of(tuples), len(self.groups)
        at = np.searchsorted(cells.slice * width + cells.group, slices * width + group)
        stays = self.count_tuples(cells) > np.bincount(at, minlength=len(cells))
        lost = np.zeros(len(cells), bool)
        if not self.registry.can_undo:
            lost[at] = True
        elif self.is_grouped:
            arrival, place = self.entry_of(tuples)
            lost[at[(cells.arrival[at] == arrival) & (cells.place[at] == place)]] = True
        undone = ~lost[at]
        at, tuples = at[undone], tuples.take(undone)
        if len(at):
            self.registry.undo(cells.states, at, tuples)
        again = np.flatnonzero(lost & stays)
        return cells.take(stays & ~lost), (cells.slice[again], cells.group[again])

    def among(self, slices: IntArray, tuples: Tuples, cells: tuple[IntArray, IntArray]) -> BoolArray:
        """A mask of the tuples, in these slices, that are in some of the cells (slices, groups)."""
        groups = self.groups_of(tuples)
        width = len(self.groups)
        return np.isin(slices * width + groups, cells[0] * width + cells[1])


# --- order of entry --------------------------------------------------------------------------------------------------


def _entry_places(tuples: Tuples) -> IntArray:
    """The order of entry among tuples of one arrival and part, as one number.

    A rank is 0, or a tick + 1 of a late reading beside the position of its site (semantics 1.5), or REVISION_RANK.
    """
    if not any_true(tuples.rank):  # type: ignore[arg-type]  # numbers: whether one is not 0
        return tuples.place
    return np.where(tuples.rank == REVISION_RANK, REVISION_RANK + tuples.place, (tuples.rank << 20) + tuples.place)


def rank_by_entry(arrival: IntArray, place: IntArray) -> IntArray:
    """Ranks in the order of entry."""
    if not len(arrival):
        return arrival
    low, least = int(arrival.min()), int(place.min())
    width = int(place.max()) - least + 1
    if (int(arrival.max()) - low + 1) * width < NEVER:
        return (arrival - low) * width + (place - least)
    ranks = np.empty(len(arrival), np.int64)
    ranks[np.lexsort((place, arrival))] = np.arange(len(arrival))
    return ranks


def is_in_entry_order(window: IntArray, ranks: IntArray) -> bool:
    """Whether rows that are sorted by window are in the order of entry within each window."""
    return bool(((ranks[1:] >= ranks[:-1]) | (window[1:] != window[:-1])).all())


def is_ascending(arrival: IntArray, place: IntArray) -> bool:
    """Whether rows are in the order of entry."""
    later = arrival[1:] > arrival[:-1]
    return all_true(later) or all_true(later | ((arrival[1:] == arrival[:-1]) & (place[1:] >= place[:-1])))


def _find_first(arrival: IntArray, place: IntArray, group: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """The least (arrival, place) of each of `count` groups; NEVER for a group without rows."""
    first = np.full(count, NEVER), np.full(count, NEVER)
    if not is_ascending(arrival, place):
        order = np.argsort(rank_by_entry(arrival, place), kind="stable")
        arrival, place, group = arrival[order], place[order], group[order]
    for least, values in zip(first, (arrival, place), strict=True):
        least[group[::-1]] = values[::-1]  # of several values for one group the last one written stays
    return first


def _take_cells(cells: Cells, positions: IntArray) -> Cells:
    """The cells at ascending positions; consecutive ones, as of a batch within one slice, are not copied."""
    if len(positions) == len(cells):
        return cells
    consecutive = len(positions) and int(positions[-1]) - int(positions[0]) == len(positions) - 1
    return cells.take(slice(int(positions[0]), int(positions[-1]) + 1) if consecutive else positions)

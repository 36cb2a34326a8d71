"""Slice revisions: what became of windows of slices in each clock tick of a step, for all of its clock ticks together.

A window is first answered in one clock tick. Each later clock tick in which a version of a tuple in it begins or ends is an
event, which revises one of its groups. Slices without those tuples are merged once for all windows; a group between two
events is that, merged with the versions that were valid then. So no window is made again, only groups are.

    clock tick   10        11        12        13
    window A     answer               |
    group 1      state 0    event     state 1        a version became valid in clock tick 12
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.integer_arrays import distinct, find_in, rank_distinct
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import null_safe_equal
from basestation.execution.columns.window_batch import expand_ranges
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.slices.slice_folder import SliceFolder, is_in_entry_order, rank_by_entry
from basestation.execution.slices.window_merger import WindowAggregates, WindowMerger
from basestation.execution.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class RevisedRows:
    """Rows that items add or remove: row[i] in item[i], in the order of both; `event` is -1 in first answers."""

    item: IntArray
    row: IntArray
    event: IntArray

    def take(self, which: BoolArray | IntArray) -> "RevisedRows":
        return RevisedRows(self.item[which], self.row[which], self.event[which])


@dataclass(frozen=True, slots=True)
class WindowStates:
    """The rows of windows at each clock tick: the rows of their other groups, and those of the states of their pairs."""

    others: IntArray  # by row, the window of a group without versions; these rows come first
    owner: IntArray  # by pair, its window
    events: IntArray  # pair * span + clock, ascending
    span: int
    exists: BoolArray  # by state, whether its group has a row

    def rows_of(self, window: IntArray, clock: IntArray, before: bool) -> tuple[IntArray, IntArray]:
        """(item, row): the rows of window[i] after clock[i], or before it, for each item i, in no order."""
        first, end = (np.searchsorted(self.others, window, side) for side in ("left", "right"))
        item = np.repeat(np.arange(len(window)), end - first)
        row = expand_ranges(first, end - first)
        first, end = (np.searchsorted(self.owner, window, side) for side in ("left", "right"))
        its_item, pair = np.repeat(np.arange(len(window)), end - first), expand_ranges(first, end - first)
        # Each event of a pair leads to its next state, and each pair begins with one.
        state = np.searchsorted(self.events, pair * self.span + clock[its_item], "left" if before else "right") + pair
        there = np.flatnonzero(self.exists[state])
        return np.concatenate([item, its_item[there]]), np.concatenate([row, len(self.others) + state[there]])


@dataclass(frozen=True, slots=True)
class SliceRevisions:
    """Items: first answers and revisions of windows, in the order in which they are given."""

    window: IntArray  # by item, the position of its window among those that were asked for
    clock: IntArray  # by item
    first: BoolArray  # by item, whether it is a first answer
    rows: WindowAggregates  # all rows
    ranks: IntArray  # by row, its place in the order of entry
    added: RevisedRows
    removed: RevisedRows
    before: IntArray  # by event, the row that it replaces, -1 where there was none
    after: IntArray  # by event, the row that replaces it, -1 where there is none
    states: WindowStates | None  # where all groups of the windows were merged
    past: int  # the clock tick before the step

    def whole(
        self, items: IntArray, groups: Sequence[Column], aggregates: Mapping[tuple[Column, int], int]
    ) -> tuple[WindowContents, WindowContents]:
        """(all rows of the windows of some items after the clock tick of each, and before it), by position in `items`."""
        if self.states is None:
            raise ValueError("expected revisions with all groups of their windows")
        rows = self.rows.frame(groups, aggregates).columns
        sides = []
        for before in (False, True):
            item, row = self.states.rows_of(self.window[items], self.clock[items] - self.past, before)
            found = _sort(RevisedRows(item, row, row), self.ranks)
            columns = {id: vector.take(found.row) for id, vector in rows.items()}
            sides.append(WindowContents(len(items), found.item, columns))
        return sides[0], sides[1]

    def frames(
        self, groups: Sequence[Column], aggregates: Mapping[tuple[Column, int], int]
    ) -> tuple[WindowContents, WindowContents]:
        """(the rows that items add, the rows that they remove) with some columns; equal rows are left out."""
        rows = self.rows.frame(groups, aggregates).columns
        both = (self.before >= 0) & (self.after >= 0)
        same = both.copy()
        for column, _ in aggregates:
            vector = rows[column.id]
            same[both] &= null_safe_equal(vector.take(self.before[both]), vector.take(self.after[both]))
        differs = np.append(~same, True)  # the last one, at -1, is for first answers
        added, removed = (of.take(differs[of.event]) for of in (self.added, self.removed))
        return self._frame(added, rows), self._frame(removed, rows)

    def _frame(self, of: RevisedRows, rows: Mapping[int, Vector]) -> WindowContents:
        return WindowContents(len(self.window), of.item, {id: vector.take(of.row) for id, vector in rows.items()})


@dataclass(frozen=True, slots=True)
class _States:
    """The states of pairs of a window and a group, pair after pair, each in the order of time.

    Clock ticks count from the one before the step, at which everything answered earlier stands.
    """

    pair: IntArray  # by state
    begins: IntArray  # by pair, its first state
    event_pair: IntArray
    event_clock: IntArray
    after: IntArray  # by event, the state that it leads to; it comes from the one before that
    entry: IntArray  # entry[i] is valid …
    state: IntArray  # … in state[i]


def _find_states(
    pair: IntArray, pairs: int, answered: IntArray, valid_from: IntArray, valid_to: IntArray, span: int
) -> _States:
    """The states that entries lead to: entry i, of pair[i], is valid from clock tick valid_from[i] to before valid_to[i].

    `answered` has the clock tick of the first answer of each pair. Clock ticks are below `span`.
    """
    keys = [(pair * span + clock)[(clock > answered[pair]) & (clock < span)] for clock in (valid_from, valid_to)]
    events = distinct(np.concatenate(keys))
    event_pair, event_clock = np.divmod(events, span)
    ends = np.cumsum(np.bincount(event_pair, minlength=pairs) + 1)
    begins = np.append(0, ends[:-1])[:pairs]

    first, end = begins[pair], ends[pair]
    for states, clock in ((first, valid_from), (end, valid_to)):
        later = np.flatnonzero(
            (clock > answered[pair]) & (clock < span)
        )  # there is an event then, and a state behind it
        states[later] = np.searchsorted(events, pair[later] * span + clock[later]) + pair[later] + 1
    end[valid_to <= answered[pair]] = 0
    counts = np.maximum(end - first, 0)
    return _States(
        np.repeat(np.arange(pairs), ends - begins), begins, event_pair, event_clock,
        np.arange(len(events)) + event_pair + 1, np.repeat(np.arange(len(pair)), counts), expand_ranges(first, counts),
    )  # fmt: skip


def revise_windows(
    folder: SliceFolder,
    merger: WindowMerger,
    stream: Stream,
    cells: Cells,
    slices: IntArray,
    versions: TupleVersions,
    first: IntArray,
    last: IntArray,
    clocks: IntArray,
    new: int,
    whole: bool,
) -> SliceRevisions:
    """The revisions of windows over the slices first[i] to last[i], in order, of which the last `new` are new.

    New windows are first answered in `clocks`. `cells` are without the tuples of `versions`, which are in `slices`. With
    `whole`, the groups that no version is in are merged for old windows, too.
    """
    groups, old = folder.groups_of(versions.tuples), len(first) - new
    width, before, span = len(folder.groups), versions.first - 1, versions.last - versions.first + 2
    arrival, place = folder.entry_of(versions.tuples)
    ranks = rank_by_entry(np.concatenate([cells.arrival, arrival]), np.concatenate([cells.place, place]))
    own_ranks, ranks = ranks[len(cells) :], ranks[: len(cells)]

    # Which versions are in which windows.
    lowest = np.searchsorted(last, slices)
    counts = np.maximum(np.searchsorted(first, slices, "right") - lowest, 0)
    version = np.repeat(np.arange(len(slices)), counts)
    pairs, pair = rank_distinct(expand_ranges(lowest, counts) * width + groups[version])
    owner, group = np.divmod(pairs, width)
    answered = np.append(np.zeros(old, np.int64), clocks - before)
    valid_from = np.maximum(versions.valid_from - before, 0)[version]
    valid_to = np.minimum(versions.valid_to - before, span)[version]
    states = _find_states(pair, len(pairs), answered[owner], valid_from, valid_to, span)

    # Their groups, in each state; and the other groups of new windows.
    if not (new or whole):  # of old windows only groups with versions are needed
        mask = np.zeros(width, bool)
        mask[groups] = True
        which = mask[cells.group]
        cells, ranks = cells.take(which), ranks[which]
    window, of_group, base = merger.merge(cells, first, last, ranks)
    at, held = find_in(window * width + of_group, pairs)
    if held.all():
        found = base.take(at[states.pair])
    else:
        found = merger.scatter(len(pairs), base.take(at[held]), np.flatnonzero(held)).take(states.pair)
    of = version[states.entry]
    own = folder.matrix(len(found), states.state, versions.tuples.take(of), own_ranks[of], stream)
    found = merger.combine(found, own)
    exists = folder.exists(found)
    mask = np.ones(len(window), bool) if whole else window >= old
    mask[at[held]] = False
    others = np.flatnonzero(mask)
    rows = folder.concatenate_matrices([base.take(others), found])
    folded = merger.finish(window[:0], np.concatenate([of_group[others], group[states.pair]]), rows, 0)

    # The items: in a clock tick, revisions come before first answers.
    revised, revision = np.unique(states.event_clock * len(first) + owner[states.event_pair], return_inverse=True)
    clock, of_item = np.divmod(revised, len(first))
    clock, of_item = np.append(clock, answered[old:]), np.append(of_item, np.arange(old, len(first)))
    is_first = np.arange(len(clock)) >= len(revised)
    order = np.argsort(2 * clock + is_first, kind="stable")
    item = np.empty_like(order)
    item[order] = np.arange(len(order))

    row = len(others) + np.arange(len(found))  # by state
    answered_first = np.flatnonzero(window[others] >= old)
    begun = np.flatnonzero(owner >= old)
    begun = begun[exists[states.begins[begun]]]
    row_after = np.where(exists[states.after], row[states.after], -1)
    row_before = np.where(exists[states.after - 1], row[states.after - 1], -1)
    answers = [
        (
            item[len(revised) + window[others[answered_first]] - old],
            answered_first,
            np.full(len(answered_first), -1),
        ),
        (item[len(revised) + owner[begun] - old], row[states.begins[begun]], np.full(len(begun), -1)),
        _with_rows(item[revision], row_after),
    ]
    items, its_rows, events = (np.concatenate(columns) for columns in zip(*answers, strict=True))
    added = _sort(RevisedRows(items, its_rows, events), rows.known_ranks)
    removed = _sort(RevisedRows(*_with_rows(item[revision], row_before)), rows.known_ranks)
    kept = WindowStates(window[others], owner, states.event_pair * span + states.event_clock, span, exists)
    return SliceRevisions(
        of_item[order], before + clock[order], is_first[order], folded, rows.known_ranks, added, removed,
        row_before, row_after, kept if whole else None, before,
    )  # fmt: skip


def _with_rows(item: IntArray, row: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """(item, row, event) of the events that have a row."""
    event = np.flatnonzero(row >= 0)
    return item[event], row[event], event


def _sort(rows: RevisedRows, ranks: IntArray) -> RevisedRows:
    """Rows by item, in each item in the order of entry."""
    ranks = ranks[rows.row]
    if is_in_entry_order(rows.item, ranks) and (rows.item[1:] >= rows.item[:-1]).all():
        return rows
    return rows.take(np.argsort(rank_by_entry(rows.item, ranks), kind="stable"))

"""Amended: what windows of slices held in the clock ticks of a step, for all of its clock ticks together.

A window is first answered in one clock tick; each later one in which a version of a tuple in it begins or ends is an event
in which one of its groups is amended. What slices hold without those tuples is put together once for all windows; what a
group was between two events is that, and the versions that stood then. So no window is made again, only groups are.
"""

from dataclasses import dataclass

import numpy as np

from basestation.execution.columns.integer_arrays import distinct, find_in, rank_distinct
from basestation.execution.columns.tuples import null_safe_equal
from basestation.execution.columns.window_batch import expand_ranges
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.slices.slice_folder import WindowAggregates, entry_places, is_in_entry_order, rank_by_entry


@dataclass(frozen=True, slots=True)
class RevisedRows:
    """What items add or take back: which row, in which item, in the order of both; `event` is -1 in first answers."""

    item: np.ndarray
    row: np.ndarray
    event: np.ndarray

    def take(self, which):
        return RevisedRows(self.item[which], self.row[which], self.event[which])


@dataclass(frozen=True, slots=True)
class SliceRevisions:
    """First answers and revisions of windows, in the order in which they are given: items. Each query has its own columns."""

    window: np.ndarray  # the place among those asked for
    clock: np.ndarray
    first: np.ndarray  # whether it is a first answer
    folded: WindowAggregates  # all rows
    added: RevisedRows
    removed: RevisedRows
    before: np.ndarray  # by event, which row it replaces, -1 where there was none
    after: np.ndarray  # by event, which row replaces it

    def frames(self, groups, aggregates):
        """(what the items add, what they take back) as a query shows it, without what it shows no difference of."""
        rows = self.folded.frame(groups, aggregates).columns
        both = (self.before >= 0) & (self.after >= 0)
        same = both.copy()
        for column, _ in aggregates:
            vector = rows[column.id]
            same[both] &= null_safe_equal(vector.take(self.before[both]), vector.take(self.after[both]))
        differs = np.append(~same, True)  # the last one, at -1, is that of first answers
        return [self._frame(of.take(differs[of.event]), rows) for of in (self.added, self.removed)]

    def _frame(self, of, rows):
        return WindowContents(len(self.window), of.item, {id: vector.take(of.row) for id, vector in rows.items()})


@dataclass(frozen=True, slots=True)
class _States:
    """What became of pairs of a window and a group: states follow each other, of one pair after the other.

    A clock tick is counted from the one before the step, in which all that was answered before it stands.
    """

    pair: np.ndarray  # by state
    begins: np.ndarray  # by pair, its first state
    event_pair: np.ndarray
    event_clock: np.ndarray
    after: np.ndarray  # by event, the state that it leads to; it comes from the one before
    entry: np.ndarray  # which entry stood …
    state: np.ndarray  # … in which state


def _states(pair, pairs, told, valid_from, valid_to, span):
    """The _States of entries: versions in windows, each of a `pair`, from clock tick `born` on to before `died`."""
    keys = [(pair * span + clock)[(clock > told[pair]) & (clock < span)] for clock in (valid_from, valid_to)]
    events = distinct(np.concatenate(keys))
    event_pair, event_clock = np.divmod(events, span)
    ends = np.cumsum(np.bincount(event_pair, minlength=pairs) + 1)
    begins = np.append(0, ends[:-1])[:pairs]

    first, behind = begins[pair], ends[pair]
    for states, clock in ((first, valid_from), (behind, valid_to)):
        later = np.flatnonzero((clock > told[pair]) & (clock < span))  # there is an event then, and a state behind it
        states[later] = np.searchsorted(events, pair[later] * span + clock[later]) + pair[later] + 1
    behind[valid_to <= told[pair]] = 0
    counts = np.maximum(behind - first, 0)
    return _States(
        np.repeat(np.arange(pairs), ends - begins), begins, event_pair, event_clock,
        np.arange(len(events)) + event_pair + 1, np.repeat(np.arange(len(pair)), counts), expand_ranges(first, counts),
    )  # fmt: skip


def revise_windows(folding, stream, cells, slices, versions, first, last, clocks, new):
    """What became of windows over the slices `first` to `last`, in order, of which the last `new` had no answer before.

    Those are first answered in `clocks`. `cells` are without the tuples of `versions`, which are in `slices`.
    """
    groups, old = folding.groups_of(versions.tuples), len(first) - new
    width, before, span = len(folding.groups), versions.first - 1, versions.last - versions.first + 2
    ranks = rank_by_entry(
        np.concatenate([cells.arrival, versions.tuples.arrival]),
        np.concatenate([cells.place, entry_places(versions.tuples)]),
    )
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
    states = _states(pair, len(pairs), answered[owner], valid_from, valid_to, span)

    # Their groups, in each state; and of windows that are answered for the first time, the others.
    if not new:  # of windows that were answered only the groups with versions are looked at
        some = np.zeros(width, bool)
        some[groups] = True
        which = some[cells.group]
        cells, ranks = cells.take(which), ranks[which]
    window, of_group, base = folding.gathered(cells, first, last, ranks)
    at, held = find_in(window * width + of_group, pairs)
    if held.all():
        found = base.take(at[states.pair])
    else:
        found = folding.filled(len(pairs), base.take(at[held]), np.flatnonzero(held)).take(states.pair)
    of = version[states.entry]
    own = folding.matrix(len(found), states.state, versions.tuples.take(of), own_ranks[of], stream)
    found = folding.combine(found, own)
    there = folding.there(found)
    others = window >= old
    others[at[held]] = False
    others = np.flatnonzero(others)
    rows = folding.joined([base.take(others), found])
    folded = folding.finished(window[:0], np.concatenate([of_group[others], group[states.pair]]), rows, 0)

    # The items: in a clock tick, what it revises comes before what is answered for the first time.
    revised, revision = np.unique(states.event_clock * len(first) + owner[states.event_pair], return_inverse=True)
    clock, of_item = np.divmod(revised, len(first))
    clock, of_item = np.append(clock, answered[old:]), np.append(of_item, np.arange(old, len(first)))
    is_first = np.arange(len(clock)) >= len(revised)
    order = np.argsort(2 * clock + is_first, kind="stable")
    item = np.empty_like(order)
    item[order] = np.arange(len(order))

    row = len(others) + np.arange(len(found))  # by state
    begun = np.flatnonzero(owner >= old)
    begun = begun[there[states.begins[begun]]]
    after = np.where(there[states.after], row[states.after], -1)
    come_from = np.where(there[states.after - 1], row[states.after - 1], -1)
    added = [
        (item[len(revised) + window[others] - old], np.arange(len(others)), np.full(len(others), -1)),
        (item[len(revised) + owner[begun] - old], row[states.begins[begun]], np.full(len(begun), -1)),
        _those(item[revision], after),
    ]
    added = RevisedRows(*(np.concatenate(columns) for columns in zip(*added, strict=True)))
    removed = RevisedRows(*_those(item[revision], come_from))
    added, removed = (_sorted(of, rows.place) for of in (added, removed))
    return SliceRevisions(
        of_item[order], before + clock[order], is_first[order], folded, added, removed, come_from, after
    )


def _those(item, row):
    """(item, row, event) of events that have a row."""
    event = np.flatnonzero(row >= 0)
    return item[event], row[event], event


def _sorted(rows, ranks):
    """In each item by the order of entry."""
    ranks = ranks[rows.row]
    if is_in_entry_order(rows.item, ranks) and (rows.item[1:] >= rows.item[:-1]).all():
        return rows
    return rows.take(np.argsort(rank_by_entry(rows.item, ranks), kind="stable"))

"""Folding: how tuples become partial states, how those of several slices become one, and what is answered from them.

What is folded is kept as `Cells`.
"""

from dataclasses import replace

import numpy as np

from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import all_true, any_true, cached_arange, constant
from basestation.execution.columns.cells import Cells, form_matrix, make_matrix
from basestation.execution.columns.integer_arrays import find_in, locate_ranges, rank_distinct
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.relational.aggregation import group_keys, result_vector
from basestation.execution.relational.group_ids import GroupIds
from basestation.execution.slices.aggregate_registry import AggregateRegistry
from basestation.execution.slices.sparse_table import SparseTable
from basestation.execution.streams.stream import REVISION_RANK
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state_bundle import bundle_states

_FULL = 4
"""A matrix of slices and groups is made where at least one of so many entries is there."""
_SMALL = 1024


class WindowAggregates:
    """What there is in windows, group by group in the order of their first tuples; computed for whoever asks."""

    def __init__(self, made, places, windows, window, keys, states):
        """`places` are those of aggregates, by number, in `made` and in the states."""
        self._made, self._places = made, places
        self._windows, self._window, self._keys, self._states = windows, window, keys, states
        self._answers = {}

    def frame(self, groups, aggregates):
        """A Frame with the keys as `groups`, and of `aggregates` [(column, number)] the answers."""
        columns = {column.id: key for column, key in zip(groups, self._keys, strict=True)}
        columns |= {column.id: self._answer(number) for column, number in aggregates}
        return WindowContents(self._windows, self._window, columns)

    def _answer(self, number):
        if number not in self._answers:
            place = self._places[number]
            made = self._made[place]
            self._answers[number] = result_vector(made, *made.finalize(self._states[place]))
        return self._answers[number]


class SliceFolder:
    """For all SliceAggregations that cut and group a stream alike."""

    def __init__(self, node, own=()):
        """`node` is one of them; `own` are aggregates that are folded for as long as it is there."""
        self._node, self.asked = node, AggregateRegistry()
        self.groups = GroupIds(node.groups)
        self._keys = {column.id for _, key in node.groups for column in columns_of(key)}
        self.own = self.asked.take(own)
        self.asked.renew()

    def renewed(self, cells, held, stream):
        """Cells with the states that are asked for now; new ones are made of what is `held`: () -> (slices, tuples)."""
        come_from, new = self.asked.renew()
        added = iter(self._more(cells, new, *held(), stream) if new else ())
        return replace(cells, states=[next(added) if was is None else cells.states[was] for was in come_from])

    def _more(self, cells, new, slices, tuples, stream):
        """The states at `new` places."""
        groups, width = self.groups_of(tuples), len(self.groups)
        at, there = find_in(cells.slice * width + cells.group, slices * width + groups)
        at = at[there]
        return self.asked.folded_at(new, np.bincount(at, minlength=len(cells)), at, tuples.take(there), stream)

    # --- cells -------------------------------------------------------------------------------------------------------

    def cells(self, slices, tuples, stream):
        """The Cells of tuples, which are in these slices."""
        groups, width = self.groups_of(tuples), len(self.groups)
        key = slices * width + groups
        if all_true(key[1:] > key[:-1]):
            return self._alone(slices, groups, tuples, stream)
        numbers, place = rank_distinct(slices)
        key, count = place * width + groups, len(numbers) * width
        if count > _FULL * len(tuples) + _SMALL:
            found, key = np.unique(key, return_inverse=True)
            count = len(found)
        else:
            found = np.arange(count)
        counts = np.bincount(key, minlength=count)
        row = found // width
        slices, groups, there = numbers[row], found - row * width, np.flatnonzero(counts)
        if int(counts.max()) == 1:
            row = np.empty(count, np.int64)
            row[key] = np.arange(len(key))
            return self._alone(slices[there], groups[there], tuples.take(row[there]), stream)
        states = self.asked.aggregate_rows(counts, key, tuples, stream)
        first = _earliest(tuples.arrival, entry_places(tuples), key, count)
        return self._in_rows(_there(Cells(slices, groups, *first, states), there))

    def _alone(self, slices, groups, tuples, stream):
        """Cells of one tuple each, in their order."""
        states = self.asked.aggregate_rows(constant(1, len(tuples)), None, tuples, stream)
        return self._in_rows(Cells(slices, groups, tuples.arrival, entry_places(tuples), states))

    def _in_rows(self, cells):
        """Cells in order, and whether they are a matrix as they are."""
        width = len(self.groups)
        if not len(cells) or len(cells) % width or any_true(cells.slice[::width] != cells.slice[width - 1 :: width]):
            return cells
        if not _ascending(cells.arrival, cells.place):
            return cells
        return replace(cells, width=width, group=cached_arange(width) if len(cells) == width else cells.group)

    def matrix(self, count, key, tuples, ranks, stream):
        """A matrix of so many cells, of tuples that are in those of `key`."""
        first = np.full(count, NEVER)
        np.minimum.at(first, key, ranks)
        counts = np.bincount(key, minlength=count)
        return make_matrix(self.asked.aggregate_rows(counts, key, tuples, stream), first)

    def filled(self, count, cells, into):
        """A matrix of so many cells, of which each of `into` is one of `cells`, and the others are blank."""
        first, once = np.full(count, NEVER), IdentityMemo()
        first[into] = cells.place
        states = [
            made.scatter(state, count, into, once) for made, state in zip(self.asked.made, cells.states, strict=True)
        ]
        return make_matrix(states, first)

    def there(self, cells):
        """Which cells of a matrix are groups: without grouping all, with tuples in them or not."""
        return self.counts(cells) > 0 if self._node.grouped else np.ones(len(cells), bool)

    def needed(self, tuples):
        """Tuples with only the columns that are asked for."""
        return tuples.with_columns({id_: tuples.columns[id_] for id_ in sorted(self._keys | self.asked.columns)})

    def groups_of(self, tuples):
        return self.groups.of(group_keys(self._node, tuples.columns), len(tuples))

    def counts(self, cells):
        """How many tuples there are in each."""
        return cells.states[0].cells["count"]

    def joined(self, parts):
        """All cells of all parts, one after another; they may share memory with them and with each other."""
        return parts[0] if len(parts) == 1 else self._after_another(parts, IdentityMemo())

    def separate(self, parts):
        """The same, sharing no memory: what is undone in one state stays in the others."""
        return self._after_another(parts, None)

    def _after_another(self, parts, once):
        columns = (
            None
            if parts and getattr(parts[0], name) is None
            else np.concatenate([_NONE, *(getattr(p, name) for p in parts)])
            for name in ("slice", "group", "arrival", "place")
        )
        return Cells(*columns, self._states(parts, once), parts[0].width if parts and form_matrix(parts) else 0)

    def _states(self, parts, once):
        return [made.concatenate([p.states[i] for p in parts], once) if parts else made.init(0)
                for i, made in enumerate(self.asked.made)]  # fmt: skip

    def inserted(self, cells, others):
        """Cells and others, both in order with one row for each slice and group, as one."""
        width = len(self.groups)
        keys, new = cells.slice * width + cells.group, others.slice * width + others.group
        at, known = find_in(keys, new)
        at, here, more = at[known], others.take(known), others.take(~known)
        row = np.arange(len(keys))
        row[at] = len(keys) + np.arange(len(at))
        row = np.append(row, len(keys) + len(at) + np.arange(len(more)))
        if len(more):
            row = row[np.argsort(np.append(keys, new[~known]), kind="stable")]
        return self.joined([cells, self._both(cells.take(at), here), more]).take(row)

    def _both(self, a, b):
        """Cells of the same slices and groups as one."""
        once = IdentityMemo()
        states = [made.combine(x, y, once) for made, x, y in zip(self.asked.made, a.states, b.states, strict=True)]
        earlier = (b.arrival < a.arrival) | ((b.arrival == a.arrival) & (b.place < a.place))
        arrival, place = (np.where(earlier, y, x) for x, y in ((a.arrival, b.arrival), (a.place, b.place)))
        return Cells(a.slice, a.group, arrival, place, states)

    def united(self, cells):
        """Cells with one row for each slice and group, in order."""
        width = len(self.groups)
        base = int(cells.slice.min(initial=NEVER))
        found, into = np.unique((cells.slice - base) * width + cells.group, return_inverse=True)
        slice, group = np.divmod(found, width)
        first = _earliest(cells.arrival, cells.place, into, len(found))
        return Cells(slice + base, group, *first, self._brought(cells, into, len(found)))

    def _brought(self, cells, into, count):
        """The states of so many cells, into which others are put together."""
        states = [made.init(count) for made in self.asked.made]
        for made, state, part in zip(self.asked.made, states, cells.states, strict=True):
            made.merge(state, part, into)
        return states

    def tidied(self, parts):
        """The same cells; groups that are in none of them are let go of when most are."""
        if not self._node.grouped or len(self.groups) <= _SMALL:
            return parts
        present = np.zeros(len(self.groups), bool)
        for part in parts:
            present[part.group] = True
        kept = np.flatnonzero(present)
        if len(self.groups) <= 2 * len(kept) + _SMALL:
            return parts
        renumbered = self.groups.keep(kept)
        return [replace(part, group=renumbered[part.group]) for part in parts]

    # --- taking back -------------------------------------------------------------------------------------------------

    def without(self, cells, slices, tuples):
        """(Cells without tuples that they hold, those that have to be made again as (slices, groups)).

        What cannot be undone is made again; so is a group that stays without its first tuple: nobody knows the next.
        """
        group, width = self.groups_of(tuples), len(self.groups)
        at = np.searchsorted(cells.slice * width + cells.group, slices * width + group)
        stays = self.counts(cells) > np.bincount(at, minlength=len(cells))
        lost = np.zeros(len(cells), bool)
        if not self.asked.can_undo:
            lost[at] = True
        elif self._node.grouped:
            lost[at[(cells.arrival[at] == tuples.arrival) & (cells.place[at] == entry_places(tuples))]] = True
        undone = ~lost[at]
        at, tuples = at[undone], tuples.take(undone)
        if len(at):
            self.asked.undo(cells.states, at, tuples)
        again = np.flatnonzero(lost & stays)
        return cells.take(stays & ~lost), (cells.slice[again], cells.group[again])

    def among(self, slices, tuples, cells):
        """Which tuples, in these slices, are in some of the cells (slices, groups)."""
        groups = self.groups_of(tuples)
        width = len(self.groups)
        return np.isin(slices * width + groups, cells[0] * width + cells[1])

    # --- windows -----------------------------------------------------------------------------------------------------

    def windows(self, parts, first, last):
        """What is Folded into windows, each over the slices first to last, of cells in parts."""
        if parts and form_matrix(parts):
            slices = np.concatenate([part.slice[:: part.width] for part in parts])
            found = self._dense(
                slices, parts[0].width, first, last, lambda: make_matrix(self._states(parts, IdentityMemo()))
            )
            if found is not None:
                return self.finished(*found, len(first))
        cells = self.joined(parts)
        ordered = cells.width or _ascending(cells.arrival, cells.place)
        ranks = None if ordered else rank_by_entry(cells.arrival, cells.place)
        window, group, found = self.gathered(cells, first, last, ranks)
        if found.place is not None and not is_in_entry_order(window, found.place):
            order = np.lexsort((found.place, window))
            window, group, found = window[order], group[order], found.take(order)
        return self.finished(window, group, found, len(first))

    def bundle(self, cells):
        """The Bundle of their states; None where these do not fold one by one."""
        return bundle_states(self.asked.made, cells.states)

    def whole(self, bundle):
        """The Folded of one window that holds all groups, of which this is the Bundle."""
        states = bundle.states()
        count = states[0].n_groups
        return self.finished(constant(0, count), cached_arange(count), make_matrix(states), 1)

    def finished(self, window, group, cells, windows):
        """The Folded of cells that stand window by window."""
        return WindowAggregates(
            self.asked.made, self.asked.places, windows, window, self.groups.keys(group), cells.states
        )

    def gathered(self, cells, first, last, ranks):
        """(window, group, ranked Cells) of what is in windows over the slices first to last: by window, then by group.

        `ranks` are those of the cells; None where they stand in the order of entry, and nobody asks.
        """
        if cells.width:
            slices = cells.slice[:: cells.width]
            found = self._dense(slices, cells.width, first, last, lambda: make_matrix(cells.states, ranks))
            if found is not None:
                return found
        begins = _begins(cells.slice)
        slices = cells.slice[begins]
        begin, length = locate_ranges(slices, first, last)
        end = begin + length
        asked = np.cumsum(np.bincount(begin, minlength=len(slices) + 1) - np.bincount(end, minlength=len(slices) + 1))
        asked = asked[:-1] > 0
        row = np.repeat(np.arange(len(slices)), np.diff(begins, append=len(cells)))
        if not asked.all():  # windows far apart
            which = asked[row]
            cells, row, number = cells.take(which), row[which], np.append(0, np.cumsum(asked))
            ranks = None if ranks is None else ranks[which]
            slices, begin, end, row = slices[asked], number[begin], number[end], number[row]
        groups = self._present(cells)
        column = np.zeros(len(self.groups), np.int64)
        column[groups] = np.arange(len(groups))
        column, size = column[cells.group], len(slices) * len(groups)
        many = not self._node.grouped or int((end - begin).sum()) * len(groups) > _SMALL
        if many and size <= _FULL * len(cells) + _SMALL:
            if size == len(cells):
                matrix = make_matrix(cells.states, ranks)
            else:
                matrix = self.filled(size, self._told(cells, ranks), row * len(groups) + column)
            window, at, found = self._of_matrix(matrix, len(slices), len(groups), begin, end)
        else:
            window, at, found = self._one_by_one(self._told(cells, ranks), row, column, len(groups), begin, end)
        return window, groups[at], found

    def _dense(self, slices, width, first, last, matrix):
        """The same of all of a `matrix` of slices and groups; None where not all of it, or little, is in windows."""
        begin, length = locate_ranges(slices, first, last)
        end = begin + length
        many = not self._node.grouped or int(length.sum()) * width > _SMALL
        if not (many and _cover(begin, end, len(slices))):
            return None
        return self._of_matrix(matrix(), len(slices), width, begin, end)

    def _told(self, cells, ranks):
        """Ranked, also where they stand in the order of entry."""
        return make_matrix(cells.states, np.arange(len(cells)) if ranks is None else ranks)

    def _present(self, cells):
        """The groups of cells; without grouping there is one whether or not something is in it."""
        if not self._node.grouped:
            return np.zeros(1, np.int64)
        present = np.zeros(len(self.groups), bool)
        present[cells.group] = True
        return np.flatnonzero(present)

    def _of_matrix(self, level, rows, width, begin, end):
        """(window, number among the groups, Cells) of what is there."""
        windows = len(begin)
        whole = self._together(level, windows * width, SparseTable(rows, width, begin, end))
        window, at = np.repeat(np.arange(windows), width), np.tile(np.arange(width), windows)
        there = self.there(whole)
        if there.all():
            return window, at, whole
        return window[there], at[there], whole.take(there)

    def _together(self, matrix, count, doubling):
        """The so many cells of windows over the rows of a matrix."""
        found = {}

        def bring(fold, array, blank):
            key = fold, id(array)
            if key not in found:
                # The array goes on living, so that no other gets its id.
                found[key] = doubling.array(fold, array, blank), array
            return found[key][0]

        states = [
            doubling.state(made, state)
            if made.folds is None
            else made.reduce_segments(state, count, doubling.longest, bring)
            for made, state in zip(self.asked.made, matrix.states, strict=True)
        ]
        return make_matrix(states, None if matrix.place is None else bring(np.minimum, matrix.place, NEVER))

    def combine(self, a, b):
        """Two matrices of the same shape as one."""
        once = IdentityMemo()
        pairs = zip(self.asked.made, a.states, b.states, strict=True)
        states = [made.combine(x, y, once) for made, x, y in pairs]
        ranked = a.place is not None and b.place is not None
        return make_matrix(states, np.minimum(a.place, b.place) if ranked else None)

    def _one_by_one(self, cells, row, column, width, begin, end):
        """The same where there is little, or few groups are in each slice: every window's cells are brought together."""
        bounds = np.searchsorted(row, np.arange(int(row[-1]) + 2 if len(row) else 1))
        first, counts = bounds[begin], bounds[end] - bounds[begin]
        window = np.repeat(np.arange(len(begin)), counts)
        taken_in = expand_ranges(first, counts)
        found, into = np.unique(window * width + column[taken_in], return_inverse=True)
        window, at = np.divmod(found, width)
        cells, first = cells.take(taken_in), np.full(len(found), NEVER)
        np.minimum.at(first, into, cells.place)
        return window, at, make_matrix(self._brought(cells, into, len(found)), first)


_NONE = np.empty(0, np.int64)


def _there(cells, places):
    """The cells at places. Of a batch that begins and ends within a slice they follow each other: then there is no copy."""
    if len(places) == len(cells):
        return cells
    in_a_row = len(places) and int(places[-1]) - int(places[0]) == len(places) - 1
    return cells.take(slice(int(places[0]), int(places[-1]) + 1) if in_a_row else places)


def entry_places(tuples):
    """The order of entry among those of one arrival, in one number: what a revision added is last, what came late behind.

    A rank is 0, a tick + 1 beside the place of a site (SEMANTICS 1.5), or ADDED.
    """
    if not any_true(tuples.rank):
        return tuples.place
    return np.where(tuples.rank == REVISION_RANK, REVISION_RANK + tuples.place, (tuples.rank << 20) + tuples.place)


def _cover(begin, end, count):
    """Whether each of so many rows is in one of the ranges, which begin one behind the other."""
    if not len(begin) or begin[0] or end.max() < count:
        return False
    return all_true((begin[1:] >= begin[:-1]) & (begin[1:] <= end[:-1]))


def _begins(ordered):
    """Where numbers, of which equal ones stand together, begin to be others."""
    return np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)[: len(ordered)]


def rank_by_entry(arrival, place):
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


def is_in_entry_order(window, ranks):
    """Whether cells that stand window by window stand in the order of entry in each."""
    return bool(((ranks[1:] >= ranks[:-1]) | (window[1:] != window[:-1])).all())


def _ascending(arrival, place):
    """Whether no order of entry is before the one before it."""
    later = arrival[1:] > arrival[:-1]
    return all_true(later) or all_true(later | ((arrival[1:] == arrival[:-1]) & (place[1:] >= place[:-1])))


def _earliest(arrival, place, group, count):
    """The least (arrival, place) of each group; those of a group without any are NEVER."""
    out = np.full(count, NEVER), np.full(count, NEVER)
    if not _ascending(arrival, place):
        order = np.argsort(rank_by_entry(arrival, place), kind="stable")
        arrival, place, group = arrival[order], place[order], group[order]
    for best, values in zip(out, (arrival, place), strict=True):
        best[group[::-1]] = values[::-1]  # of several values for one group the last that is written stays
    return out

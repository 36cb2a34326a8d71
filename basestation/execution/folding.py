"""Folding: how tuples become partial states, how those of several slices become one, and what is answered from them.

What is folded is kept as `Cells`.
"""

from dataclasses import replace

import numpy as np

from basestation.algebra.signatures import signature
from basestation.execution.aggregating import answer, keys_of, made_for, values_of
from basestation.execution.cells import Cells
from basestation.execution.distinct import ranked
from basestation.execution.frame import Frame
from basestation.execution.groups import Groups
from basestation.execution.streams import ADDED
from basestation.execution.wins import NEVER, ranges
from innet.aggregates import make
from innet.aggregates.state import Once

_FULL = 4
"""A matrix of slices and groups is made where at least one of so many entries is there."""
_SMALL = 1024


class Folded:
    """What there is in windows, group by group in the order of their first tuples; computed for whoever asks."""

    def __init__(self, made, windows, window, keys, states):
        self._made, self._windows, self._window, self._keys, self._states = made, windows, window, keys, states
        self._answers = {}

    def frame(self, groups, aggregates):
        """A Frame with the keys as `groups`, and of `aggregates` [(column, place among all)] the answers."""
        columns = {column.id: key for column, key in zip(groups, self._keys, strict=True)}
        columns |= {column.id: self._answer(place) for column, place in aggregates}
        return Frame(self._windows, self._window, columns)

    def _answer(self, place):
        if place not in self._answers:
            made = self._made[place]
            self._answers[place] = answer(made, *made.finalize(self._states[place]))
        return self._answers[place]


class Folding:
    """For all SliceAggregations that cut and group a stream alike."""

    def __init__(self, node):
        self._node = node  # one of them
        self._aggregates, self._known = [], {}
        self._made = [make("COUNT", "integer")]  # how many tuples a group has: without any it is gone
        self.groups = Groups(node.groups)
        self.take_on(node)

    def take_on(self, node):
        """Whether a SliceAggregation has aggregates that no other had."""
        known = len(self._aggregates)
        for _, aggregate in node.aggregates:
            if self._known.setdefault(signature(aggregate), len(self._made)) == len(self._made):
                self._aggregates.append(aggregate)
                self._made.append(made_for(aggregate))
        self._can_undo = all(each.can_undo for each in self._made)
        return len(self._aggregates) > known

    def places(self, node):
        """Where the aggregates of a SliceAggregation are among all: (column, place)."""
        return [(column, self._known[signature(aggregate)]) for column, aggregate in node.aggregates]

    # --- cells -------------------------------------------------------------------------------------------------------

    def cells(self, slices, tuples, stream):
        """The Cells of tuples, which are in these slices."""
        groups, width = self.groups_of(tuples), len(self.groups)
        numbers, place = ranked(slices)
        key, count = place * width + groups, len(numbers) * width
        if count > _FULL * len(tuples) + _SMALL:
            found, key = np.unique(key, return_inverse=True)
            count = len(found)
        else:
            found = np.arange(count)
        counts = np.bincount(key, minlength=count)
        states = self._folded(counts, key, tuples, stream)
        row = found // width
        first = _earliest(tuples.arrival, places_of(tuples), key, count)
        return _there(Cells(numbers[row], found - row * width, *first, states), np.flatnonzero(counts))

    def _folded(self, counts, key, tuples, stream):
        """The states of as many groups as `counts` has, which are the tuples of each; `key` has that of each tuple."""
        # Of one tick, tuples take their indexes in the order in which they came; not in a union, which is not sliced.
        order = tuples.tick, tuples.site if stream.by_site else tuples.ident
        states, once = [self._made[0].folded(counts, key)], Once()
        for made, aggregate in zip(self._made[1:], self._aggregates, strict=True):
            states.append(made.folded(counts, key, *values_of(aggregate, tuples.columns, len(tuples)), order, once))
        return states

    def matrix(self, count, key, tuples, ranks, stream):
        """A matrix of so many cells, of tuples that are in those of `key`."""
        first = np.full(count, NEVER)
        np.minimum.at(first, key, ranks)
        counts = np.bincount(key, minlength=count)
        return Cells(None, None, None, first, self._folded(counts, key, tuples, stream))

    def filled(self, count, cells, into):
        """A matrix of so many cells, of which each of `into` is one of `cells`, and the others are blank."""
        first, once = np.full(count, NEVER), Once()
        first[into] = cells.place
        states = [made.spread(state, count, into, once) for made, state in zip(self._made, cells.states, strict=True)]
        return Cells(None, None, None, first, states)

    def there(self, cells):
        """Which cells of a matrix are groups: without grouping all, with tuples in them or not."""
        return self.counts(cells) > 0 if self._node.grouped else np.ones(len(cells), bool)

    def groups_of(self, tuples):
        return self.groups.of(keys_of(self._node, tuples.columns), len(tuples))

    def counts(self, cells):
        """How many tuples there are in each."""
        return self._made[0].finalize(cells.states[0])[0]

    def joined(self, parts):
        """All cells of all parts, one after another; they may share memory with them and with each other."""
        return parts[0] if len(parts) == 1 else self._after_another(parts, Once())

    def copied(self, parts):
        """The same, sharing no memory."""
        return self._after_another(parts, None)

    def _after_another(self, parts, once):
        columns = (
            None
            if parts and getattr(parts[0], name) is None
            else np.concatenate([_NONE, *(getattr(p, name) for p in parts)])
            for name in ("slice", "group", "arrival", "place")
        )
        states = [made.concatenate([p.states[i] for p in parts], once) if parts else made.init(0)
                  for i, made in enumerate(self._made)]  # fmt: skip
        return Cells(*columns, states)

    def inserted(self, cells, others):
        """Cells and others, both in order with one row for each slice and group, as one."""
        width = len(self.groups)
        keys, new = cells.slice * width + cells.group, others.slice * width + others.group
        at, known = found_in(keys, new)
        at, here, more = at[known], others.take(known), others.take(~known)
        row = np.arange(len(keys))
        row[at] = len(keys) + np.arange(len(at))
        row = np.append(row, len(keys) + len(at) + np.arange(len(more)))
        if len(more):
            row = row[np.argsort(np.append(keys, new[~known]), kind="stable")]
        return self.joined([cells, self._both(cells.take(at), here), more]).take(row)

    def _both(self, a, b):
        """Cells of the same slices and groups as one."""
        once = Once()
        states = [made.merged(x, y, once) for made, x, y in zip(self._made, a.states, b.states, strict=True)]
        earlier = (b.arrival < a.arrival) | ((b.arrival == a.arrival) & (b.place < a.place))
        arrival, place = (np.where(earlier, y, x) for x, y in ((a.arrival, b.arrival), (a.place, b.place)))
        return Cells(a.slice, a.group, arrival, place, states)

    def united(self, cells):
        """Cells with one row for each slice and group, in order."""
        width = len(self.groups)
        base = int(cells.slice.min(initial=NEVER))
        found, into = np.unique((cells.slice - base) * width + cells.group, return_inverse=True)
        slice, group = np.divmod(found, width)
        return self._united(cells, into, slice + base, group)

    def _united(self, cells, into, slice, group):
        states = self._brought(cells, into, len(slice))
        return Cells(slice, group, *_earliest(cells.arrival, cells.place, into, len(slice)), states)

    def _brought(self, cells, into, count):
        """The states of so many cells, into which others are put together."""
        states = [made.init(count) for made in self._made]
        for made, state, part in zip(self._made, states, cells.states, strict=True):
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
        """(Cells without tuples that they hold, the slices that have to be made again instead).

        What cannot be undone is made again; so is a group that stays without its first tuple: nobody knows the next.
        """
        group = self.groups_of(tuples)
        width = len(self.groups)
        at = np.searchsorted(cells.slice * width + cells.group, slices * width + group)
        lost = np.ones(len(tuples), bool)
        if self._can_undo:
            first = (cells.arrival[at] == tuples.arrival) & (cells.place[at] == places_of(tuples))
            lost = first & (self.counts(cells) > np.bincount(at, minlength=len(cells)))[at] & self._node.grouped
        again = np.unique(slices[lost])
        stays = ~np.isin(slices, again)
        at, tuples = at[stays], tuples.take(stays)
        if len(at):
            self._made[0].undo(cells.states[0], at)
            for made, state, aggregate in zip(self._made[1:], cells.states[1:], self._aggregates, strict=True):
                made.undo(state, at, *values_of(aggregate, tuples.columns, len(tuples)))
        return cells.take((self.counts(cells) > 0) & ~np.isin(cells.slice, again)), again

    # --- windows -----------------------------------------------------------------------------------------------------

    def windows(self, cells, first, last):
        """What is Folded into windows, each over the slices first to last."""
        ranks = None if _ascending(cells.arrival, cells.place).all() else entered(cells.arrival, cells.place)
        window, group, found = self.gathered(cells, first, last, ranks)
        if found.place is not None and not in_order(window, found.place):
            order = np.lexsort((found.place, window))
            window, group, found = window[order], group[order], found.take(order)
        return self.finished(window, group, found, len(first))

    def finished(self, window, group, cells, windows):
        """The Folded of cells that stand window by window."""
        return Folded(self._made, windows, window, self.groups.keys(group), cells.states)

    def gathered(self, cells, first, last, ranks):
        """(window, group, ranked Cells) of what is in windows over the slices first to last: by window, then by group.

        `ranks` are those of the cells; None where they stand in the order of entry, and nobody asks.
        """
        new = np.diff(cells.slice, prepend=-NEVER) > 0
        slices, row = cells.slice[new], np.cumsum(new) - 1
        begin, end = np.searchsorted(slices, first), np.searchsorted(slices, last, "right")
        end = np.maximum(begin, end)
        asked = np.cumsum(np.bincount(begin, minlength=len(slices) + 1) - np.bincount(end, minlength=len(slices) + 1))
        asked = asked[:-1] > 0
        if not asked.all():  # windows far apart
            which = asked[row]
            cells, row, number = cells.take(which), row[which], np.append(0, np.cumsum(asked))
            ranks = None if ranks is None else ranks[which]
            slices, begin, end, row = slices[asked], number[begin], number[end], number[row]
        groups = self._present(cells)
        column = np.zeros(len(self.groups), np.int64)
        column[groups] = np.arange(len(groups))
        column, size = column[cells.group], len(slices) * len(groups)
        few = self._node.grouped and int((end - begin).sum()) * len(groups) <= _SMALL
        if not few and size <= _FULL * len(cells) + _SMALL:
            if size == len(cells):
                matrix = cells.ranked(ranks)
            else:
                matrix = self.filled(size, self._told(cells, ranks), row * len(groups) + column)
            window, at, found = self._of_matrix(matrix, len(slices), len(groups), begin, end)
        else:
            window, at, found = self._one_by_one(self._told(cells, ranks), row, column, len(groups), begin, end)
        return window, groups[at], found

    def _told(self, cells, ranks):
        """Ranked, also where they stand in the order of entry."""
        return cells.ranked(np.arange(len(cells)) if ranks is None else ranks)

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
        if windows == 1 and rows and all(made.folds is not None for made in self._made):
            whole = self._stacked(level, rows)
        else:
            whole = self._doubled(level, rows, width, begin, end)
        window, at = np.repeat(np.arange(windows), width), np.tile(np.arange(width), windows)
        there = self.there(whole)
        if there.all():
            return window, at, whole
        return window[there], at[there], whole.take(there)

    def _doubled(self, level, rows, width, begin, end):
        """The cells of windows: of slices one, two, four, … are put together."""
        windows, length, step = len(begin), end - begin, 1
        whole = owned = None  # `owned`: nobody else has its arrays
        while True:
            which = np.flatnonzero(length & step)
            if len(which):
                part = level.take(_rows(begin[which], width))
                if len(which) == windows:
                    whole, owned = part if whole is None else self.merged(whole, part), False
                else:
                    if not owned:
                        whole, owned = self._blank(windows * width) if whole is None else self.copied([whole]), True
                    whole = self._with(whole, part, _rows(which, width))
                begin = begin + (length & step)
            if rows < 2 * step or 2 * step > int(length.max(initial=0)):
                break
            last = (rows - 2 * step + 1) * width
            level = self.merged(level.take(slice(0, last)), level.take(slice(step * width, step * width + last)))
            step *= 2
        return self._blank(windows * width) if whole is None else whole

    def _blank(self, count):
        return Cells(None, None, None, np.full(count, NEVER), [made.init(count) for made in self._made])

    def _stacked(self, matrix, rows):
        """The rows of a matrix as one."""
        found = {}

        def down(fold, column):
            key = fold, id(column)
            if key not in found:
                found[key] = fold.reduce(column.reshape(rows, -1), axis=0)
            return found[key]

        states = [made.stacked(state, rows, down) for made, state in zip(self._made, matrix.states, strict=True)]
        place = None if matrix.place is None else matrix.place.reshape(rows, -1).min(axis=0)
        return Cells(None, None, None, place, states)

    def merged(self, a, b):
        """Two matrices of the same shape as one."""
        once = Once()
        pairs = zip(self._made, a.states, b.states, strict=True)
        states = [made.merged(x, y, once) for made, x, y in pairs]
        ranked = a.place is not None and b.place is not None
        return Cells(None, None, None, np.minimum(a.place, b.place) if ranked else None, states)

    def _with(self, whole, part, into):
        """A matrix, changed: some cells, each at most once, have taken others in."""
        into = np.arange(into.start, into.stop) if isinstance(into, slice) else into
        for made, state, other in zip(self._made, whole.states, part.states, strict=True):
            made.merge(state, other, into)
        if part.place is None or whole.place is None:
            return whole.ranked(None)
        whole.place[into] = np.minimum(whole.place[into], part.place)
        return whole

    def _one_by_one(self, cells, row, column, width, begin, end):
        """The same where there is little, or few groups are in each slice: every window's cells are brought together."""
        bounds = np.searchsorted(row, np.arange(int(row[-1]) + 2 if len(row) else 1))
        first, counts = bounds[begin], bounds[end] - bounds[begin]
        window = np.repeat(np.arange(len(begin)), counts)
        taken_in = ranges(first, counts)
        found, into = np.unique(window * width + column[taken_in], return_inverse=True)
        window, at = np.divmod(found, width)
        cells, first = cells.take(taken_in), np.full(len(found), NEVER)
        np.minimum.at(first, into, cells.place)
        return window, at, Cells(None, None, None, first, self._brought(cells, into, len(found)))


_NONE = np.empty(0, np.int64)


def _there(cells, places):
    """The cells at places. Of a batch that begins and ends within a slice they follow each other: then there is no copy."""
    if len(places) == len(cells):
        return cells
    in_a_row = len(places) and int(places[-1]) - int(places[0]) == len(places) - 1
    return cells.take(slice(int(places[0]), int(places[-1]) + 1) if in_a_row else places)


def places_of(tuples):
    """The order of entry among those of one arrival, in one number: what a revision added is last, what came late behind.

    A rank is 0, a tick + 1 beside the place of a site (SEMANTICS 1.5), or ADDED.
    """
    if not tuples.rank.any():
        return tuples.place
    return np.where(tuples.rank == ADDED, ADDED + tuples.place, (tuples.rank << 20) + tuples.place)


def found_in(keys, values):
    """(where values are in ascending keys, which of them are there)."""
    at = np.searchsorted(keys, values)
    known = at < len(keys)
    known[known] = keys[at[known]] == values[known]
    return at, known


def entered(arrival, place):
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


def in_order(window, ranks):
    """Whether cells that stand window by window stand in the order of entry in each."""
    return bool(((ranks[1:] >= ranks[:-1]) | (window[1:] != window[:-1])).all())


def _ascending(arrival, place):
    """Where an order of entry is not before the one before it."""
    return (arrival[1:] > arrival[:-1]) | ((arrival[1:] == arrival[:-1]) & (place[1:] >= place[:-1]))


def _rows(numbers, width):
    """Where some rows of a matrix are: a slice if they follow each other."""
    if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]) * width, (int(numbers[-1]) + 1) * width)
    return ((numbers * width)[:, None] + np.arange(width)).ravel()


def _earliest(arrival, place, group, count):
    """The least (arrival, place) of each group; those of a group without any are NEVER."""
    out = np.full(count, NEVER), np.full(count, NEVER)
    if not _ascending(arrival, place).all():
        order = np.argsort(entered(arrival, place), kind="stable")
        arrival, place, group = arrival[order], place[order], group[order]
    for best, values in zip(out, (arrival, place), strict=True):
        best[group[::-1]] = values[::-1]  # of several values for one group the last that is written stays
    return out

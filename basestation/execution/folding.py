"""Folding: how tuples become partial states, how those of several slices become one, and what is answered from them.

`Cells` are the states of groups in slices, a row for each, by slice. The order of entry of a group's first tuple is kept
with them, because groups stand in that order (SEMANTICS 6.4).
"""

from dataclasses import dataclass, replace

import numpy as np

from basestation.execution.aggregating import answer, keys_of, made_for, values_of
from basestation.execution.frame import Frame
from basestation.execution.groups import Groups
from basestation.execution.streams import ADDED
from basestation.execution.wins import NEVER, ranges
from innet.aggregates import make

_FULL = 4
"""A matrix of slices and groups is made where at least one of so many entries is there."""
_SMALL = 1024


@dataclass(frozen=True, slots=True)
class Cells:
    """`arrival` and `place` say when the first tuple enters; `states` has one state for each aggregate, counts first."""

    slice: np.ndarray
    group: np.ndarray
    arrival: np.ndarray
    place: np.ndarray
    states: list

    def __len__(self):
        return len(self.slice)


class Folding:
    """For one SliceAggregation."""

    def __init__(self, node):
        self._node = node
        self._aggregates = [aggregate for _, aggregate in node.aggregates]
        made = [made_for(aggregate) for aggregate in self._aggregates]
        self._can_undo = all(each.can_undo for each in made)
        self._made = [make("COUNT", "integer"), *made]  # how many tuples a group has: without any it is gone
        self.groups = Groups(node.groups)

    # --- cells -------------------------------------------------------------------------------------------------------

    def cells(self, slices, tuples, stream):
        """The Cells of tuples, which are in these slices."""
        groups = self._groups_of(tuples)
        base, width = int(slices.min(initial=NEVER)), len(self.groups)
        key = (slices - base) * width + groups
        count = (int(slices.max(initial=base)) - base + 1) * width
        if count > _FULL * len(tuples) + _SMALL:
            found, key = np.unique(key, return_inverse=True)
            count = len(found)
        else:
            found = np.arange(count)
        # Of one tick, tuples take their indexes in the order in which they came; not in a union, which is not sliced.
        order = tuples.tick, tuples.site if stream.by_site else tuples.ident
        states = [made.init(count) for made in self._made]
        self._made[0].update(states[0], key)
        for made, state, aggregate in zip(self._made[1:], states[1:], self._aggregates, strict=True):
            made.update(state, key, *values_of(aggregate, tuples.columns, len(tuples)), order=order)
        slice, group = np.divmod(found, width)
        cells = Cells(slice + base, group, *_earliest(tuples.arrival, _places(tuples), key, count), states)
        there = self.counts(cells) > 0
        return cells if there.all() else self.take(cells, there)

    def _groups_of(self, tuples):
        return self.groups.of(keys_of(self._node, tuples.columns), len(tuples))

    def counts(self, cells):
        """How many tuples there are in each."""
        return self._made[0].finalize(cells.states[0])[0]

    def take(self, cells, which):
        states = [made.take(state, which) for made, state in zip(self._made, cells.states, strict=True)]
        return Cells(cells.slice[which], cells.group[which], cells.arrival[which], cells.place[which], states)

    def joined(self, parts):
        """All cells of all parts, one after another."""
        return parts[0] if len(parts) == 1 else self.copied(parts)

    def copied(self, parts):
        """The same, sharing no memory with them."""
        columns = (
            np.concatenate([_NONE, *(getattr(p, n) for p in parts)]) for n in ("slice", "group", "arrival", "place")
        )
        states = [made.concatenate([p.states[i] for p in parts]) if parts else made.init(0)
                  for i, made in enumerate(self._made)]  # fmt: skip
        return Cells(*columns, states)

    def united(self, cells):
        """Cells with one row for each slice and group, in order."""
        width = len(self.groups)
        base = int(cells.slice.min(initial=NEVER))
        found, into = np.unique((cells.slice - base) * width + cells.group, return_inverse=True)
        slice, group = np.divmod(found, width)
        return self._united(cells, into, slice + base, group)

    def _united(self, cells, into, slice, group):
        count = len(slice)
        states = [made.init(count) for made in self._made]
        for made, state, part in zip(self._made, states, cells.states, strict=True):
            made.merge(state, part, into)
        return Cells(slice, group, *_earliest(cells.arrival, cells.place, into, count), states)

    def tidied(self, parts):
        """The same cells; groups that are in none of them are let go of when most are."""
        present = np.zeros(len(self.groups), bool)
        for part in parts:
            present[part.group] = True
        kept = np.flatnonzero(present)
        if not self._node.grouped or len(self.groups) <= 2 * len(kept) + _SMALL:
            return parts
        renumbered = self.groups.keep(kept)
        return [replace(part, group=renumbered[part.group]) for part in parts]

    # --- taking back -------------------------------------------------------------------------------------------------

    def without(self, cells, slices, tuples):
        """(Cells without tuples that they hold, the slices that have to be made again instead).

        What cannot be undone is made again; so is a group that stays without its first tuple: nobody knows the next.
        """
        group = self._groups_of(tuples)
        width = len(self.groups)
        at = np.searchsorted(cells.slice * width + cells.group, slices * width + group)
        lost = np.ones(len(tuples), bool)
        if self._can_undo:
            first = (cells.arrival[at] == tuples.arrival) & (cells.place[at] == _places(tuples))
            lost = first & (self.counts(cells) > np.bincount(at, minlength=len(cells)))[at] & self._node.grouped
        again = np.unique(slices[lost])
        stays = ~np.isin(slices, again)
        at, tuples = at[stays], tuples.take(stays)
        if len(at):
            self._made[0].undo(cells.states[0], at)
            for made, state, aggregate in zip(self._made[1:], cells.states[1:], self._aggregates, strict=True):
                made.undo(state, at, *values_of(aggregate, tuples.columns, len(tuples)))
        return self.take(cells, (self.counts(cells) > 0) & ~np.isin(cells.slice, again)), again

    # --- windows -----------------------------------------------------------------------------------------------------

    def windows(self, cells, first, last):
        """The Frame of windows, each over the slices first to last."""
        new = np.diff(cells.slice, prepend=-NEVER) > 0
        slices, row = cells.slice[new], np.cumsum(new) - 1
        begin, end = np.searchsorted(slices, first), np.searchsorted(slices, last, "right")
        end = np.maximum(begin, end)
        asked = np.cumsum(np.bincount(begin, minlength=len(slices) + 1) - np.bincount(end, minlength=len(slices) + 1))
        asked = asked[:-1] > 0
        if not asked.all():  # windows far apart
            which = asked[row]
            cells, row, number = self.take(cells, which), row[which], np.append(0, np.cumsum(asked))
            slices, begin, end, row = slices[asked], number[begin], number[end], number[row]
        groups = self._present(cells)
        column = np.zeros(len(self.groups), np.int64)
        column[groups] = np.arange(len(groups))
        column = column[cells.group]
        if len(slices) * len(groups) <= _FULL * len(cells) + _SMALL:
            steady = len(slices) * len(groups) == len(cells) and bool(_ascending(cells.arrival, cells.place).all())
            window, at, found = self._of_matrix(cells, row, column, len(groups), begin, end, steady)
        else:
            steady = False
            window, at, found = self._one_by_one(cells, row, column, len(groups), begin, end)
        return self._finished(window, groups[at], found, len(first), steady)

    def _present(self, cells):
        """The groups of cells; without grouping there is one whether or not something is in it."""
        if not self._node.grouped:
            return np.zeros(1, np.int64)
        present = np.zeros(len(self.groups), bool)
        present[cells.group] = True
        return np.flatnonzero(present)

    def _of_matrix(self, cells, row, column, width, begin, end, steady):
        """(window, number among the groups, Cells) of what is there: of slices one, two, four, … are put together.

        The order of entry is not looked at where it is `steady`.
        """
        rows, windows = int(row[-1]) + 1 if len(row) else 0, len(begin)
        level = cells if steady else self._merged(self._blank(rows * width), cells, row * width + column)
        whole, length, step = None, end - begin, 1
        while True:
            which = np.flatnonzero(length & step)
            if len(which):
                part = self.take(level, _rows(begin[which], width))
                if len(which) == windows:
                    whole = self.copied([part]) if whole is None else self._merged(whole, part, None, steady)
                else:
                    whole = self._blank(windows * width) if whole is None else whole
                    whole = self._merged(whole, part, _rows(which, width), steady)
                begin = begin + (length & step)
            if rows < 2 * step or 2 * step > int(length.max(initial=0)):
                break
            last = (rows - 2 * step + 1) * width
            halves = self.copied([self.take(level, slice(0, last))])
            level = self._merged(halves, self.take(level, slice(step * width, step * width + last)), None, steady)
            step *= 2
        whole = self._blank(windows * width) if whole is None else whole
        window, at = np.divmod(np.arange(windows * width), width)
        there = self.counts(whole) > 0
        if there.all() or not self._node.grouped:
            return window, at, whole
        return window[there], at[there], self.take(whole, there)

    def _blank(self, count):
        none = np.zeros(count, np.int64)
        return Cells(
            none, none, np.full(count, NEVER), np.full(count, NEVER), [made.init(count) for made in self._made]
        )

    def _merged(self, whole, part, into, steady=False):
        """A matrix of which cells, each at most once, have taken others in; None: each has."""
        for made, state, other in zip(self._made, whole.states, part.states, strict=True):
            made.merge(state, other, _numbers(into))
        if steady:
            return whole
        into = slice(None) if into is None else into
        arrival, place = whole.arrival.copy(), whole.place.copy()
        held, comes = arrival[into], part.arrival
        earlier = (comes < held) | ((comes == held) & (part.place < place[into]))
        arrival[into], place[into] = np.where(earlier, comes, held), np.where(earlier, part.place, place[into])
        return Cells(whole.slice, whole.group, arrival, place, whole.states)

    def _one_by_one(self, cells, row, column, width, begin, end):
        """The same where few groups are in each slice: every window's cells are brought together."""
        bounds = np.searchsorted(row, np.arange(int(row[-1]) + 2 if len(row) else 1))
        first, counts = bounds[begin], bounds[end] - bounds[begin]
        window = np.repeat(np.arange(len(begin)), counts)
        places = ranges(first, counts)
        found, into = np.unique(window * width + column[places], return_inverse=True)
        window, at = np.divmod(found, width)
        return window, at, self._united(self.take(cells, places), into, window, at)

    def _finished(self, window, group, cells, windows, steady):
        """The Frame: each window's groups in the order of their first tuples."""
        if not steady and not (_ascending(cells.arrival, cells.place) | (window[1:] != window[:-1])).all():
            order = np.lexsort((cells.place, cells.arrival, window))
            window, group, cells = window[order], group[order], self.take(cells, order)
        columns = {c.id: key for (c, _), key in zip(self._node.groups, self.groups.keys(group), strict=True)}
        for (column, _), made, state in zip(self._node.aggregates, self._made[1:], cells.states[1:], strict=True):
            columns[column.id] = answer(made, *made.finalize(state))
        return Frame(windows, window, columns)


_NONE = np.empty(0, np.int64)


def _places(tuples):
    """The order of entry among those of one arrival, in one number: what a revision added is last, what came late behind.

    A rank is 0, a tick + 1 beside the place of a site (SEMANTICS 1.5), or ADDED.
    """
    return np.where(tuples.rank == ADDED, ADDED + tuples.place, (tuples.rank << 20) + tuples.place)


def _ascending(arrival, place):
    """Where an order of entry is not before the one before it."""
    return (arrival[1:] > arrival[:-1]) | ((arrival[1:] == arrival[:-1]) & (place[1:] >= place[:-1]))


def _rows(numbers, width):
    """Where some rows of a matrix are: a slice if they follow each other."""
    if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]) * width, (int(numbers[-1]) + 1) * width)
    return ((numbers * width)[:, None] + np.arange(width)).ravel()


def _numbers(into):
    return np.arange(into.start, into.stop) if isinstance(into, slice) else into


def _earliest(arrival, place, group, count):
    """The least (arrival, place) of each group; those of a group without any are NEVER."""
    out = np.full(count, NEVER), np.full(count, NEVER)
    in_order = _ascending(arrival, place).all()
    order = np.arange(len(group)) if in_order else np.lexsort((place, arrival))
    backwards = order[::-1]  # of several values for one group the last stays
    for best, values in zip(out, (arrival, place), strict=True):
        best[group[backwards]] = values[backwards]
    return out

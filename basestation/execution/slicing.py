"""Slicing: aggregates over windows of time, merged from slices (DESIGN.md: Windows).

The stream is cut at the edges of the windows; a tuple is folded into its slice once. A slice keeps, for each group, the
partial states of the aggregates; a window is the merge of its slices. When tuples are gone, a slice undoes them where
all of its aggregates can, and is made again from the readings otherwise; both give the same.
"""

import numpy as np

from basestation.algebra.vector import Vector, dtype_of
from basestation.execution.aggregating import answer, grouped, keys_of, made_for, values_of
from basestation.execution.frame import Frame
from basestation.execution.tuples import concatenated
from basestation.execution.windowing import TimeWindows
from basestation.execution.wins import NEVER
from innet.aggregates import make


class SliceWindows(TimeWindows):
    """SliceAggregation: the same windows as TimeWindows would give, each with one tuple for each group."""

    def __init__(self, stream, node, start):
        super().__init__(stream, node.child.columns, node.begin, node.end, node.slide, start)
        self._folding = Folding(node)
        self._slices = {}  # number -> Partial
        self._settled = None  # of a landmark window: the Partial of all slices that can change no more
        self._base = 1 if self.begin is None else self.begin
        self._cut = (self.end + 1 - self._base) % self.slide  # where in a slide windows end; 0: where they begin

    def _numbers(self, ticks):
        """The slice of each tick. Windows begin at multiples of the slide from the base, and end at the cut."""
        whole, rest = np.divmod(np.asarray(ticks) - self._base, self.slide)
        return whole if self._cut == 0 else 2 * whole + (rest >= self._cut)

    def _low(self, number):
        """The first tick of a slice."""
        if self._cut == 0:
            return number * self.slide + self._base
        return number // 2 * self.slide + self._base + (self._cut if number % 2 else 0)

    # --- what flows in -----------------------------------------------------------------------------------------------

    def apply(self):
        change = self.stream.change
        if len(change.gone):
            self._take_back(change)
        else:
            self._fold(change.come)

    def begin_with(self, change, since):
        self._fold(change.come)

    def _fold(self, tuples):
        if self.begin is None:
            tuples = tuples.take(tuples.tick >= self.start)
        for number, part in self._by_slice(tuples):
            partial = self._folding.partial(part, self.stream)
            held = self._slices.get(number)
            self._slices[number] = partial if held is None else self._folding.merged([held, partial])

    def _take_back(self, change):
        """Slices that lost tuples: undone where that is exact, or else made again from what is there now."""
        lost = []
        for number, part in self._by_slice(change.gone):
            held = self._slices.get(number)
            if held is None or self._folding.can_take_back(held, part):
                if held is not None:
                    self._slices[number] = self._folding.without(held, part)
            else:
                lost.append(number)
        self._fold(change.come.take(~np.isin(self._numbers(change.come.tick), lost)))
        for number in lost:
            self._slices.pop(number)
            self._fold(self.stream.between(self._low(number), self._low(number + 1) - 1))

    def _by_slice(self, tuples):
        """Pairs of a slice's number and its tuples."""
        numbers = self._numbers(tuples.tick)
        for number in np.unique(numbers).tolist():
            mask = numbers == number
            yield number, tuples if mask.all() else tuples.take(mask)

    # --- what is asked for -------------------------------------------------------------------------------------------

    def content(self, given):
        held = sorted(self._slices)
        partials, window = [], []
        first, last = self._numbers(given.left), self._numbers(given.right)
        begins, ends = np.searchsorted(held, first), np.searchsorted(held, last, "right")
        for place, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
            if self._settled is not None:
                partials.append(self._settled)
                window.append(place)
            for number in held[begin:end]:
                partials.append(self._slices[number])
                window.append(place)
        return self._folding.finished(partials, np.array(window, np.int64), len(given))

    def empty(self, count):
        return self._folding.finished([], np.empty(0, np.int64), count)

    def forget(self, before, kept):
        """Drop the slices that no window asks for; of a landmark window, put together those that are settled."""
        earliest = self._earliest(kept)
        self.stream.forget(min(before, earliest))
        if self.begin is not None:
            first = int(self._numbers(earliest))
            self._slices = {number: partial for number, partial in self._slices.items() if number >= first}
            return
        last = int(self._numbers(min(before, int(kept.right.min(initial=NEVER)))))
        settled = [number for number in sorted(self._slices) if number < last]
        if settled:
            parts = [self._slices.pop(number) for number in settled]
            self._settled = self._folding.merged(parts if self._settled is None else [self._settled, *parts])


class Partial:
    """What a slice knows: for each of its groups the key, when its first tuple enters the stream, and the states.

    `first` has a row for each part of the order of entry (arrival, part, rank, place), a column for each group.
    """

    __slots__ = ("first", "keys", "rows", "states")

    def __init__(self, keys, first, rows, states):
        self.keys, self.first, self.rows, self.states = keys, first, rows, states

    def __len__(self):
        return self.first.shape[1]


class Folding:
    """How tuples become partial states, and partial states an answer, for one SliceAggregation."""

    def __init__(self, node):
        self._node = node
        self._aggregates = [aggregate for _, aggregate in node.aggregates]
        self._made = [made_for(aggregate) for aggregate in self._aggregates]
        self._rows = make("COUNT", "integer")  # how many tuples a group has: a group without any is gone
        self._can_undo = all(made.can_undo for made in self._made)

    def partial(self, tuples, stream):
        """The Partial of the tuples of one slice."""
        keys = keys_of(self._node, tuples.columns)
        none = np.zeros(len(tuples), np.int64)
        group, _, first = grouped(none, 1, keys, self._node.grouped)
        count = len(first) if self._node.grouped else 1
        entry = _entry(tuples)
        # Of one tick, tuples take their indexes in the order in which they came; not in a union, which is not sliced.
        order = tuples.tick, tuples.site if stream.by_site else tuples.ident
        rows = self._rows.init(count)
        self._rows.update(rows, group)
        states = []
        for made, aggregate in zip(self._made, self._aggregates, strict=True):
            state = made.init(count)
            made.update(state, group, *values_of(aggregate, tuples.columns, len(tuples)), order=order)
            states.append(state)
        return Partial([key.take(first) for key in keys], _earliest(entry, group, count), rows, states)

    def merged(self, partials):
        """Several Partials as one."""
        return self._merge(partials, np.zeros(len(partials), np.int64), 1)[0]

    def can_take_back(self, partial, tuples):
        """Whether tuples can be undone: of a group that stays without its first, nobody knows which is the first then."""
        if not self._can_undo:
            return False
        if not self._node.grouped:
            return True
        group = self._groups_of(partial, tuples)
        is_first = (partial.first[:, group] == _entry(tuples)).all(axis=0)
        stays = self._rows.finalize(partial.rows)[0] > np.bincount(group, minlength=len(partial))
        return not (is_first & stays[group]).any()

    def _groups_of(self, partial, tuples):
        """The place in a Partial of each tuple's group."""
        keys = keys_of(self._node, tuples.columns)
        both = [concatenated([held, lost]) for held, lost in zip(partial.keys, keys, strict=True)]
        total = len(partial) + len(tuples)
        return grouped(np.zeros(total, np.int64), 1, both, self._node.grouped)[0][len(partial) :]

    def without(self, partial, tuples):
        """A Partial without tuples that it holds; groups that lose all of theirs are gone."""
        group = self._groups_of(partial, tuples)
        self._rows.undo(partial.rows, group)
        for made, state, aggregate in zip(self._made, partial.states, self._aggregates, strict=True):
            made.undo(state, group, *values_of(aggregate, tuples.columns, len(tuples)))
        left = self._rows.finalize(partial.rows)[0] > 0
        if left.all():
            return partial
        states = [made.take(state, left) for made, state in zip(self._made, partial.states, strict=True)]
        keys = [key.take(left) for key in partial.keys]
        return Partial(keys, partial.first[:, left], self._rows.take(partial.rows, left), states)

    def finished(self, partials, window, windows):
        """The Frame of windows; `window` says which of them each Partial belongs to."""
        partial, window = self._merge(partials, window, windows)
        columns = {c.id: key for (c, _), key in zip(self._node.groups, partial.keys, strict=True)}
        for (column, _), made, state in zip(self._node.aggregates, self._made, partial.states, strict=True):
            columns[column.id] = answer(made, *made.finalize(state))
        return Frame(windows, window, columns)

    def _merge(self, partials, window, windows):
        """The groups of all Partials, put together window by window; and the window of each."""
        window = np.repeat(window, [len(p) for p in partials])
        keys = [_keys_of([p.keys[i] for p in partials], c) for i, (c, _) in enumerate(self._node.groups)]
        entry = np.concatenate([np.empty((4, 0), np.int64), *(p.first for p in partials)], axis=1)
        group, of_group, first = grouped(window, windows, keys, self._node.grouped)
        count = len(of_group)
        earliest = _earliest(entry, group, count)
        # Groups stand in the order of their first tuple, which may be in a slice that was looked at later.
        order = np.lexsort((*earliest[::-1], of_group))
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        into = rank[group]
        rows = self._united(self._rows, [p.rows for p in partials], into, count)
        states = [self._united(made, [p.states[i] for p in partials], into, count) for i, made in enumerate(self._made)]
        kept = [key.take(first[order]) for key in keys]
        return Partial(kept, earliest[:, order], rows, states), of_group[order]

    def _united(self, made, states, into, count):
        whole = made.init(count)
        if states:
            made.merge(whole, made.concatenate(states), into)
        return whole


def _entry(tuples):
    """The order of entry of tuples: a row for each part of it."""
    return np.stack([tuples.arrival, tuples.part, tuples.rank, tuples.place])


def _earliest(entry, group, count):
    """The order of entry of the first tuple of each group; the last there is for a group without any."""
    out = np.full((4, count), np.iinfo(np.int64).max)
    order = np.lexsort((*entry[::-1], group))
    first = np.flatnonzero(np.concatenate([[True], group[order][1:] != group[order][:-1]])) if len(group) else order
    out[:, group[order][first]] = entry[:, order][:, first]
    return out


def _keys_of(keys, column):
    if keys:
        return concatenated(keys)
    held = np.int64 if column.scale is not None else dtype_of(column.type)
    return Vector(np.empty(0, held))

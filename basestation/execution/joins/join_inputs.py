"""Sides: the inputs of a join, each as tuples that are held, and ranges of ticks that say which of them are in a window.

What a selection or projection between a window and the join does is done once to each tuple, when it comes. Where an
input has no state of its own that a join could probe (windows of rows, scans of histories) the contents of its windows
are held for one evaluation, and a window's number stands for the tick.
"""

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from acquisition.extent import Extent
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expressions import Column, columns_of, conjunction, conjuncts
from basestation.algebra.vector import cached_arange, constant
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.tuples import Tuples, empty_like
from basestation.execution.columns.window_lookup import find_containing
from basestation.execution.ingest.stored_table import StoredTable
from basestation.execution.joins.tuple_store import NEVER, TupleStore
from basestation.execution.streams.filter_stream import project_columns
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.windowing.stream_windows import RowWindows, TimeWindows
from basestation.execution.windowing.table_windows import ScanWindows
from basestation.execution.windowing.window_store import WindowStore


@dataclass(frozen=True, slots=True)
class TickRanges:
    """For each window which ticks are in it; tuples that are appended only if they had arrived when it was made (3.6): None where
    none are. `at` has for each combination the number of its window, as in `Standing`; that of the `first` one."""

    left: np.ndarray
    right: np.ndarray
    made: np.ndarray | None = None
    at: np.ndarray | None = None
    first: int = 0

    def __len__(self):
        return len(self.left if self.at is None else self.at)

    def take(self, which):
        """Those in a slice, or at places, which need not ascend."""
        if self.at is None:
            return self._chosen(which)
        if not isinstance(which, slice):
            return self._chosen(self.of(which))
        at = self.at[which]
        first, behind = int(at[0]), int(at[-1]) + 1
        return replace(self._chosen(slice(first - self.first, behind - self.first)), at=at, first=first)

    def _chosen(self, which):
        return TickRanges(*(None if edges is None else edges[which] for edges in self._edges))

    @property
    def each(self):
        """The same with a window for each combination."""
        return self if self.at is None else self._chosen(self.at - self.first)

    def both(self, other):
        """What is in two windows at once."""
        a, b = self.each, other.each
        left, right = np.maximum(a.left, b.left), np.minimum(a.right, b.right)
        return TickRanges(left, right, None if a.made is None else np.minimum(a.made, b.made))

    def only(self, mask):
        """The windows under a mask; nothing is in the others."""
        each = self.each
        return TickRanges(np.where(mask, each.left, 1), np.where(mask, each.right, 0), each.made)

    def of(self, places):
        """Which of the windows stand in the combinations at places."""
        return places if self.at is None else self.at.take(places) - self.first

    def holding(self, ticks):
        """(the first, the last) of the combinations that hold each tick, where the windows begin and end in their order."""
        first, last = find_containing(self.left, self.right, ticks)
        if self.at is None:
            return first, last
        begins = np.concatenate([[0], np.flatnonzero(self.at[1:] != self.at[:-1]) + 1, [len(self.at)]])
        last += 1
        last = begins.take(last)
        last -= 1
        return begins.take(first), last

    @property
    def _edges(self):
        return self.left, self.right, self.made

    @property
    def falls(self):
        """Those that begin or end, or were made, before the one that stands before them."""
        falls = [edges[1:] < edges[:-1] for edges in self._edges if edges is not None]
        falls = [np.flatnonzero(each) + 1 for each in falls if each.any()]
        found = distinct(np.concatenate(falls)) if falls else np.empty(0, np.int64)
        return found if self.at is None else np.searchsorted(self.at, found + self.first)


class JoinInput:
    """One input of a join. `ids` pairs the ids of its columns with those under which they are held."""

    is_materializable = True
    filters_rows = False  # whether it lets rows pass that somebody wants, and no others
    begins = True  # whether windows are put together from its tuples on, if they are the fewest
    span = None  # how far from a combination's tick the ticks of its tuples lie at the most, where that is known

    def __init__(self, input, leaf, steps):
        self.input, self._leaf, self._steps = input, leaf, steps
        none = input.empty(0)
        self.none = self._passing(_tuples(none.window, none.columns))
        self.ids = {id: id for id in self.none.columns}
        self.held = TupleStore(self.none)

    def _passing(self, tuples):
        return filter_tuples(tuples, self._leaf, self._steps)

    def prepare(self, asked):
        """These windows are asked for now."""

    def reach(self, asked):
        """The ranges of windows."""
        return TickRanges(asked.left, asked.right, asked.tick if self.held.has_late_appends else None)

    def inside(self, reach, window, positions):
        """Which tuples are in which windows."""
        ticks, window = self.held.ticks(positions), reach.of(window)
        found = (reach.left[window] <= ticks) & (ticks <= reach.right[window])
        if self.held.has_late_appends:
            found &= (self.held.of("arrival", positions) <= reach.made[window]) | ~self.held.of("append", positions)
        return found

    def windows(self, reach, positions):
        """The first and the last window that holds each tuple, of windows that begin and end in their order."""
        first, last = reach.holding(self.held.ticks(positions))
        if self.held.has_late_appends:
            arrived = np.searchsorted(reach.each.made, self.held.of("arrival", positions))
            first = np.where(self.held.of("append", positions), np.maximum(first, arrived), first)
        return first, last

    def column(self, id, positions):
        return self.held.column(self.ids[id], positions)

    def rank(self, positions):
        """Numbers that sort the tuples of one window in their order (6.4)."""
        return positions

    def tidy(self):
        """The input was told what is not needed any more."""


def filter_tuples(tuples, leaf, steps):
    """What selections and projections below the join leave of tuples."""
    tuples = tuples.with_columns({c.id: tuples.columns[c.id] for c in leaf.columns})
    for step in steps:
        if isinstance(step, WindowSelect):
            tuples = tuples.take(Evaluation(tuples.columns, len(tuples)).of(step.predicate).is_true)
        else:
            tuples = tuples.with_columns(project_columns(step.outputs, tuples.columns, len(tuples)))
    return tuples


class JoinStore(WindowStore):
    """The tuples of one stream that joins may still reach, as selections and projections below the joins leave them."""

    def __init__(self, stream, level, leaf, steps):
        super().__init__(stream, level)
        self._leaf, self._steps = leaf, steps
        self.none = filter_tuples(empty_like(stream.all().inserted), leaf, steps)
        self.held = TupleStore(self.none)
        self.fill()

    def fill(self):
        """Begin with all that is known of the stream."""
        self.held.begin_anew(filter_tuples(self.stream.all().inserted, self._leaf, self._steps))

    def __len__(self):
        return len(self.held)

    def take(self, change):
        self.held.remove(change.removed.ident)
        self.held.build(filter_tuples(change.inserted, self._leaf, self._steps))

    def forget(self, before):
        self.held.evict(before)


class StreamJoinInput(JoinInput):
    """Windows of time over a stream. The store of the input, a HeldStore, has the tuples, perhaps under other columns."""

    def __init__(self, input, leaf, steps):
        super().__init__(input, leaf, steps)
        self._stream, self.held = input.store.stream, input.store.held
        self.ids = dict(zip(self.none.columns, input.store.none.columns, strict=True))
        if type(input) is TimeWindows and input.begin is not None:
            self.span = input.begin - input.slide + 1, input.end

    def rank(self, positions):
        """The index, and for those without one the order in which they will enter."""
        index = self._stream.index_of(self.held.of("ident", positions))
        if index.min(initial=1) > 0:
            return index
        found, inverse = np.unique(positions, return_inverse=True)
        index = self._stream.index_of(self.held.of("ident", found))
        waiting = index == 0
        arrival, part, rank, place = (self.held.of(n, found) for n in ("arrival", "part", "rank", "place"))
        order = np.lexsort((place, rank, part, np.where(waiting, arrival, 0), np.where(waiting, NEVER, index)))
        out = np.empty(len(found), np.int64)
        out[order] = np.arange(len(found))
        return out[inverse]


class TableJoinInput(JoinInput):
    """Scans of a table: each version is held once, and its number is the tick of its rows."""

    begins = False  # the same few rows are in all windows: what comes and goes finds them by their key

    def __init__(self, input, leaf, steps):
        super().__init__(input, leaf, steps)
        self._known, self._numbers = [], 0  # (version, number)

    def prepare(self, asked):
        for version in self._seen(asked)[0]:
            if self._number(version) is None:
                columns = {c.id: version.columns[c.name] for c in self._leaf.columns}
                self.held.build(self._passing(_tuples(np.full(version.length, self._numbers), columns)))
                self._known.append((version, self._numbers))
                self._numbers += 1

    def _seen(self, asked):
        return self.input.table.seen(asked.tick if asked.all_exist else asked.tick[asked.exists])

    def _number(self, version):
        return next((number for known, number in reversed(self._known) if known is version), None)

    def reach(self, asked):
        versions, which = self._seen(asked)
        numbers = np.array([self._number(version) for version in versions], np.int64)
        return _numbered(asked, numbers[which])

    def tidy(self):
        """Versions before the one that the first window to come, or to be revised, sees are not needed."""
        first = self.input.table.at(self.input.needed).tick
        removed = [number for version, number in self._known if version.tick < first]
        self._known = [each for each in self._known if each[0].tick >= first]
        self.held.remove_at(removed)


class RowJoinInput(JoinInput):
    """Windows of rows: of those that are asked for each row is held once, and its number is its tick."""

    is_materializable, filters_rows = False, True

    def __init__(self, input, leaf, steps):
        super().__init__(input, leaf, steps)
        self.wants = PredicateSet()  # of all that show what is joined

    def local_predicate(self, predicate):
        """What a predicate asks of the rows here alone, as a predicate; None if nothing."""
        terms = [] if predicate is None else conjuncts(predicate)
        ours = [term for term in terms if {c.id for c in columns_of(term)} <= self.ids.keys()]
        return conjunction(ours) if ours else None

    def prepare(self, asked):
        some = asked.left <= asked.right
        asked = asked if some.all() else asked.take(some)
        found = self.input.numbered(int(asked.left.min()), int(asked.right.max())) if len(asked) else None
        tuples = self.none if found is None else self._passing(_tuples(*found))
        if len(self.wants):
            tuples = tuples.take(self.wants.any(tuples.columns, len(tuples)))
        self.held.begin_anew(tuples)

    def tidy(self):
        """Nobody asks for these rows once more."""
        self.held.begin_anew(self.none)


class TransientJoinInput(JoinInput):
    """An input without a state of its own to probe."""

    is_materializable = False

    def prepare(self, asked):
        self._numbers, first = np.unique(asked.number[asked.exists], return_index=True)
        found = self.input.content(asked.take(np.flatnonzero(asked.exists)[first])) if len(first) else None
        self.held.begin_anew(self.none if found is None else self._passing(_tuples(found.window, found.columns)))

    def reach(self, asked):
        return _numbered(asked, np.searchsorted(self._numbers, asked.number[asked.exists]))


def _numbered(asked, numbers):
    """The ranges of windows where a number stands for the tick: those of the windows that are there."""
    if asked.all_exist:
        return TickRanges(numbers, numbers)
    left, right = np.ones(len(asked), np.int64), np.zeros(len(asked), np.int64)
    left[asked.exists] = right[asked.exists] = numbers
    return TickRanges(left, right)


def make_join_input(input, leaf, steps):
    """The side that stands for one input of a block."""
    if isinstance(input, TimeWindows) and isinstance(input.store, JoinStore):
        return StreamJoinInput(input, leaf, steps)
    if isinstance(input, ScanWindows) and type(input.table) is StoredTable:
        return TableJoinInput(input, leaf, steps)
    if type(input) is RowWindows:
        return RowJoinInput(input, leaf, steps)
    return TransientJoinInput(input, leaf, steps)


def _tuples(tick, columns):
    """Rows that have no tags of their own, in their order, as Tuples."""
    numbers, tick, none = cached_arange(len(tick)), np.asarray(tick, np.int64), constant(0, len(tick))
    return Tuples(numbers, tick, tick, none, none, numbers, none, constant(False, len(tick)), columns)


# --- signatures ------------------------------------------------------------------------------------------------------


def store_signature(leaf, steps):
    """What is held of a stream, as a value: equal where the streams and all that is done to their tuples are alike."""
    numbers = {}
    return _shape(
        (leaf.child, tuple(s.predicate if isinstance(s, WindowSelect) else s.outputs for s in steps)), numbers
    )


def _shape(value, numbers):
    """A tree with its columns numbered as they appear: their own numbers differ from use to use."""
    if isinstance(value, Column):
        return "column", numbers.setdefault(value.id, len(numbers)), value.name, value.scale
    if isinstance(value, Extent):
        return "extent", value.name
    if is_dataclass(value):
        return type(value).__name__, *(_shape(getattr(value, f.name), numbers) for f in fields(value))
    if isinstance(value, tuple | list):
        return tuple(_shape(each, numbers) for each in value)
    return repr(value)

"""Inputs of a join: tuples that are held, and ranges of ticks that say which of them are in a window.

Selections and projections between a window and the join are applied once to each tuple, when it comes. An input without
lasting state (windows of rows, scans of histories) holds the contents of its windows for one evaluation; the number of a
window or row then serves as the tick.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Extent
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Attr, columns_of, conjunction, conjuncts, substitute
from basestation.algebra.node import PlanNode
from basestation.algebra.vector import Vector, cached_arange, constant
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.change import Change
from basestation.execution.columns.tuples import Tuples, empty_like
from basestation.execution.columns.window_batch import WindowBatch
from basestation.execution.description import OperatorDescription, StateDescription, array_bytes, find_arrays
from basestation.execution.ingest.stored_table import StoredTable, TableVersion
from basestation.execution.interfaces import Claims, WindowSource
from basestation.execution.joins.tick_ranges import TickRanges
from basestation.execution.joins.tuple_store import NEVER, TupleStore
from basestation.execution.streams.filter_stream import project_columns
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.row_windows import RowWindows
from basestation.execution.windowing.table_windows import ScanWindows
from basestation.execution.windowing.time_windows import TimeWindows
from basestation.execution.windowing.window_store import WindowStore

Steps = Sequence[WindowSelect | WindowProject]
"""The selections and projections between windows and a join, the lowest first."""


class JoinInput:
    """One input of a join. `ids` has by the id of each of its columns the id under which it is held."""

    is_materializable = True
    """Whether its tuples last, so that joined tuples of it can be kept."""
    can_lead = True
    """Whether rows may be joined starting from its tuples, if they are the fewest."""

    def __init__(self, source: WindowSource, leaf: PlanNode, steps: Steps) -> None:
        """`leaf` is the node of the tree that the source stands for."""
        self.source, self._leaf, self._steps = source, leaf, steps
        self.span: tuple[int, int] | None = None
        """How far, in ticks, its tuples are from the tick of a combination: at least and at most, if that is known."""
        none = source.empty(0)
        self.none = self._filter(_make_tuples(none.window, none.columns))
        self.ids = {id: id for id in self.none.columns}
        self.store = TupleStore(self.none)

    def _filter(self, tuples: Tuples) -> Tuples:
        return filter_tuples(tuples, self._leaf, self._steps)

    def claim(self, predicate: Expression | None) -> Claims:
        """Provide the tuples that a reader of the rows under a predicate needs, until it is released."""
        return []

    def prepare(self, windows: WindowBatch) -> None:
        """Make sure that the tuples of windows are held."""

    def reach(self, windows: WindowBatch) -> TickRanges:
        """The ticks in windows."""
        return TickRanges(windows.left, windows.right, windows.tick if self.store.has_late_appends else None)

    def inside(self, reach: TickRanges, window: IntArray, positions: IntArray) -> BoolArray:
        """Whether the tuple at positions[i] is in window[i]."""
        ticks, window = self.store.ticks(positions), reach.of(window)
        found = (reach.left[window] <= ticks) & (ticks <= reach.right[window])
        if self.store.has_late_appends and reach.made is not None:
            arrived = self.store.system_column("arrival", positions) <= reach.made[window]
            found &= arrived | ~self.store.system_column("append", positions)
        return found

    def windows(self, reach: TickRanges, positions: IntArray) -> tuple[IntArray, IntArray]:
        """The first and the last window that contains each tuple, of windows that begin and end in order."""
        first, last = reach.containing(self.store.ticks(positions))
        made = reach.each.made if self.store.has_late_appends else None
        if made is not None:
            arrived = np.searchsorted(made, self.store.system_column("arrival", positions))
            first = np.where(self.store.system_column("append", positions), np.maximum(first, arrived), first)
        return first, last

    def column(self, id: int, positions: IntArray) -> Vector:
        """A column of tuples at positions."""
        return self.store.column(self.ids[id], positions)

    def rank(self, positions: IntArray) -> IntArray:
        """Numbers that sort the tuples of one window in order (6.4)."""
        return positions

    def tidy(self) -> None:
        """Drop what no later window can reach."""


def local_terms(predicate: Expression | None, ids: Mapping[int, int]) -> Expression | None:
    """The conjuncts of a predicate over columns with some ids alone; None without any."""
    terms = [] if predicate is None else conjuncts(predicate)
    local = [term for term in terms if {c.id for c in columns_of(term)} <= ids.keys()]
    return conjunction(local) if local else None


def filter_tuples(tuples: Tuples, leaf: PlanNode, steps: Steps) -> Tuples:
    """Tuples after the selections and projections below a join."""
    tuples = tuples.with_columns({c.id: tuples.columns[c.id] for c in leaf.columns})
    for step in steps:
        if isinstance(step, WindowSelect):
            tuples = tuples.take(Evaluation(tuples.columns, len(tuples)).of(step.predicate).is_true)
        else:
            tuples = tuples.with_columns(project_columns(step.outputs, tuples.columns, len(tuples)))
    return tuples


_INDEX_BYTES = 75
"""Bytes for each tuple in an index by key and tick, if most keys differ; measured, tests/planner/test_explained_memory.py."""


class JoinStore(WindowStore):
    """The tuples of one stream that open windows reach, after the selections and projections below the joins.

    A filtered store holds only those that satisfy the predicate of a reader.
    """

    title = "join state"

    def __init__(self, stream: Stream, level: int, leaf: PlanNode, steps: Steps, is_filtered: bool = False) -> None:
        super().__init__(stream, level)
        self.is_filtered = is_filtered
        self._leaf, self._steps = leaf, steps
        self.none = filter_tuples(empty_like(stream.all().inserted), leaf, steps)
        self.tuples = TupleStore(self.none)
        self._predicates = PredicateSet()

    def describe(self) -> OperatorDescription:
        limit = None if self.reach is None else self.stream.max_tuples(self.reach)
        entry = 8 * (3 + len(self.none.columns)) + _INDEX_BYTES
        state = StateDescription("tuples", limit, entry, len(self.tuples), array_bytes(*find_arrays(self.tuples)))
        parts = (self._predicates.describe(),) if self.is_filtered else ()
        return OperatorDescription(self.title, "tuples by position, indexed by key and tick", state, parts)

    # --- readers of a filtered store -----------------------------------------------------------------------------------

    def add_reader(self, predicate: Expression | None) -> int:
        """Add a reader of a filtered store: of the tuples under a predicate, None for all. Return what it releases in the end."""
        known = len(self._predicates)
        number = self._predicates.take(predicate)
        if len(self._predicates) > known:
            past = self._needed_of(self.held(self.stream.between(min(self._kept_from, self._recalled.first), NEVER)))
            self.tuples.build(past.take(~np.isin(past.ident, self.tuples.held_idents())))
        return number

    def release(self, number: int) -> None:
        """Remove a reader. Tuples that no other reader needs stay until windows leave them behind."""
        self._predicates.release(number)

    def _needed_of(self, tuples: Tuples) -> Tuples:
        tuples = filter_tuples(tuples, self._leaf, self._steps)
        if not self.is_filtered or not len(tuples):
            return tuples
        return tuples.take(self._predicates.any(tuples.columns, len(tuples)))

    # --- tuples -----------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        self.tuples.replace_all(self.none)

    def load(self, tuples: Tuples) -> None:
        self.tuples.build(self._needed_of(tuples))

    def __len__(self) -> int:
        return len(self.tuples)

    def take(self, change: Change) -> None:
        self.tuples.remove(change.removed.ident)
        self.load(self.held(change.inserted))

    def forget(self, before: int) -> None:
        self.tuples.evict(before)


class StreamJoinInput(JoinInput):
    """Windows of time over a stream. Their JoinStore has the tuples, perhaps under other columns: joins share it."""

    def __init__(self, source: TimeWindows, store: JoinStore, leaf: PlanNode, steps: Steps) -> None:
        super().__init__(source, leaf, steps)
        self._stream, self._store, self.store = store.stream, store, store.tuples
        self.ids = dict(zip(self.none.columns, store.none.columns, strict=True))
        if type(source) is TimeWindows and source.begin is not None:
            self.span = source.begin - source.slide + 1, source.end

    def prepare(self, windows: WindowBatch) -> None:
        self._store.recall(windows.left, windows.right)

    def claim(self, predicate: Expression | None) -> Claims:
        if not self._store.is_filtered:
            return []
        local = local_terms(predicate, self.ids)
        if local is not None:
            held = {c: Attr(replace(c, id=self.ids[c.id])) for c in columns_of(local)}
            local = substitute(local, held)
        return [(self._store, self._store.add_reader(local))]

    def rank(self, positions: IntArray) -> IntArray:
        """The index; for tuples without one, the order in which they will enter."""
        index = self._stream.index_of(self.store.system_column("ident", positions))
        if index.min(initial=1) > 0:
            return index
        found, inverse = np.unique(positions, return_inverse=True)
        index = self._stream.index_of(self.store.system_column("ident", found))
        waiting = index == 0
        arrival, part, rank, place = (
            self.store.system_column(name, found) for name in ("arrival", "part", "rank", "place")
        )
        order = np.lexsort((place, rank, part, np.where(waiting, arrival, 0), np.where(waiting, NEVER, index)))
        ranks = np.empty(len(found), np.int64)
        ranks[order] = np.arange(len(found))
        return ranks[inverse]


class TableJoinInput(JoinInput):
    """Scans of a stored table. Each version of it is held once; its number serves as the tick of its rows."""

    can_lead = False  # the same few rows are in all windows: tuples that come find them by their key

    def __init__(self, source: ScanWindows, table: StoredTable, leaf: PlanNode, steps: Steps) -> None:
        super().__init__(source, leaf, steps)
        self._scans, self._table = source, table
        self._known: list[tuple[TableVersion, int]] = []  # versions that are held, with their numbers
        self._count = 0

    def prepare(self, windows: WindowBatch) -> None:
        for version in self._versions(windows)[0]:
            if self._number_of(version) is None:
                columns = {c.id: version.columns[c.name] for c in self._leaf.columns if c.name is not None}
                self.store.build(self._filter(_make_tuples(np.full(version.length, self._count), columns)))
                self._known.append((version, self._count))
                self._count += 1

    def _versions(self, windows: WindowBatch) -> tuple[list[TableVersion], IntArray]:
        """(the versions that windows see, which of them each window sees)."""
        return self._table.seen(windows.tick if windows.all_exist else windows.tick[windows.exists])

    def _number_of(self, version: TableVersion) -> int | None:
        return next((number for known, number in reversed(self._known) if known is version), None)

    def reach(self, windows: WindowBatch) -> TickRanges:
        versions, which = self._versions(windows)
        numbers = np.array([self._number_of(version) for version in versions], np.int64)
        return _reach_of_numbers(windows, numbers[which])

    def tidy(self) -> None:
        """Drop the versions before the one that the first later or revised window sees."""
        first = self._table.at(self._scans.needed).tick
        dropped = [number for version, number in self._known if version.tick < first]
        self._known = [each for each in self._known if each[0].tick >= first]
        self.store.remove_at(dropped)


class RowJoinInput(JoinInput):
    """Windows of rows. Each row in the windows of an evaluation is held once; its number serves as its tick."""

    is_materializable = False

    def __init__(self, source: RowWindows, leaf: PlanNode, steps: Steps) -> None:
        super().__init__(source, leaf, steps)
        self._rows = source
        self.predicates = PredicateSet()
        """The predicates of all views of the join: only rows that pass one of them are held."""

    def claim(self, predicate: Expression | None) -> Claims:
        return [(self.predicates, self.predicates.take(local_terms(predicate, self.ids)))]

    def prepare(self, windows: WindowBatch) -> None:
        nonempty = windows.left <= windows.right
        windows = windows if nonempty.all() else windows.take(nonempty)
        found = self._rows.numbered(windows) if len(windows) else None
        tuples = self.none if found is None else self._filter(_make_tuples(*found))
        if len(self.predicates):
            tuples = tuples.take(self.predicates.any(tuples.columns, len(tuples)))
        self.store.replace_all(tuples)

    def tidy(self) -> None:
        """Drop all rows: the next evaluation reads them again."""
        self.store.replace_all(self.none)


class TransientJoinInput(JoinInput):
    """An input without lasting state: the contents of its windows are held for one evaluation."""

    is_materializable = False

    def prepare(self, windows: WindowBatch) -> None:
        self._numbers, first = np.unique(windows.number[windows.exists], return_index=True)
        found = self.source.content(windows.take(np.flatnonzero(windows.exists)[first])) if len(first) else None
        self.store.replace_all(self.none if found is None else self._filter(_make_tuples(found.window, found.columns)))

    def reach(self, windows: WindowBatch) -> TickRanges:
        return _reach_of_numbers(windows, np.searchsorted(self._numbers, windows.number[windows.exists]))


def _reach_of_numbers(windows: WindowBatch, numbers: IntArray) -> TickRanges:
    """The ranges of windows where a number serves as the tick; `numbers` are those of the windows that exist."""
    if windows.all_exist:
        return TickRanges(numbers, numbers)
    left, right = np.ones(len(windows), np.int64), np.zeros(len(windows), np.int64)
    left[windows.exists] = right[windows.exists] = numbers
    return TickRanges(left, right)


def make_join_input(source: WindowSource, leaf: PlanNode, steps: Steps) -> JoinInput:
    """The JoinInput for one input of a block."""
    if isinstance(source, TimeWindows) and isinstance(source.store, JoinStore):
        return StreamJoinInput(source, source.store, leaf, steps)
    if isinstance(source, ScanWindows) and isinstance(source.table, StoredTable):
        return TableJoinInput(source, source.table, leaf, steps)
    if isinstance(source, RowWindows) and type(source) is RowWindows:
        return RowJoinInput(source, leaf, steps)
    return TransientJoinInput(source, leaf, steps)


def _make_tuples(tick: IntArray, columns: Mapping[int, Vector]) -> Tuples:
    """Rows without tags of their own, in order, as Tuples with these ticks."""
    numbers, tick, none = cached_arange(len(tick)), np.asarray(tick, np.int64), constant(0, len(tick))
    return Tuples(numbers, tick, tick, none, none, numbers, none, constant(False, len(tick)), dict(columns))


# --- signatures ------------------------------------------------------------------------------------------------------


def store_signature(leaf: PlanNode, steps: Steps) -> Hashable:
    """A value for the contents of a JoinStore: equal for equal streams with equal steps."""
    [stream] = leaf.children
    numbers: dict[int, int] = {}
    return _shape((stream, tuple(s.predicate if isinstance(s, WindowSelect) else s.outputs for s in steps)), numbers)


def _shape(value: object, numbers: dict[int, int]) -> Hashable:
    """A tree in which columns are numbered as they appear: their ids differ from use to use."""
    if isinstance(value, Column):
        return "column", numbers.setdefault(value.id, len(numbers)), value.name, value.scale
    if isinstance(value, Extent):
        return "extent", value.name
    if is_dataclass(value):
        return type(value).__name__, *(_shape(getattr(value, f.name), numbers) for f in fields(value))
    if isinstance(value, tuple | list):
        return tuple(_shape(each, numbers) for each in value)
    return repr(value)

"""Union: several streams as one (semantics 10.6). Of equal arrivals the left part comes first; indexes are assigned
anew.
"""

from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.stream_union import StreamUnion, count_parts
from basestation.algebra.vector import Vector, any_true
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.punctuation import merge_punctuation
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like
from basestation.execution.columns.watermark_buffer import IndexAssigner
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.stream import REVISION_RANK, Stream


class UnionStream(Stream):
    """The union of parts. The number of a tuple encodes its part and its number there, so no mapping is kept."""

    title = "union"

    def __init__(self, node: StreamUnion, parts: list[Stream], names_index: bool, start: int) -> None:
        """`start` is the first tick of the queries that read the union."""
        super().__init__(max(part.level for part in parts))
        self.parts, self._columns = parts, node.columns
        self._sources = [part.columns for part in node.parts]
        self._width = count_parts(node) // len(parts)  # parts below, if a part is a union itself
        self._tick, self._index = (tag.id for tag in node.tags)
        self.names_index = names_index
        self._indexing = IndexAssigner()
        self._start: int | None = start  # None after the first step
        self._added = np.empty(
            (0, 3), np.int64
        )  # (number, arrival, place) of tuples that came by a revision, ascending
        self._pending_epochs = NO_KEYS  # epochs of parts that the least watermark has not reached
        inserted = self._united([part.all() for part in self.parts]).inserted  # they get the indexes of earlier queries
        self._indexing.take(inserted, np.ones(len(inserted), bool), empty_like(inserted), self.watermark)

    @property
    def watermark(self) -> int:
        return min(part.watermark for part in self.parts)

    @property
    def certain(self) -> int:
        return min(part.certain for part in self.parts)

    @property
    def entered(self) -> IntArray:
        return self._indexing.entered

    @property
    def first_waiting(self) -> int | None:
        return self._indexing.first_waiting

    def index_of(self, idents: IntArray) -> IntArray:
        return self._indexing.of(idents)

    def step(self, clock: int) -> None:
        change = self._united([part.change for part in self.parts])
        self._indexing.take(change.inserted, change.is_new, change.removed, self.watermark)
        self._remember_added(change.inserted.take(change.is_new))
        self.change = self._with_indexes(change) if self.names_index else change
        self._epochs = self._find_epochs()
        self.count_rows(*(part.change for part in self.parts))

    def describe(self) -> OperatorDescription:
        return OperatorDescription(self.title, "merge by arrival")

    def _with_indexes(self, change: Change) -> Change:
        """The same change with indexes as a column, and a correction of each tuple that got its index in this step
        (14).
        """
        inserted, removed = self._numbered(change.inserted), self._numbered(change.removed, self._indexing.entered)
        entering = self._indexing.entering
        if entering is None:
            return replace(change, inserted=inserted, removed=removed)
        waited = entering.take(~np.isin(entering.ident, change.inserted.ident))
        is_new = np.concatenate([change.is_new, np.zeros(len(waited), bool)])
        inserted = concatenate_tuples([inserted, self._numbered(waited)])
        removed = concatenate_tuples([removed, self._numbered(waited, waited.ident)])
        return replace(change, inserted=inserted, is_new=is_new, removed=removed)

    def _numbered(self, tuples: Tuples, unnumbered: IntArray = NO_TICKS) -> Tuples:
        """The tuples with their indexes as a column; `unnumbered` are identities of tuples as they were without."""
        index = self.index_of(tuples.ident)
        valid = index > 0
        if len(unnumbered):
            valid &= ~np.isin(tuples.ident, unnumbered)
        return tuples.with_columns({**tuples.columns, self._index: Vector(index, valid)})

    def all(self) -> Change:
        change = self._united([part.all() for part in self.parts])
        none = empty_like(change.inserted)
        if self.names_index:
            change = replace(change, inserted=self._numbered(change.inserted), removed=self._numbered(none))
        return change

    def _united(self, changes: list[Change]) -> Change:
        inserted = concatenate_tuples([self._ours(i, change.inserted) for i, change in enumerate(changes)])
        removed = concatenate_tuples([self._ours(i, change.removed) for i, change in enumerate(changes)])
        is_new = np.concatenate([change.is_new for change in changes])
        dirty = np.unique(np.concatenate([change.dirty_ticks for change in changes]))
        marks = [
            [replace(mark, part=i * self._width + mark.part) for mark in change.marks]
            for i, change in enumerate(changes)
        ]
        return Change(inserted, is_new, removed, dirty, self.watermark, merge_punctuation(marks))

    def _ours(self, number: int, tuples: Tuples) -> Tuples:
        columns = {self._tick: Vector(tuples.tick)}
        for column, source in zip(self._columns, self._sources[number], strict=True):
            vector = tuples.columns[source.id]
            if source.scale is not None and column.scale is None:
                vector = Vector(multiples_to_doubles(vector.values, source.scale), vector.valid)
            columns[column.id] = vector
        part = number * self._width + tuples.part
        ident = tuples.ident * len(self.parts) + number
        return replace(tuples, ident=ident, part=part, columns=columns)

    def between(self, low: int, high: int) -> Tuples:
        tuples = concatenate_tuples([self._ours(i, part.between(low, high)) for i, part in enumerate(self.parts)])
        return self._numbered(tuples) if self.names_index else tuples

    def _remember_added(self, new: Tuples) -> None:
        """Remember where tuples enter that a selection in a part lets pass after a revision: their extent has another order."""
        new = new.take(new.rank == REVISION_RANK)
        if len(new):
            rows = np.stack([new.ident, new.arrival, new.place], axis=1)
            rows = np.concatenate([self._added[~np.isin(self._added[:, 0], new.ident)], rows])
            self._added = rows[np.argsort(rows[:, 0])]

    def placed(self, tuples: Tuples) -> Tuples:
        if not len(self._added) and not any_true(tuples.rank == REVISION_RANK):
            return tuples
        arrival, rank, place = tuples.arrival.copy(), tuples.rank.copy(), tuples.place.copy()
        for number, part in enumerate(self.parts):  # a selection above lets tuples pass later than they entered here
            which = np.flatnonzero((rank == REVISION_RANK) & (tuples.ident % len(self.parts) == number))
            rows = tuples.take(which)
            rows = part.placed(replace(rows, ident=rows.ident // len(self.parts)))
            arrival[which], rank[which], place[which] = rows.arrival, rows.rank, rows.place
        at, known = find_in(self._added[:, 0], tuples.ident)
        arrival[known], place[known] = self._added[at[known], 1:].T
        rank[known] = REVISION_RANK
        return replace(tuples, arrival=arrival, rank=rank, place=place)

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        return [cover for part in self.parts for cover in part.covers(low, high, at)]

    def empty_covers(self) -> list[CoverageRanges]:
        return [cover for part in self.parts for cover in part.empty_covers()]

    def _find_epochs(self) -> IntArray:
        """The epochs of the parts up to the least watermark."""
        begins, self._start = self._start, None
        new = [part.epochs() if begins is None else part.epochs_from(begins) for part in self.parts]
        keys = np.unique(np.concatenate([self._pending_epochs, *new]), axis=0)
        reached = keys[:, 0] <= self.watermark
        self._pending_epochs = keys[~reached]
        return keys[reached]

    def epochs(self) -> IntArray:
        return self._epochs

    def epochs_from(self, tick: int) -> IntArray:
        """A union begins with the queries that read it."""
        return self._epochs

    def anchor(self, low: int) -> bool:
        return all([part.anchor(low) for part in self.parts])  # every part has to know

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        """An epoch of several parts is covered by all of them."""
        return [pair for part in self.parts for pair in part.epoch_covers(keys)]

    @property
    def first(self) -> int:
        return min(part.first for part in self.parts) * len(self.parts)

    def open_from(self, before: int) -> int:
        return min(part.open_from(before) for part in self.parts)

    def tidy(self) -> None:
        for part in self.parts:
            part.need(self.needed)
        self.needed = NEVER
        self._indexing.forget(self.first)
        firsts = np.array([part.first for part in self.parts])
        added, count = self._added[:, 0], len(self.parts)
        self._added = self._added[added // count >= firsts[added % count]]

    def max_tuples(self, ticks: int) -> int | None:
        counts = [count for part in self.parts if (count := part.max_tuples(ticks)) is not None]
        return sum(counts) if len(counts) == len(self.parts) else None

    @property
    def horizon(self) -> int:
        return max(part.horizon for part in self.parts)

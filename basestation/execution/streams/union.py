"""Union: several streams as one (SEMANTICS 10.6): the left one first at the same arrival, indexes counted anew."""

from dataclasses import replace

import numpy as np

from acquisition.schema import Type
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.vector import Vector, null_vector
from basestation.execution.columns.change import NO_KEYS, Change
from basestation.execution.columns.punctuation import merge_punctuation
from basestation.execution.columns.tuples import concatenate_tuples, empty_like
from basestation.execution.columns.watermark_buffer import IndexAssigner
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.streams.stream import Stream


class UnionStream(Stream):
    """A tuple's number is made of its part's and its number there, so nothing has to be remembered of it."""

    by_site = False

    def __init__(self, node, parts, names_index, start):
        super().__init__(max(part.level for part in parts))
        self.parts, self._columns = parts, node.columns
        self._sources = [part.columns for part in node.parts]
        self._tick, self._index = (tag.id for tag in node.tags)
        self.names_index = names_index
        self._indexing = IndexAssigner()
        self.change = None
        self._start = start  # of the queries that read it; None after the first step
        self._marks = NO_KEYS  # epochs of parts that the least watermark has not reached
        inserted = self._united([part.all() for part in self.parts]).inserted  # with the indexes it would have had
        self._indexing.take(inserted, np.ones(len(inserted), bool), empty_like(inserted), self.watermark)

    @property
    def watermark(self):
        return min(part.watermark for part in self.parts)

    @property
    def certain(self):
        return min(part.certain for part in self.parts)

    @property
    def entered(self):
        return self._indexing.entered

    def index_of(self, idents):
        return self._indexing.of(idents)

    def step(self, clock):
        change = self._united([part.change for part in self.parts])
        self._indexing.take(change.inserted, change.is_new, change.removed, self.watermark)
        self.change = self._with_indexes(change) if self.names_index else change
        self._epochs = self._epochs_now()
        self.count(*(part.change for part in self.parts))

    def _with_indexes(self, change):
        """The same with the indexes as a column; tuples that waited for theirs are corrected about it (14)."""
        inserted, removed = self._numbered(change.inserted), self._numbered(change.removed)
        entering = self._indexing.entering
        if entering is None:
            return replace(change, inserted=inserted, removed=removed)
        waited = entering.take(~np.isin(entering.ident, change.inserted.ident))
        nameless = waited.with_columns({**waited.columns, self._index: null_vector(len(waited), Type.INTEGER)})
        is_new = np.concatenate([change.is_new, np.zeros(len(waited), bool)])
        inserted, removed = (
            concatenate_tuples([inserted, self._numbered(waited)]),
            concatenate_tuples([removed, nameless]),
        )
        return replace(change, inserted=inserted, is_new=is_new, removed=removed)

    def _numbered(self, tuples):
        index = self.index_of(tuples.ident)
        return tuples.with_columns({**tuples.columns, self._index: Vector(index, index > 0)})

    def row_history(self):
        """No rows but of the tuples that are there."""

    def all(self):
        """Everything that is here already."""
        change = self._united([part.all() for part in self.parts])
        none = empty_like(change.inserted)
        if self.names_index:
            change = replace(change, inserted=self._numbered(change.inserted), removed=self._numbered(none))
        return change

    def _united(self, changes):
        inserted = concatenate_tuples([self._ours(i, change.inserted) for i, change in enumerate(changes)])
        removed = concatenate_tuples([self._ours(i, change.removed) for i, change in enumerate(changes)])
        is_new = np.concatenate([change.is_new for change in changes])
        touched = np.unique(np.concatenate([change.dirty_ticks for change in changes]))
        marks = [[replace(mark, part=i) for mark in change.marks] for i, change in enumerate(changes)]
        return Change(inserted, is_new, removed, touched, self.watermark, merge_punctuation(marks))

    def _ours(self, number, tuples):
        columns = {self._tick: Vector(tuples.tick)}
        for ours, theirs in zip(self._columns, self._sources[number], strict=True):
            vector = tuples.columns[theirs.id]
            if theirs.scale is not None and ours.scale is None:
                vector = Vector(multiples_to_doubles(vector.values, theirs.scale), vector.valid)
            columns[ours.id] = vector
        part = np.full(len(tuples), number, np.int64)
        ident = tuples.ident * len(self.parts) + number
        return replace(tuples, ident=ident, part=part, columns=columns)

    def between(self, low, high):
        """The tuples from tick low to tick high, as they are now."""
        return concatenate_tuples([self._ours(i, part.between(low, high)) for i, part in enumerate(self.parts)])

    def covers(self, low, high, at):
        return [cover for part in self.parts for cover in part.covers(low, high, at)]

    def empty_covers(self):
        return [cover for part in self.parts for cover in part.empty_covers()]

    def _epochs_now(self):
        """Epochs of the parts, up to the least watermark."""
        begins, self._start = self._start, None
        inserted = [part.epochs() if begins is None else part.epochs_from(begins) for part in self.parts]
        found = np.unique(np.concatenate([self._marks, *inserted]), axis=0)
        reached = found[:, 0] <= self.watermark
        self._marks = found[~reached]
        return found[reached]

    def epochs(self):
        return self._epochs

    def epochs_from(self, tick):
        """A union begins with the queries that read it."""
        return self._epochs

    def anchor(self, low):
        return all([part.anchor(low) for part in self.parts])

    def epoch_covers(self, keys):
        """An epoch that several parts have is covered by all of them."""
        return [pair for part in self.parts for pair in part.epoch_covers(keys)]

    @property
    def first(self):
        return min(part.first for part in self.parts) * len(self.parts)

    def open_from(self, before):
        return min(part.open_from(before) for part in self.parts)

    def tidy(self):
        for part in self.parts:
            part.need(self.needed)
        self.needed = NEVER
        self._indexing.forget(self.first)

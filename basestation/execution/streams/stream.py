"""Streams: what flows between stores and windows: extents, selections and projections, converters, unions.

A stream is asked for its Change once in each step, and gives the same one to everybody who reads it. `index_of` gives
the indexes of its tuples (0: not entered yet); selections and projections keep those of what they read.
"""

from dataclasses import replace

import numpy as np

from acquisition.extent import LatePolicy
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expressions import Attr, columns_of
from basestation.algebra.vector import Vector, all_true, any_true, as_positions, take_at
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.columns.tuples import concatenate_tuples, empty_like
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.graph import STREAM, Operator
from basestation.progress.query_scope import WHOLE_SCOPE

REVISION_RANK = 2**62
"""The rank of tuples that a revision added: after all others of the same arrival (SEMANTICS 14)."""


class Stream(Operator):
    """What streams have in common. They give all that is known, and what changes; `needed` is what somebody reads."""

    kind = STREAM
    needed = NEVER  # no tick before it is asked for
    tracks_versions = False  # whether it tells of versions (`columns/versions.py`)
    names_index = False  # whether a query names `index`: then a tuple is corrected when it enters (14)
    lag = 0  # so many ticks at least its watermark stays behind the clock
    next_due = DUE_NOW  # for how long it gives nothing
    sole_extent = None  # the extent of which each tuple that comes is one at most here, if all that is here is of one

    def placed(self, tuples):
        """Its tuples with arrivals in the order of their indexes, in which windows of time hold them (6.4)."""
        return tuples

    def need(self, before):
        """A reader asks for nothing before a tick."""
        self.needed = min(self.needed, before)

    def count(self, *given):
        """Count the rows of the Changes that it was given, and of that which it gives."""
        self.counts.rows_in += sum(change.inserted_count + len(change.removed) for change in given)
        self.counts.rows_out += self.change.inserted_count + len(self.change.removed)


class ExtentStream(Stream):
    """StreamAcquire and StreamReceive: the tuples of an extent under the columns of queries.

    `interval` coarser than declared keeps the multiples of it (11). Where the query names `index`, a tuple is corrected
    when it gets one (14).
    """

    def __init__(self, node, intake, names_index, excludes, alone, scope=WHOLE_SCOPE):
        """`alone`: the query reads the extent nowhere else. What it does not heed was sent for others."""
        super().__init__(0)
        self.intake, self.extent = intake, node.extent
        self._excludes, self._marked, self._alone = excludes, intake.watermark, alone
        self._scope = scope
        self.interval = getattr(node, "interval", None)
        self._all_ticks = self.interval in (None, node.extent.interval)
        self.columns = node.columns
        self._ids = {column.id: column.name for column in node.columns}
        self._tick, self._index = (tag.id for tag in node.tags)
        self.names_index = names_index
        self._none = None  # no tuples, as this stream shows them
        self.change = None
        self.entered = NO_TICKS  # who entered in this step

    @property
    def by_site(self):
        """FIRST and LAST go by the site of a sensed extent (10.5)."""
        return self.intake.sensed

    @property
    def lag(self):
        return 0 if self.intake.sensed else self.extent.wait

    @property
    def sole_extent(self):
        return None if self.intake.sensed else self.extent.name

    @property
    def tracks_versions(self):
        """What is appended is in windows from its arrival on; an index comes when a tuple enters."""
        return not (self.intake.sensed or self.names_index or self.extent.late is LatePolicy.APPEND)

    @property
    def watermark(self):
        return self.intake.watermark

    certain = watermark

    def step(self, clock):
        found = self.intake.last
        self.entered, change = found.entered, found.change
        inserted, is_new, removed = change.inserted, change.is_new, change.removed
        if self.names_index:
            inserted, is_new, removed = self._with_entries(inserted, is_new, removed, found.entered)
        inserted, mask = self._seen(inserted)
        is_new = is_new if all_true(mask) else take_at(is_new, as_positions(mask))
        if len(removed) or self._none is None:
            removed, _ = self._seen(removed, found.entered)  # as they were: without an index
            self._none = empty_like(removed)
        else:
            removed = self._none
        versions = change.versions
        if versions is not None:
            versions = versions.select(*self._seen(versions.tuples))
        touched = self._sampled(change.dirty_ticks)
        self.change = Change(inserted, is_new, removed, touched, change.watermark, change.marks, versions)
        self._epochs = self._epochs_now()
        self.count(found.change)

    def tidy(self):
        self.intake.need(self.needed)
        self.needed = NEVER

    def open_from(self, before):
        """The first tick of which a tuple may still come or change."""
        return before

    @property
    def first(self):
        """The least number of a tuple that may be spoken of again."""
        return self.intake.log.first

    @property
    def last_index(self):
        """The index of the tuple that entered last; 0 where none has."""
        return self.intake.log.last_index

    def empty_covers(self):
        """The extents below, covered nowhere."""
        if not self.intake.sensed:
            return [CoverageRanges(self.extent.name)]
        return [CoverageRanges(self.extent.name, self.intake.site_coverage, self.interval, self._excludes, self._scope)]

    def all(self):
        """Everything that is here already, as a Change: for a query that begins later than the engine."""
        known = self.intake.log.all_visible()
        inserted, _ = self._seen(known)
        return Change(inserted, np.ones(len(inserted), bool), empty_like(inserted), NO_TICKS, self.intake.watermark)

    def row_history(self):
        """(idents, arrivals) of all rows so far, in order: those that were taken back leave theirs empty (12.1)."""
        if not self._all_ticks:
            return None
        idents, arrivals = self.intake.log.row_history()
        heeded = self._heeded(idents)
        return idents[heeded], arrivals[heeded]

    def between(self, low, high):
        """The tuples from tick low to tick high, as they are now."""
        return self._seen(self.intake.log.between(low, high))[0]

    def with_idents(self, idents):
        """The tuples of some numbers, as they are now."""
        return self._seen(self.intake.log.visible(idents))[0]

    def placed(self, tuples):
        """Those that a selection let pass later arrive as they did here."""
        added = tuples.rank == REVISION_RANK
        if not any_true(added):
            return tuples
        rows = self.intake.log.visible(tuples.ident[added])
        arrival, rank, place = tuples.arrival.copy(), tuples.rank.copy(), tuples.place.copy()
        arrival[added], rank[added], place[added] = rows.arrival, rows.rank, rows.place
        return replace(tuples, arrival=arrival, rank=rank, place=place)

    def _with_entries(self, inserted, is_new, removed, entered):
        """Tuples that got their index in this step are corrected, unless they came in this step as well."""
        before = entered[~np.isin(entered, inserted.ident)]
        tuples = self.intake.log.visible(before)
        inserted = concatenate_tuples([inserted, tuples])
        return inserted, np.concatenate([is_new, np.zeros(len(tuples), bool)]), concatenate_tuples([removed, tuples])

    def _epochs_now(self):
        """(tick, 1) of the epochs that have become complete in this step, and of those whose coverage may differ (12.3)."""
        if not self.intake.sensed:
            return NO_KEYS
        first = max(self._marked + 1, self.intake.epochs.begun)
        new = np.arange(first + -first % self.interval, self.watermark + 1, self.interval)
        touched = self.change.dirty_ticks
        again = touched[touched <= self._marked]
        self._marked = max(self._marked, self.watermark)
        ticks = np.concatenate([again, new])
        return np.stack([ticks, np.ones_like(ticks)], axis=1)

    def epochs(self):
        return self._epochs

    def epochs_from(self, tick):
        """(tick, 1) of all epochs from a tick on that are complete."""
        if not self.intake.sensed:
            return NO_KEYS
        first = max(tick, self.intake.epochs.begun)
        ticks = np.arange(first + -first % self.interval, self.watermark + 1, self.interval)
        return np.stack([ticks, np.ones_like(ticks)], axis=1)

    def anchor(self, low):
        """Whether coverage from a tick on can be told for ever without keeping all epochs since."""
        if not self.intake.sensed:
            return True
        [cover] = self.empty_covers()
        if not self._alone or cover.tally is None:
            return False
        cover.tally.anchor(low)
        return True

    def epoch_covers(self, keys):
        """Pairs: which of the keys are epochs of a stream below, and what those cover."""
        if not self.intake.sensed:
            return []
        ours = keys[:, 0] % self.interval == 0
        low, high = (np.where(ours, keys[:, 0], nowhere) for nowhere in (1, 0))
        return [(ours, self.covers(low, high, np.full(len(keys), NEVER)))]  # whenever a reading came

    def _sampled(self, ticks):
        return ticks if self._all_ticks else ticks[ticks % self.interval == 0]

    def _seen(self, tuples, waiting=NO_TICKS):
        """The tuples with this query's columns, those of coarser sampling and with all that it reads only; and the mask of which.

        Those that were `waiting` to enter have no index yet.
        """
        mask = self._heeded(tuples.ident)
        if not self._all_ticks:
            mask = mask & (tuples.tick % self.interval == 0)
        if not all_true(mask):
            tuples = tuples.take(mask)
        columns = {id: tuples.columns[name] for id, name in self._ids.items()}
        columns[self._tick] = Vector(tuples.tick)
        if self.names_index:
            index = np.where(np.isin(tuples.ident, waiting), 0, self.index_of(tuples.ident))
            columns[self._index] = Vector(index, None if (index > 0).all() else index > 0)
        return tuples.with_columns(columns), mask

    def _heeded(self, idents):
        return self.intake.log.column_sets.all_of(self._scope.columns, idents)

    def index_of(self, idents):
        return self.intake.log.index_of(idents)

    def entering(self):
        """The tuples that enter in this step, in order; None where there are none."""
        found = self.intake.last
        if found.entering is found.change.inserted and self._all_ticks and not self.names_index:
            return self.change.inserted
        tuples = None if found.entering is None else self._seen(found.entering)[0]
        return tuples if tuples is not None and len(tuples) else None

    def indexes(self, tuples, rows):
        """Those of some rows of tuples."""
        return self.intake.log.indexes(tuples, rows)

    def covers(self, low, high, at):
        """What the readings from ticks low to high cover, for windows made at ticks `at` (12.3)."""
        return [replace(each, owner=np.arange(len(low)), low=low, high=high, at=at) if each.intake else each
                for each in self.empty_covers()]  # fmt: skip


class FilterStream(Stream):
    """StreamSelect and StreamProject in one: the tuples for which a predicate is true, with computed columns.

    A correction may make a tuple pass that did not; it is added then, and arrives in this clock tick (12.1), unless it
    had not entered below either.
    """

    def __init__(self, child, predicate, outputs, tags, limit=None):
        super().__init__(child.level)
        self.child, self._predicate, self._outputs = child, predicate, outputs
        self._tags = [tag.id for tag in tags]
        self._limit = limit  # of arrivals, for a query that ends (11)
        self._read = None  # the columns that outputs are made of; None: all
        if outputs is not None:
            self._read = {column.id for _, e in outputs for column in columns_of(e)} | set(self._tags)
        self._none = None  # no tuples, with this stream's columns, as soon as there were none once
        self.change = None

    @property
    def by_site(self):
        return self.child.by_site

    @property
    def tracks_versions(self):
        return self.child.tracks_versions and self._limit is None

    @property
    def watermark(self):
        return self.child.watermark

    @property
    def certain(self):
        return self.child.certain

    @property
    def lag(self):
        return self.child.lag

    @property
    def next_due(self):
        return self.child.next_due

    @property
    def sole_extent(self):
        return self.child.sole_extent

    @property
    def entered(self):
        return self.child.entered

    def step(self, clock):
        below = self.child.change
        inserted, passed = self._passing(below.inserted)
        removed, _ = self._passing(below.removed)
        is_new = take_at(below.is_new, passed)
        if not all_true(is_new):
            newly = ~is_new & ~np.isin(inserted.ident, removed.ident)
            inserted = self._added(inserted, newly, clock) if newly.any() else inserted
            is_new = is_new | newly
        if self._limit is not None:
            within = inserted.arrival <= self._limit
            inserted, is_new = inserted.take(within), is_new[within]
        versions = below.versions
        if versions is not None:
            versions = versions.select(*self._passing(versions.tuples))
        self.change = Change(inserted, is_new, removed, below.dirty_ticks, below.watermark, below.marks, versions)
        self.count(below)

    def _added(self, tuples, which, clock):
        which = which & (self.index_of(tuples.ident) > 0) & ~np.isin(tuples.ident, self.entered)
        arrival, rank, place = tuples.arrival.copy(), tuples.rank.copy(), tuples.place.copy()
        arrival[which], rank[which], place[which] = clock, REVISION_RANK, self.index_of(tuples.ident)[which]
        return replace(tuples, arrival=arrival, rank=rank, place=place)

    def _passing(self, tuples):
        """The tuples that pass, with this stream's columns; and which they are: a slice or positions."""
        if not len(tuples) and self._none is not None:
            return self._none, slice(None)
        mask = self._mask(tuples)
        which = slice(None) if mask is None or all_true(mask) else as_positions(mask)
        if self._read is not None:
            tuples = tuples.with_columns({id: vector for id, vector in tuples.columns.items() if id in self._read})
        tuples = tuples.take(which)
        if self._outputs is not None:
            columns = project_columns(self._outputs, tuples.columns, len(tuples))
            columns |= {id: tuples.columns[id] for id in self._tags if id in tuples.columns}
            tuples = tuples.with_columns(columns)
        if not len(tuples):
            self._none = tuples
        return tuples, which

    def _mask(self, tuples):
        """Which tuples pass; None where no predicate asks."""
        return None if self._predicate is None else Evaluation(tuples.columns, len(tuples)).of(self._predicate).is_true

    def empty_covers(self):
        return self.child.empty_covers()

    def all(self):
        below = self.child.all()
        inserted, which = self._passing(below.inserted)
        return Change(inserted, below.is_new[which], empty_like(inserted), NO_TICKS, below.watermark)

    def row_history(self):
        """Selection gives rows of its own (3.7), and those that pass now are there."""
        return None if self._predicate is not None else self.child.row_history()

    def between(self, low, high):
        return self._passing(self.child.between(low, high))[0]

    def index_of(self, idents):
        return self.child.index_of(idents)

    def placed(self, tuples):
        return self.child.placed(tuples)

    def covers(self, low, high, at):
        return self.child.covers(low, high, at)

    def epochs(self):
        return self.child.epochs()

    def epochs_from(self, tick):
        return self.child.epochs_from(tick)

    def anchor(self, low):
        return self.child.anchor(low)

    def epoch_covers(self, keys):
        return self.child.epoch_covers(keys)

    def open_from(self, before):
        return self.child.open_from(before)

    @property
    def first(self):
        return self.child.first

    def tidy(self):
        self.child.need(self.needed)
        self.needed = NEVER


class SharedFilterStream(FilterStream):
    """The tuples that at least one of many queries wants; `wants` knows their predicates."""

    def __init__(self, child, wants):
        super().__init__(child, None, None, ())
        self.wants = wants

    def _mask(self, tuples):
        return self.wants.any(tuples.columns, len(tuples))

    def row_history(self):
        return None


def project_columns(outputs, columns, length):
    """The columns of a projection. A plain attribute with a scale stays what it is: whole multiples."""
    evaluation = Evaluation(columns, length)
    out = {}
    for column, expression in outputs:
        if isinstance(expression, Attr):
            out[column.id] = columns[expression.column.id]
        else:
            out[column.id] = evaluation.as_type(expression, column.type)
    return out

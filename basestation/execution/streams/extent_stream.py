"""Extent streams: the tuples of an extent, under the columns of a query."""

from dataclasses import replace
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import LatePolicy
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.vector import Vector, all_true, any_true, as_positions, take_at
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import LOGGED, OperatorDescription, StateDescription, array_bytes, find_arrays
from basestation.execution.ingest.intake import IngestStep, Intake
from basestation.execution.streams.stream import REVISION_RANK, Stream
from basestation.progress.query_scope import WHOLE_SCOPE, QueryScope

_EPOCH_BYTES = 10
"""Bytes for each reading by which its epoch is known to be complete; measured, tests/planner/test_explained_memory.py."""


class ExtentStream(Stream):
    """StreamAcquire and StreamReceive. The tuples themselves stay in the log of the intake, which all queries share.

    An interval coarser than declared keeps the multiples of it (11). Where a query reads `index`, a tuple is corrected
    when it gets one (14).
    """

    def __init__(
        self,
        node: StreamAcquire | StreamReceive,
        intake: Intake,
        names_index: bool,
        excludes: tuple[BoolArray, ...],
        alone: bool,
        scope: QueryScope = WHOLE_SCOPE,
    ) -> None:
        """Read an extent.

        `excludes` are masks of the sites that conditions leave out. `alone` says that the query reads the extent nowhere
        else. Readings outside of `scope` were sent for other queries.
        """
        super().__init__(0)
        self.intake, self.extent = intake, node.extent
        self._excludes, self._marked, self._alone = excludes, intake.watermark, alone
        self._scope = scope
        interval = node.interval if isinstance(node, StreamAcquire) else None
        self._all_ticks = interval in (None, node.extent.interval)
        self.interval = interval or 1
        """The ticks between samples; 1 for a pushed extent."""
        self.columns = node.columns
        self._names: dict[int, Any] = {column.id: column.name for column in node.columns}  # columns of the log
        self._tick, self._index = (tag.id for tag in node.tags)
        self.names_index = names_index
        self._none: Tuples | None = None  # no tuples, with the columns of this stream
        self._entered: IntArray = NO_TICKS

    @property
    def title(self) -> str:
        return f"{'acquire' if self.intake.sensed else 'receive'} {self.extent.name}"

    def describe(self) -> OperatorDescription:
        how = "readings by the schedule" if self.intake.sensed else "tuples as they arrive"
        if not self._all_ticks:
            how += f", every {self.interval} ticks"
        limit = self.max_tuples(1 + self.extent.wait + self.horizon)
        log = self.intake.log
        shared = (self.extent.site_attribute, self.extent.time_attribute)  # they are the site and the tick of the tuple
        columns = 4 + len(self.extent.schema) - sum(attribute is not None for attribute in shared)
        entry = 8 * columns + (_EPOCH_BYTES if self.intake.sensed else 0)
        state = StateDescription(LOGGED, limit, entry, log.next - log.first, array_bytes(*find_arrays(log)))
        return OperatorDescription(self.title, how, state)

    @property
    def by_site(self) -> bool:
        return self.intake.sensed

    @property
    def lag(self) -> int:
        return 0 if self.intake.sensed else self.extent.wait

    @property
    def sole_extent(self) -> str | None:
        return None if self.intake.sensed else self.extent.name

    @property
    def tracks_versions(self) -> bool:
        """Not with `late append`, whose tuples are in windows from their arrival on, nor where a tuple gets its index."""
        return not (self.intake.sensed or self.names_index or self.extent.late is LatePolicy.APPEND)

    @property
    def watermark(self) -> int:
        return self.intake.watermark

    @property
    def certain(self) -> int:
        return self.intake.watermark

    @property
    def entered(self) -> IntArray:
        return self._entered

    def step(self, clock: int) -> None:
        found = self._last_step
        self._entered, change = found.entered, found.change
        inserted, is_new, removed = change.inserted, change.is_new, change.removed
        if self.names_index:
            inserted, is_new, removed = self._with_entries(inserted, is_new, removed, found.entered)
        inserted, mask = self._visible(inserted)
        is_new = is_new if all_true(mask) else take_at(is_new, as_positions(mask))
        if len(removed) or self._none is None:
            removed, _ = self._visible(removed, found.entered)  # with the values that they had: without an index
            self._none = empty_like(removed)
        else:
            removed = self._none
        versions = change.versions
        if versions is not None:
            versions = versions.select(*self._visible(versions.tuples))
        dirty = self._sampled(change.dirty_ticks)
        self.change = Change(inserted, is_new, removed, dirty, change.watermark, change.marks, versions)
        self._epochs = self._find_epochs()
        self.count_rows(found.change)

    @property
    def _last_step(self) -> IngestStep:
        step = self.intake.last
        if step is None:
            raise RuntimeError("expected a step of the intake before one of its streams")
        return step

    def tidy(self) -> None:
        self.intake.need(self.needed)
        self.needed = NEVER

    def open_from(self, before: int) -> int:
        return before

    @property
    def first(self) -> int:
        return self.intake.log.first

    @property
    def last_index(self) -> int:
        """The index of the tuple that entered last; 0 where none has."""
        return self.intake.log.last_index

    def empty_covers(self) -> list[CoverageRanges]:
        if not self.intake.sensed:
            return [CoverageRanges(self.extent.name)]
        return [CoverageRanges(self.extent.name, self.intake.site_coverage, self.interval, self._excludes, self._scope)]

    def all(self) -> Change:
        known = self.intake.log.all_visible()
        inserted, _ = self._visible(known)
        return Change(inserted, np.ones(len(inserted), bool), empty_like(inserted), NO_TICKS, self.intake.watermark)

    def row_history(self) -> tuple[IntArray, IntArray] | None:
        if not self._all_ticks:
            return None
        idents, arrivals = self.intake.log.row_history()
        in_scope = self._in_scope(idents)
        return idents[in_scope], arrivals[in_scope]

    def between(self, low: int, high: int) -> Tuples:
        return self._visible(self.intake.log.between(low, high))[0]

    def with_idents(self, idents: IntArray) -> Tuples:
        """The tuples of some numbers, with their current values."""
        return self._visible(self.intake.log.visible(idents))[0]

    def placed(self, tuples: Tuples) -> Tuples:
        """Tuples that a selection let pass later get back the arrival that they had here."""
        added = tuples.rank == REVISION_RANK
        if not any_true(added):
            return tuples
        rows = self.intake.log.visible(tuples.ident[added])
        arrival, rank, place = tuples.arrival.copy(), tuples.rank.copy(), tuples.place.copy()
        arrival[added], rank[added], place[added] = rows.arrival, rows.rank, rows.place
        return replace(tuples, arrival=arrival, rank=rank, place=place)

    def _with_entries(
        self, inserted: Tuples, is_new: BoolArray, removed: Tuples, entered: IntArray
    ) -> tuple[Tuples, BoolArray, Tuples]:
        """The same change, with a correction of each tuple that got its index in this step and came before it."""
        before = entered[~np.isin(entered, inserted.ident)]
        tuples = self.intake.log.visible(before)
        inserted = concatenate_tuples([inserted, tuples])
        return inserted, np.concatenate([is_new, np.zeros(len(tuples), bool)]), concatenate_tuples([removed, tuples])

    def _find_epochs(self) -> IntArray:
        """(tick, 1) of the epochs that became complete in this step, and of those whose coverage may differ (12.3)."""
        if self.intake.epochs is None:
            return NO_KEYS
        first = max(self._marked + 1, self.intake.epochs.begun)
        new = np.arange(first + -first % self.interval, self.watermark + 1, self.interval)
        dirty = self.change.dirty_ticks
        again = dirty[dirty <= self._marked]
        self._marked = max(self._marked, self.watermark)
        ticks = np.concatenate([again, new])
        return np.stack([ticks, np.ones_like(ticks)], axis=1)

    def epochs(self) -> IntArray:
        return self._epochs

    def epochs_from(self, tick: int) -> IntArray:
        if self.intake.epochs is None:
            return NO_KEYS
        first = max(tick, self.intake.epochs.begun)
        ticks = np.arange(first + -first % self.interval, self.watermark + 1, self.interval)
        return np.stack([ticks, np.ones_like(ticks)], axis=1)

    def anchor(self, low: int) -> bool:
        if not self.intake.sensed:
            return True
        [cover] = self.empty_covers()
        if not self._alone or cover.tally is None:
            return False
        cover.tally.anchor(low)
        return True

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        if not self.intake.sensed:
            return []
        ours = keys[:, 0] % self.interval == 0
        low, high = (np.where(ours, keys[:, 0], empty) for empty in (1, 0))
        return [(ours, self.covers(low, high, np.full(len(keys), NEVER)))]  # at NEVER every reading has come

    def _sampled(self, ticks: IntArray) -> IntArray:
        return ticks if self._all_ticks else ticks[ticks % self.interval == 0]

    def _visible(self, tuples: Tuples, waiting: IntArray = NO_TICKS) -> tuple[Tuples, BoolArray]:
        """(the tuples that the query samples and may see, under its columns; the mask of which these are).

        Those with numbers in `waiting` have no index yet.
        """
        mask = self._in_scope(tuples.ident)
        if not self._all_ticks:
            mask = mask & (tuples.tick % self.interval == 0)
        if not all_true(mask):
            tuples = tuples.take(mask)
        columns = {id: tuples.columns[name] for id, name in self._names.items()}
        columns[self._tick] = Vector(tuples.tick)
        if self.names_index:
            index = np.where(np.isin(tuples.ident, waiting), 0, self.index_of(tuples.ident))
            columns[self._index] = Vector(index, None if (index > 0).all() else index > 0)
        return tuples.with_columns(columns), mask

    def _in_scope(self, idents: IntArray) -> BoolArray:
        return self.intake.log.column_sets.all_of(self._scope.columns, idents)

    def index_of(self, idents: IntArray) -> IntArray:
        return self.intake.log.index_of(idents)

    def entering(self) -> Tuples | None:
        """The tuples that enter in this step, in order; None where there are none."""
        found = self._last_step
        if found.entering is found.change.inserted and self._all_ticks and not self.names_index:
            return self.change.inserted
        tuples = None if found.entering is None else self._visible(found.entering)[0]
        return tuples if tuples is not None and len(tuples) else None

    def indexes(self, tuples: Tuples, rows: IntArray) -> IntArray:
        """The indexes of some rows of tuples."""
        return self.intake.log.indexes(tuples, rows)

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        return [replace(each, owner=np.arange(len(low)), low=low, high=high, at=at) if each.intake else each
                for each in self.empty_covers()]  # fmt: skip

    def max_tuples(self, ticks: int) -> int | None:
        if self.extent.sites is None or not self.intake.sensed:
            return None
        return 0 if ticks <= 0 else len(self.extent.sites) * ((ticks - 1) // self.interval + 1)

    @property
    def horizon(self) -> int:
        return (self.extent.horizon or 0) if self.extent.late is LatePolicy.REVISE else 0

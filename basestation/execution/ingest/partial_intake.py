"""PartialIntake: takes in the partials of one fold, and knows how far its time is complete.

It is to partials what an Intake is to readings. A partial is of a whole slice, so of the sites it is only known how many readings
of a slice are here. That is enough, because every window is a run of whole slices. A partial is too far ahead, or beyond the
horizon, if a reading of the first due tick of its slice would be.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.ticks import grid_at_or_after
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.tuples import Tuples
from basestation.execution.ingest.intake import Intake
from basestation.execution.ingest.lateness import Lateness
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.progress.coverage_sums import CoverageSums, SharedCoverageSums
from basestation.progress.query_scope import QueryScope
from basestation.progress.watermark import NEVER, EpochProgress
from innet.operators.fold import Fold


class PartialIntake:
    """A DeliveryIntake of partials.

    A fold begins with a slice: the first one that begins after it was requested, or, if nothing was due of its extents before,
    the one in which sampling begins.

    `new_partials` are those that the last step took, None for none; `dirty_ticks` the first due ticks of their slices.
    """

    coalesces = False  # there are few partials
    amends = False

    def __init__(self, fold: Fold, intakes: Sequence[Intake], now: int) -> None:
        """`intakes` are those of the fold's extents, that of the sampling it belongs to first; `now` is the next clock tick."""
        self._slices, self.interval = fold.slices, fold.interval
        self._site_count = len(intakes[0].sensed_epochs.sites)
        self._intakes, self.extent = intakes, intakes[0].extent  # several extents all treat late readings alike
        self.counts: Counter[str] = Counter()  # of this step
        self._lateness = Lateness(self.extent, self.counts)
        self.horizon, self.keys = self._lateness.horizon, intakes[0].keys
        fresh = all(intake.sensed_epochs.begun >= now for intake in intakes)
        begin = grid_at_or_after(now, intakes[0].sensed_epochs.interval)
        if not fresh and self._slices.begin(self._slices.number(begin)) < begin:
            begin = self._slices.end(self._slices.number(begin))
        self._since = grid_at_or_after(begin, self.interval)  # the first tick that is folded
        self._first = self._slices.number(self._since)
        self._readings = DenseIdMap(np.int64)  # how many readings are here of each slice, counted from _first
        self._log: list[PartialBatch] = []
        self._kept_from = self._since  # earlier slices were dropped
        self._needed = NEVER
        self.site_coverage = {intake.extent.name: FoldSiteCoverage(self, intake.sensed_epochs) for intake in intakes}
        self.clock = now - 1
        self.watermark = self._complete_at(self.clock)
        self.new_partials: PartialBatch | None = None
        self.dirty_ticks = NO_TICKS

    # --- slices ------------------------------------------------------------------------------------------------------

    def begins(self, slices: IntArray) -> IntArray:
        """Return the first due tick of each slice."""
        return np.maximum(grid_at_or_after(self._slices.begin(slices), self.interval), self._since)

    def _ends(self, slices: IntArray) -> IntArray:
        """Return the last due tick of each slice."""
        return grid_at_or_after(self._slices.begin(slices + 1), self.interval) - self.interval

    def used(self, ticks: IntArray) -> IntArray:
        """Return how many readings are here of the slice that begins at each due tick; 0 if none begins there."""
        slices = self._slices.number(ticks)
        number = slices - self._first
        known = (number >= self._readings.base) & (ticks == self.begins(slices))
        return np.where(known, self._readings[np.where(known, number, self._readings.base)], 0)

    def _complete_at(self, clock: int) -> int:
        """Return the watermark at the end of a clock tick: as that of an extent (semantics 1.5), by whole slices."""
        due = grid_at_or_after(max(clock - self.extent.wait + 1, self._since), self.interval)
        while due <= clock:
            number = self._slices.number(due)
            if not self._slices.is_in_windows(number):  # no partial will come of it
                due = grid_at_or_after(self._slices.end(number), self.interval)
                continue
            last = grid_at_or_after(self._slices.begin(number + 1), self.interval) - self.interval
            begin = max(grid_at_or_after(self._slices.begin(number), self.interval), self._since)
            ticks = (last - begin) // self.interval + 1
            if self._readings[number - self._first] < ticks * self._site_count:
                return due - 1
            due = grid_at_or_after(self._slices.end(number), self.interval)
        return clock

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(
        self,
        batches: Sequence[PartialBatch],
        corrections: Sequence[object],
        clock: int,
        end: bool = False,
        multi_tick: bool = False,
        amends: bool = False,
    ) -> None:
        """Take the partials of clock tick `clock`; with `multi_tick`, of several up to that one, none of them late."""
        complete = None if multi_tick else self._complete_at(clock - 1)
        self.new_partials, self.dirty_ticks = None, NO_TICKS
        taken = [found for batch in batches if len(found := self._admit(batch, clock, complete))]
        for intake in self._intakes:  # a partial of joined pairs has a reading of each extent
            intake.counts.update(self.counts)
        self.counts.clear()
        if taken:
            self._add(PartialBatch.concatenate(taken))
        self.clock = clock
        self.watermark = clock if end else max(self.watermark, self._complete_at(clock))

    def _add(self, partials: PartialBatch) -> None:
        """Log admitted partials and count their readings."""
        self.new_partials = partials
        self._log.append(partials)
        slices, which = np.unique(partials.slice, return_inverse=True)
        more = np.zeros(len(slices), np.int64)
        np.add.at(more, which, partials.readings)
        self._readings[slices - self._first] = self._readings[slices - self._first] + more
        self.dirty_ticks = distinct(self.begins(slices))
        for coverage in self.site_coverage.values():
            coverage.tallies.changed(int(self.dirty_ticks[0]))
        behind = int(self._ends(partials.slice).max()) + 1
        for intake in self._intakes:
            intake.unfiltered_from = max(intake.unfiltered_from, behind)

    def _admit(self, partials: PartialBatch, clock: int, complete: int | None) -> PartialBatch:
        """Return the partials of the fold's slices that are not too far ahead and not too late; count their readings."""
        counts, received = self.counts, int(partials.readings.sum())
        counts["received"] += received
        counts["merged"] += received  # some readings may come unmerged as well, for other queries
        ours = partials.slice >= self._first
        counts["rejected: off the schedule"] += int(partials.readings[~ours].sum())
        partials = partials.take(ours)
        if self.extent.ahead is not None:
            ahead = self.begins(partials.slice) - partials.arrival > self.extent.ahead
            counts["ahead"] += int(partials.readings[ahead].sum())
            partials = partials.take(~ahead)
        judged = self._lateness.judge(self.begins(partials.slice), clock, complete, partials.readings)
        partials = partials.take(judged.live)
        counts["accepted"] += int(partials.readings[~partials.bare].sum())
        counts["filtered"] += int(partials.readings[partials.bare].sum())
        return partials

    def entry_ticks(self) -> Sequence[int]:
        """Return none: partials are no tuples, and enter no stream."""
        return ()

    def is_disturbed_by(
        self, batches: Sequence[PartialBatch], corrections: Sequence[object], clock: int, answers_early: bool = False
    ) -> bool:
        """Return whether partials of a clock tick may change an answer that is due before it."""
        if answers_early and any(len(batch) for batch in batches):
            return True
        complete = self._complete_at(clock - 1)
        return any((self._ends(batch.slice) <= complete).any() for batch in batches)

    def find_disturbing(self, batch: PartialBatch) -> BoolArray:
        """Return a mask of the partials that may change an answer given before the clock tick of their arrival."""
        return self._ends(batch.slice) < batch.arrival - self.extent.wait

    # --- what is kept ------------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """The number of partials held."""
        return sum(map(len, self._log))

    def all(self) -> PartialBatch | None:
        """Return all partials that are here; None for none."""
        if len(self._log) > 1:
            self._log = [PartialBatch.concatenate(self._log)]
        return self._log[0] if self._log else None

    @property
    def no_rows(self) -> Tuples:
        """No tuples, for the stream of partials."""
        return self._intakes[0].log.none

    @property
    def begun(self) -> int:
        """The first tick that may be asked for."""
        return max(self._kept_from, self._intakes[0].sensed_epochs.begun)

    def need(self, before: int) -> None:
        """Promise that a query asks for no earlier tick."""
        self._needed = min(self._needed, before)

    def forget(self) -> None:
        """Drop slices that no query needs and that get no partials any more."""
        needed, self._needed = self._needed, NEVER
        before = min(needed, self.watermark - max(self.horizon, self.extent.wait) - 1)
        if before <= self._kept_from:
            return
        first = self._slices.number(before)
        self._kept_from = max(grid_at_or_after(self._slices.begin(first), self.interval), self._since)
        held = self.all()
        if held is not None:
            held = held.take(held.slice >= first)
            self._log = [held] if len(held) else []
        self._readings.drop_before(first - self._first)
        for coverage in self.site_coverage.values():
            coverage.tallies.forget(self._kept_from)

    def forget_history(self, before: int | None) -> None:
        """Do nothing: partials have no history."""


class FoldSiteCoverage:
    """A CoverageSource: one extent of a fold."""

    def __init__(self, merged: PartialIntake, epochs: EpochProgress) -> None:
        self._merged, self.epochs = merged, epochs
        self.tallies = SharedCoverageSums(self, epochs)

    def used(self, ticks: IntArray, excluded: BoolArray, scope: QueryScope) -> IntArray:
        """Return how many sites are used at due ticks: those of a slice at the first of its ticks.

        Excluded sites have no part in the fold, and count as used.
        """
        return self._merged.used(ticks) + int(excluded.sum())

    def known_at(self, tick: int, at: int, scope: QueryScope) -> BoolArray:
        """Raise TypeError: partials do not say which sites their readings are of."""
        raise TypeError("coverage of partials is known by tick, not by site")

    def tally(self, interval: int, excluded: BoolArray, scope: QueryScope) -> CoverageSums | None:
        """Return the sums of used sites that all equal coverage shares; bare partials belong to the fold itself."""
        return self.tallies.of(interval, excluded, self._merged.begun, scope)

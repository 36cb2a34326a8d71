"""Merged: what reached the base station of one fold, what became of it, and how far its time is complete.

What an Intake is for readings. Partials come for whole slices, so all that is known of the sites is how many readings of a
slice there are; which is enough, because every window is a run of whole slices. A partial is too far ahead, or beyond the
horizon, as a reading of the first due tick of its slice would be.
"""

from collections import Counter

import numpy as np

from acquisition.ticks import grid_at_or_after
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.ingest.lateness import Lateness
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.progress.coverage_sums import SharedCoverageSums
from basestation.progress.watermark import NEVER


class PartialIntake:
    """A fold begins with a slice: the first that begins after it was asked for. Where nothing was due of its extents before,
    that is the one in which sampling begins.

    `came` are the partials that were taken in the last step, `touched` the first due ticks of their slices.
    """

    def __init__(self, fold, intakes, now):
        """`intakes` are those of its extents, the one whose sampling it belongs to first; `now` is the next clock tick."""
        self._slices, self.interval = fold.slices, fold.interval
        self._intakes, self.extent = intakes, intakes[0].extent  # where there are more, all treat the late alike
        self.counts = Counter()  # of this step
        self._lateness = Lateness(self.extent, self.counts)
        self.horizon, self.keys = self._lateness.horizon, intakes[0].keys
        fresh = all(intake.epochs.begun >= now for intake in intakes)
        begin = grid_at_or_after(now, self.extent.interval)
        if not fresh and self._slices.begin(self._slices.number(begin)) < begin:
            begin = self._slices.end(self._slices.number(begin))
        self._since = grid_at_or_after(begin, self.interval)  # the first tick that is folded
        self._first = self._slices.number(self._since)
        self._readings = DenseIdMap(np.int64)  # by slice, from the first on: how many are here
        self._log = []
        self._kept_from = self._since  # what is before was let go of
        self._needed = NEVER
        self.heard = {intake.extent.name: FoldSiteCoverage(self, intake.epochs) for intake in intakes}
        self.clock = now - 1
        self.watermark = self._complete(self.clock)
        self.came, self.dirty_ticks = None, NO_TICKS

    # --- slices ------------------------------------------------------------------------------------------------------

    def begins(self, slices):
        """The first due tick of each."""
        return np.maximum(grid_at_or_after(self._slices.begin(slices), self.interval), self._since)

    def _ends(self, slices):
        """The last due tick of each."""
        return grid_at_or_after(self._slices.begin(slices + 1), self.interval) - self.interval

    def used(self, ticks):
        """How many readings are here of the slices that begin at due ticks; of a slice in which others stand, 0."""
        slices = self._slices.number(ticks)
        number = slices - self._first
        known = (number >= self._readings.base) & (ticks == self.begins(slices))
        return np.where(known, self._readings[np.where(known, number, self._readings.base)], 0)

    def _complete(self, clock):
        """The watermark at the end of a clock tick: as that of an extent (1.5), by whole slices."""
        due = grid_at_or_after(max(clock - self.extent.wait + 1, self._since), self.interval)
        while due <= clock:
            number = self._slices.number(due)
            if not self._slices.is_in_windows(number):  # nothing of it is to come
                due = grid_at_or_after(self._slices.end(number), self.interval)
                continue
            ticks = (int(self._ends(number)) - int(self.begins(number))) // self.interval + 1
            if self._readings[number - self._first] < ticks * len(self.extent.sites):
                return due - 1
            due = grid_at_or_after(self._slices.end(number), self.interval)
        return clock

    # --- one clock tick ----------------------------------------------------------------------------------------------

    coalesces = False  # partials are few
    amends = False  # what many clock ticks bring late is not taken in together

    def step(self, batches, corrections, clock, end=False, multi_tick=False, amends=False):
        """Take the partials of clock tick `clock`; in `calm` those of many up to that one, none of them late."""
        complete = None if multi_tick else self._complete(clock - 1)
        self.came, self.dirty_ticks = None, NO_TICKS
        taken = [found for batch in batches if len(found := self._taken(batch, clock, complete))]
        for intake in self._intakes:  # a partial of pairs has a reading of each in every one
            intake.counts.update(self.counts)
        self.counts.clear()
        if taken:
            self.came = PartialBatch.together(taken)
            self._log.append(self.came)
            slices, which = np.unique(self.came.slice, return_inverse=True)
            more = np.zeros(len(slices), np.int64)
            np.add.at(more, which, self.came.readings)
            self._readings[slices - self._first] = self._readings[slices - self._first] + more
            self.dirty_ticks = distinct(self.begins(slices))
            for heard in self.heard.values():
                heard.tallies.changed(int(self.dirty_ticks[0]))
            behind = int(self._ends(self.came.slice).max()) + 1
            for intake in self._intakes:
                intake.unfiltered_from = max(intake.unfiltered_from, behind)
        self.clock = clock
        self.watermark = clock if end else max(self.watermark, self._complete(clock))

    def _taken(self, partials, clock, complete):
        """Those that are of the fold's slices, not too far ahead and not too late."""
        counts, came = self.counts, int(partials.readings.sum())
        counts["received"] += came
        counts["merged"] += came  # for other queries some of them may come one by one as well
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

    def entry_ticks(self):
        """No tuple enters a stream."""
        return ()

    def is_disturbed_by(self, batches, corrections, clock, answers_early=False):
        """Whether partials of a clock tick may change what was, or should have been, answered before it."""
        if answers_early and any(len(batch) for batch in batches):
            return True
        complete = self._complete(clock - 1)
        return any((self._ends(batch.slice) <= complete).any() for batch in batches)

    def find_disturbing(self, batch):
        """Which partials may change what was answered before the clock tick of their arrival."""
        return self._ends(batch.slice) < batch.arrival - self.extent.wait

    # --- what is kept ------------------------------------------------------------------------------------------------

    @property
    def held(self):
        """How many partials."""
        return sum(map(len, self._log))

    def all(self):
        """All partials that are here."""
        if len(self._log) > 1:
            self._log = [PartialBatch.together(self._log)]
        return self._log[0] if self._log else None

    @property
    def no_rows(self):
        """No tuples, as a stream of them has to have."""
        return self._intakes[0].log.none

    @property
    def begun(self):
        """The first tick that may be asked for."""
        return max(self._kept_from, self._intakes[0].epochs.begun)

    def need(self, before):
        """A query asks for nothing before a tick."""
        self._needed = min(self._needed, before)

    def forget(self):
        """Let go of slices that no query needs, and that no partial can come for any more."""
        needed, self._needed = self._needed, NEVER
        before = min(needed, self.watermark - max(self.horizon, self.extent.wait) - 1)
        if before <= self._kept_from:
            return
        first = self._slices.number(before)
        self._kept_from = int(self.begins(first))
        held = self.all()
        if held is not None:
            held = held.take(held.slice >= first)
            self._log = [held] if len(held) else []
        self._readings.drop_before(first - self._first)
        for heard in self.heard.values():
            heard.tallies.forget(self._kept_from)

    def forget_history(self, before):
        """Partials have none."""


class FoldSiteCoverage:
    """One extent of a fold, as coverage asks of it: what an Intake and its Census say of readings."""

    def __init__(self, merged, epochs):
        self._merged, self.epochs = merged, epochs
        self.tallies = SharedCoverageSums(self, epochs)

    def used(self, ticks, excluded, scope):
        """How many sites are used: those of a slice at the first of its ticks. Excluded ones have no part in the fold."""
        return self._merged.used(ticks) + int(excluded.sum())

    def known_at(self, tick, at, scope):
        """Partials do not say which sites their readings are of; all coverage of a fold is counted by tick."""
        raise TypeError("coverage of partials is known by tick, not by site")

    def tally(self, interval, excluded, scope):
        """The Tally of all that cover alike; bare partials are of the fold itself, whenever they came."""
        return self.tallies.of(interval, excluded, self._merged.begun, scope)

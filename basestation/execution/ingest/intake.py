"""Intake: what reached the base station of one extent, what became of it, and how far its time is complete.

All queries over an extent share its intake, so all agree on what was late, a duplicate or a conflict (SEMANTICS 1.5).
Every tuple that was taken stays in a log, by its number, for as long as a correction may name it.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from acquisition.extent import ExtentKind
from acquisition.ticks import grid_at_or_after
from basestation.algebra.record import record
from basestation.algebra.vector import all_true, any_true, cached_arange, constant, same_array
from basestation.execution.columns.change import Change
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.punctuation import Punctuation
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.ingest.admission import Admission
from basestation.execution.ingest.batch_runs import find_corrections, is_plain, split_runs
from basestation.execution.ingest.batched_corrections import BatchedCorrections
from basestation.execution.ingest.corrections import correct_row
from basestation.execution.ingest.history import History
from basestation.execution.ingest.lateness import Lateness
from basestation.execution.ingest.site_coverage import SiteCoverage
from basestation.execution.ingest.step_delta import StepDelta
from basestation.execution.ingest.tuple_builder import TupleBuilder
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.progress.watermark import NEVER, EpochProgress

_NONE = np.empty(0, np.int64)
KEYS_MS = 86_400_000
"""For how long at least a copy of a reading is recognised, and a reading may be named by a correction."""
_FEW = 1024
"""So many tuples are looked at sooner than it is found out whether two arrays are one."""
NAMED = 86_400
"""For how many ticks at least a tuple of a pushed extent, which has no key, may be named by its index."""


@record
class IngestStep:
    """What one clock tick did to an extent: the change of its stream, and which tuples entered it now, in order, if any."""

    change: Change
    entering: Tuples | None

    @property
    def entered(self):
        """Their numbers."""
        return _NONE if self.entering is None else self.entering.ident


def is_on_time(batch):
    """Whether each of its tuples came in the clock tick that it is about, as far as that is known without a look at many."""
    if len(batch) <= _FEW:
        return all_true(batch.tick == batch.arrival)
    return same_array(batch.tick, batch.arrival)


class Intake:
    """One extent."""

    coalesces = True  # what comes in many small batches, in time, may be taken in as one

    def __init__(self, extent, begun=0, scheduled=True, tick_ms=1_000):
        """A sensed extent that is not `scheduled` waits for `epochs.schedule`."""
        self.extent = extent
        self.sensed = extent.kind is ExtentKind.SENSED
        self.keys = -(-KEYS_MS // tick_ms) if self.sensed else NAMED
        self.counts = Counter()
        self._lateness = Lateness(extent, self.counts)
        self.horizon = self._lateness.horizon
        self.epochs = EpochProgress(extent, begun if scheduled else None) if self.sensed else None
        self.clock = begun - 1
        self._begun = begun
        self.watermark = self._complete(begun - 1)
        self.tuple_builder = TupleBuilder(extent)
        self.log = TupleLog(self.tuple_builder.none())
        self._admission = Admission(extent, self.tuple_builder, self.epochs, self.log, self.counts)
        self.site_coverage = SiteCoverage(extent, self.epochs, self.log, begun) if self.sensed else None
        self.history = None  # kept where a query reads it
        self._pending = WatermarkBuffer()
        self.last = None  # what the last Step did
        self.unfiltered_from = -NEVER  # the first tick from which on no mote has filtered anything
        self._needed = NEVER
        self._marked = 0  # how many marks there were
        self.step_delta = None  # what comes and goes in the Step that is going on
        # Whether it is known that all tuples of that Step arrive in order, at the ticks that they are about.
        self._ordered = False
        self._amending = None  # in a Step of many clock ticks, what is amended in it

    @property
    def begun(self):
        """The first tick from which on everything is here."""
        return max(self._begun, self.epochs.begun) if self.sensed else self._begun

    @property
    def amends(self):
        """Whether what many clock ticks amend can be taken in together."""
        return not self.sensed and self.history is None

    # --- one clock tick ----------------------------------------------------------------------------------------------

    def step(self, batches, corrections, clock, end=False, multi_tick=False, amends=False):
        """Take the deliveries of clock tick `clock` in their order; at the end of a replay all time is complete.

        In `calm` there may be deliveries of many clock ticks up to that one, each in that of its arrival; none is late or corrects
        another then, unless the step `amends`.
        """
        complete = None if multi_tick else self._complete(clock - 1)
        self.step_delta = StepDelta(self.log.none, self.log.next)
        self._amending = BatchedCorrections() if amends else None
        if self.history is not None:
            self.history.begin_step()
        # Of many clock ticks, batches and what is in them come in the order of their clock ticks.
        self._ordered = (
            multi_tick
            and not (self.sensed or corrections)
            and all(is_plain(batch) and is_on_time(batch) for batch in batches)
        )
        marks = []
        filtered = [_NONE]
        for batch in batches:
            if is_plain(batch):
                self.insert(batch if multi_tick else replace(batch, arrival=constant(clock, len(batch))), complete)
                continue
            silent = batch.weight == 0
            if silent.any():
                filtered.append(self._report(batch.take(silent), clock, complete))
                batch = batch.take(~silent)
            if self._amending is not None and (amends := find_corrections(batch)).any():
                self._amending.rows.append(batch.take(np.flatnonzero(amends)))
                batch = batch.take(np.flatnonzero(~amends))
            for run, values in split_runs(batch):
                marks += [self._mark(value, run, clock, complete) for value in values]
                if run.replaces is not None or (run.weight < 0).any():
                    correct_row(self, run, clock)
                else:
                    at = run.arrival if multi_tick else constant(clock, len(run))
                    self.insert(replace(run, arrival=at), complete)
        for correction in corrections:
            correction(self, clock, complete)
        self.watermark = clock if end else max(self.watermark, self._complete(clock))
        come, gone, is_new = self.step_delta.settled(self.log.live)
        self._pending.apply(come, is_new, gone, self._ordered and not len(gone))
        entering = self._enter()
        versions = self._amending and self._amending.carry_out(self, clock)
        if versions is not None:
            come, gone = self._amending.settled(come)
            is_new = constant(True, len(come))
        self.clock = clock
        touched = distinct(np.concatenate([come.tick, gone.tick, *filtered])) if self.sensed else _NONE
        if len(touched):
            self.site_coverage.tallies.changed(int(touched[0]))
        self.last = IngestStep(Change(come, is_new, gone, touched, self.watermark, tuple(marks), versions), entering)

    def _mark(self, value, run, clock, complete):
        """A mark enters just before the first of the tuples that follow it; behind all of its clock tick without any."""
        self._marked += 1
        source = self.extent.name, self._marked
        if not len(run):
            return Punctuation(source, clock, 0, 0, self.log.next, value)
        tick, at = int(run.tick[0]), clock if complete is not None else int(run.arrival[0])
        late = complete is not None and tick <= complete
        if not self.sensed:
            return Punctuation(source, at if late else min(tick, at), 0, 0, self.log.next - 0.5, value)
        key = run.tick[:1], run.site[:1]
        place = int(self.epochs.positions(*key)[0]) if self.epochs.due(*key)[0] else 0
        return Punctuation(source, at if late else tick, 0, tick + 1 if late else 0, place - 0.5, value)

    def entry_ticks(self):
        """Clock ticks in which a tuple may enter its stream although nothing is delivered: the next is among them."""
        first = self._pending.first
        if first is None:
            return ()
        if not self.sensed:
            return (first + self.extent.wait,)
        due = grid_at_or_after(self.watermark + 1, self.extent.interval)  # what holds it back, or will
        return first, due + self.extent.wait

    def is_disturbed_by(self, batches, corrections, clock, answers_early=False):
        """Whether deliveries of a clock tick may change what was, or should have been, answered before it.

        `hasty`: answered before all that it covers was complete, so that any tuple may.
        """
        if corrections or (answers_early and any(len(batch) for batch in batches)):
            return True
        complete = self._complete(clock - 1)
        return any((b.tick <= complete).any() or find_corrections(b).any() for b in batches)

    def find_disturbing(self, batch):
        """Which tuples of a batch may change what was answered before the clock tick of their arrival."""
        if not self.sensed and is_plain(batch) and is_on_time(batch):
            return constant(False, len(batch))
        last = batch.arrival - self.extent.wait if self.extent.wait else batch.arrival  # that is not late
        found = batch.tick < last if is_plain(batch) else find_corrections(batch) | (batch.tick < last)
        if self.sensed:
            due = self.epochs.due(batch.tick, batch.site)
            if all_true(due):
                return found | self.epochs.is_released(batch.tick, batch.site)
            due = np.flatnonzero(due)
            found[due] |= self.epochs.is_released(batch.tick[due], batch.site[due])
        return found

    def _complete(self, clock):
        """The watermark at the end of a clock tick, by the schedule (1.5)."""
        return self.epochs.watermark(clock) if self.sensed else clock - self.extent.wait

    def _enter(self):
        """Tuples whose arrival the watermark has reached take the next indexes, in order; None where there are none."""
        entering = self._pending.ready(self.watermark)
        if entering is None:
            return None
        self.log.enter(entering)
        if self.history is not None:
            self.history.enter(entering.ident, self.log.index_of(entering.ident), entering.arrival)
        return entering

    # --- insertions --------------------------------------------------------------------------------------------------

    def insert(self, batch, complete):
        """Take tuples that are delivered in the clock ticks of their `arrival`; those up to tick `complete` are late."""
        left = self._admission.filter_timely(batch)
        while left is not None and len(left):
            taken, left = self._admission.first_of_each_key(left)
            self._take(taken, complete)

    def _report(self, batch, clock, complete):
        """Take reports that readings were filtered, which are known from now on (12.3); late ones as late readings."""
        batch = self._admission.not_yet_reported(self._admission.filter_timely(batch))
        judged = self._lateness.judge(batch.tick, clock, complete)
        known = judged.live
        self.counts["filtered"] += int(known.sum())
        ticks = batch.tick[known]
        self.unfiltered_from = max(self.unfiltered_from, int(ticks.max(initial=-NEVER)) + 1)
        self.epochs.report(ticks, batch.site[known], np.where(judged.late, clock, batch.tick)[known])
        return ticks

    def _take(self, batch, complete):
        count = len(batch)
        if not count:
            return
        tick, clock = batch.tick, batch.arrival
        if self._amending is not None:
            complete = self._complete(clock - 1)
        judged = self._lateness.judge(tick, clock, complete)
        in_time = self.sensed or self._ordered or all_true(tick <= clock)
        arrival = tick if in_time else np.minimum(tick, clock)
        rank = constant(0, count)
        if any_true(judged.late):
            arrival = np.where(judged.late, clock, arrival)
            rank = np.where(judged.late, tick + 1, 0) if self.sensed else rank
        numbers = cached_arange(count, self.log.next)
        place = self.epochs.positions(tick, batch.site) if self.sensed else numbers
        tuples = self.tuple_builder.tagged(batch, numbers, arrival, rank, place)
        there = tuples.take(judged.there)
        self._admission.count_out_of_range(there)
        self.log.add(tuples, judged.live, judged.there, batch.columns, self._ordered)
        if self.history is not None:
            self.history.add(there)
        if self.sensed:
            self.epochs.take(tick, batch.site, numbers, self.log.sees)
        seen = tuples.take(judged.live)
        self.counts["accepted"] += len(seen)
        self.step_delta.insert(seen)
        if self._amending is not None and any_true(judged.late):
            self._amending.came.append(tuples.take(judged.late & judged.live))

    # --- corrections (12.2) ------------------------------------------------------------------------------------------

    def delete(self, numbers, clock):
        """Take tuples back. The key of a reading is free again (1.5)."""
        self.counts["revised"] += len(numbers)
        old = self.log.held(numbers)
        if self.sensed:
            self.epochs.release(old.tick, old.site)
        said = self.corrected(old, clock)
        self.step_delta.remove(old.take(said))
        if self.history is not None:
            self.history.end(numbers, clock)
        self.log.delete(numbers, said)

    def revise(self, numbers, columns, clock):
        """Give tuples other values."""
        self.counts["revised"] += len(numbers)
        old = self.log.held(numbers)
        new = replace(old, columns=columns)
        said = self.corrected(old, clock)
        self.step_delta.remove(old.take(said))
        self.step_delta.insert(new.take(said))
        self.log.withhold(old.take(self.log.live[numbers] & ~said))
        if self.history is not None:
            self.history.correct(new, clock)
        self.log.revise(new)

    def corrected(self, tuples, clock):
        """Which of them continuous queries are corrected about: back to the horizon, by tick (12.2)."""
        return self.log.live[tuples.ident] & self._lateness.corrected(tuples.tick, clock)

    # --- what is kept ------------------------------------------------------------------------------------------------

    def keep_history(self):
        """The History of the extent, from now on; of what was before, what the log has."""
        if self.history is None:
            self.history = History(self.log.none)
            known = self.log.known()
            self.history.add(known)
            indexes = self.log.index_of(known.ident)
            entered = np.flatnonzero(indexes)
            entered = entered[np.argsort(indexes[entered])]
            self.history.enter(known.ident[entered], indexes[entered], known.arrival[entered])
            self.history.begin_step()
        return self.history

    @property
    def held(self):
        """How many tuples."""
        return self.log.next - self.log.first

    def need(self, before):
        """A query asks for nothing before a tick."""
        self._needed = min(self._needed, before)

    def forget(self):
        """Let go of tuples that no query needs, and that no copy or correction can name any more."""
        needed, self._needed = self._needed, NEVER
        before = min(needed, self.watermark - max(self.horizon, self.extent.wait, self.keys) - 1)
        self._begun = max(self._begun, before)
        self.log.forget(before, self.watermark)
        if self.sensed:
            self.epochs.forget(before)
            self.site_coverage.forget(before)

    def forget_history(self, before):
        """Let go of what no scan from a tick on sees; of all of it where nobody reads it (None)."""
        if self.history is not None:
            if before is None:
                self.history = None
            else:
                self.history.forget(before)

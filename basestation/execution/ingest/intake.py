"""Intake: takes in the deliveries of one extent, and knows how far its time is complete.

All queries over an extent share its intake. So they agree on which tuples are late, duplicates or conflicts (semantics 1.5). Every
tuple stays in a log for as long as a correction may name it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.batch import BY_KEY, Batch
from acquisition.extent import Extent, ExtentKind, LatePolicy
from acquisition.ticks import grid_at_or_after
from basestation.algebra.record import record
from basestation.algebra.vector import Vector, all_true, any_true, cached_arange, constant, same_array
from basestation.execution import thresholds
from basestation.execution.columns.change import Change
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.punctuation import Punctuation
from basestation.execution.columns.tuples import Tuples, same_values
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.ingest.admission import Admission
from basestation.execution.ingest.batch_runs import find_corrections, is_plain, split_runs
from basestation.execution.ingest.batched_corrections import BatchedCorrections
from basestation.execution.ingest.corrections import PendingCorrection, correct_row, count_nonzero
from basestation.execution.ingest.history import History
from basestation.execution.ingest.lateness import Lateness
from basestation.execution.ingest.site_coverage import SiteCoverage
from basestation.execution.ingest.step_delta import StepDelta
from basestation.execution.ingest.tuple_builder import TupleBuilder
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.progress.watermark import NEVER, EpochProgress

_NONE: IntArray = np.empty(0, np.int64)
KEPT_MS = 3_600_000
"""For how many milliseconds, at least, tuples are kept, whatever their extent declares (semantics 14): so far back a query that comes
later finds them, a correction may name them, and a copy is recognised."""
KEPT_LONGER_MS = 86_400_000
"""The same where an older copy or correction would show in an answer."""


def find_retention(extent: Extent, tick_ms: int, has_history: bool = False) -> int:
    """Return for how many ticks, at least, a copy or a correction of a tuple finds it.

    With `late append` a copy of a forgotten reading would be a new tuple; a history shows every correction.
    """
    longer = has_history or (extent.kind is ExtentKind.SENSED and extent.late is LatePolicy.APPEND)
    return -(-(KEPT_LONGER_MS if longer else KEPT_MS) // tick_ms)


@record
class IngestStep:
    """The effect of one step on an extent: the change of its stream, and the tuples that entered, in order, or None."""

    change: Change
    entering: Tuples | None

    @property
    def entered(self) -> IntArray:
        """The numbers of the tuples that entered."""
        return _NONE if self.entering is None else self.entering.ident


def is_on_time(batch: Batch) -> bool:
    """Return whether each tuple came in its own tick. Of a large batch only the identity of the two columns is checked."""
    if len(batch) <= thresholds.IDENTITY_CHECK_TUPLES:
        return all_true(batch.tick == batch.arrival)
    return same_array(batch.tick, batch.arrival)


class Intake:
    """A DeliveryIntake of batches, for one sensed or pushed extent."""

    coalesces = True

    def __init__(
        self, extent: Extent, begun: int = 0, scheduled: bool = True, tick_ms: int = 1_000, first: int = 0
    ) -> None:
        """`begun` is the first tick on record, `first` the number of the first tuple to come.

        A sensed extent that is not `scheduled` waits for `epochs.schedule`.
        """
        self.extent = extent
        self.sensed = extent.kind is ExtentKind.SENSED
        self._tick_ms = tick_ms
        self.counts: Counter[str] = Counter()
        self._lateness = Lateness(extent, self.counts)
        self.horizon = self._lateness.horizon
        self.epochs = EpochProgress(extent, begun if scheduled else None) if self.sensed else None
        self.clock = begun - 1
        self._begun = begun
        self.watermark = self._complete_at(begun - 1)
        self.tuple_builder = TupleBuilder(extent)
        self.log = TupleLog(self.tuple_builder.none(), first)
        self._admission = Admission(extent, self.tuple_builder, self.epochs, self.log, self.counts)
        self.site_coverage = None if self.epochs is None else SiteCoverage(extent, self.epochs, self.log, begun)
        self.history: History | None = None  # kept while a query reads it
        self._pending = WatermarkBuffer()
        self.last: IngestStep | None = None
        self.unfiltered_from = -NEVER  # the first tick from which on no mote has filtered a reading
        self._needed = NEVER
        self._mark_count = 0
        self.step_delta = StepDelta(self.log.none, self.log.next)  # of the step that is going on
        # Whether all tuples of the step that is going on are known to arrive on time, and in the order of their ticks.
        self._ordered = False
        self._batched: BatchedCorrections | None = None  # of a step of many clock ticks
        self.applied: list[Batch] | None = None  # corrections that an archive has not taken yet; None: there is none

    @property
    def begun(self) -> int:
        """The first tick from which on everything is here."""
        return self._begun if self.epochs is None else max(self._begun, self.epochs.begun)

    @property
    def sensed_epochs(self) -> EpochProgress:
        """The epochs of a sensed extent."""
        if self.epochs is None:
            raise TypeError(f"expected a sensed extent, found the pushed extent {self.extent.name!r}")
        return self.epochs

    @property
    def amends(self) -> bool:
        """Whether the corrections of several clock ticks can be applied in one step."""
        return not self.sensed and self.history is None

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(
        self,
        batches: Sequence[Batch],
        corrections: Sequence[PendingCorrection],
        clock: int,
        end: bool = False,
        multi_tick: bool = False,
        amends: bool = False,
    ) -> None:
        """Take deliveries in their order. Clock tick `clock` ends; with `end`, all time is complete then.

        With `multi_tick`, the deliveries are of several clock ticks up to `clock`, each in that of its arrival. None of them is
        late or corrects another one, unless the step also `amends`.
        """
        complete = None if multi_tick else self._complete_at(clock - 1)
        self.step_delta = StepDelta(self.log.none, self.log.next)
        self._batched = BatchedCorrections() if amends else None
        if self.history is not None:
            self.history.begin_step()
        # Deliveries of several clock ticks are in the order of these.
        self._ordered = (
            multi_tick and not (self.sensed or corrections) and all(is_plain(b) and is_on_time(b) for b in batches)
        )
        marks: list[Punctuation] = []
        filtered = [_NONE]
        for batch in batches:
            if is_plain(batch):
                self.insert(batch if multi_tick else replace(batch, arrival=constant(clock, len(batch))), complete)
            else:
                self._take_mixed(batch, clock, complete, multi_tick, marks, filtered)
        for correction in corrections:
            correction(self, clock, complete)
        self.watermark = clock if end else max(self.watermark, self._complete_at(clock))
        inserted, removed, is_new = self.step_delta.net(self.log.live)
        self._pending.apply(inserted, is_new, removed, self._ordered and not len(removed))
        entering = self._enter()
        versions = None
        if self._batched is not None and (applied := self._batched.apply(self, clock, inserted)) is not None:
            versions, inserted, removed = applied
            is_new = constant(True, len(inserted))
        self.clock = clock
        dirty = _NONE
        if self.site_coverage is not None:
            dirty = distinct(np.concatenate([inserted.tick, removed.tick, *filtered]))
            if len(dirty):
                self.site_coverage.tallies.changed(int(dirty[0]))
        change = Change(inserted, is_new, removed, dirty, self.watermark, tuple(marks), versions)
        self.last = IngestStep(change, entering)

    def _take_mixed(
        self,
        batch: Batch,
        clock: int,
        complete: int | None,
        multi_tick: bool,
        marks: list[Punctuation],
        filtered: list[IntArray],
    ) -> None:
        """Take a batch that also has corrections, reports of filtered readings, or marks; add the marks and the reported ticks."""
        reports = batch.weight == 0
        if reports.any():
            filtered.append(self._report(batch.take(reports), clock, complete))
            batch = batch.take(~reports)
        if self._batched is not None and (correcting := find_corrections(batch)).any():
            self._batched.rows.append(batch.take(np.flatnonzero(correcting)))
            batch = batch.take(np.flatnonzero(~correcting))
        for run, values in split_runs(batch):
            marks += [self._mark(value, run, clock, complete) for value in values]
            if run.replaces is not None or (run.weight < 0).any():
                correct_row(self, run, clock)
            else:
                at = run.arrival if multi_tick else constant(clock, len(run))
                self.insert(replace(run, arrival=at), complete)

    def _mark(self, value: object, run: Batch, clock: int, complete: int | None) -> Punctuation:
        """Return a mark that enters just before the first tuple of `run`; after all of its clock tick if there is none."""
        self._mark_count += 1
        source = self.extent.name, self._mark_count
        if not len(run):
            return Punctuation(source, clock, 0, 0, self.log.next, value)
        tick, at = int(run.tick[0]), clock if complete is not None else int(run.arrival[0])
        late = complete is not None and tick <= complete
        if self.epochs is None:
            return Punctuation(source, at if late else min(tick, at), 0, 0, self.log.next - 0.5, value)
        key = run.tick[:1], run.site[:1]
        place = int(self.epochs.positions(*key)[0]) if self.epochs.due(*key)[0] else 0
        return Punctuation(source, at if late else tick, 0, tick + 1 if late else 0, place - 0.5, value)

    def entry_ticks(self) -> Sequence[int]:
        """Return clock ticks in which a tuple may enter its stream without a delivery; the next one is among them."""
        first = self._pending.first
        if first is None:
            return ()
        if self.extent.interval is None or not self.sensed:
            return (first + self.extent.wait,)
        due = grid_at_or_after(self.watermark + 1, self.extent.interval)  # the epoch that holds the watermark back
        return first, due + self.extent.wait

    def is_disturbed_by(
        self, batches: Sequence[Batch], corrections: Sequence[object], clock: int, answers_early: bool = False
    ) -> bool:
        """Return whether deliveries of a clock tick may change an answer that is due before it.

        With `answers_early`, windows are answered before they are complete, so every tuple may.
        """
        if corrections or (answers_early and any(len(batch) for batch in batches)):
            return True
        complete = self._complete_at(clock - 1)
        return any((b.tick <= complete).any() or find_corrections(b).any() for b in batches)

    def find_disturbing(self, batch: Batch) -> BoolArray:
        """Return a mask of the tuples that may change an answer given before the clock tick of their arrival."""
        plain = is_plain(batch)
        if not self.sensed and plain and is_on_time(batch):
            return constant(False, len(batch))
        last = batch.arrival - self.extent.wait if self.extent.wait else batch.arrival  # the last tick that is not late
        found: BoolArray = batch.tick < last if plain else find_corrections(batch) | (batch.tick < last)
        if self.epochs is not None:
            due = self.epochs.due(batch.tick, batch.site)
            if all_true(due):
                return found | self.epochs.is_released(batch.tick, batch.site)
            on_schedule = np.flatnonzero(due)
            found[on_schedule] |= self.epochs.is_released(batch.tick[on_schedule], batch.site[on_schedule])
        return found

    def _complete_at(self, clock: int) -> int:
        """Return the watermark at the end of a clock tick, by the schedule (semantics 1.5)."""
        return self.epochs.watermark(clock) if self.epochs is not None else clock - self.extent.wait

    def _enter(self) -> Tuples | None:
        """Give the next indexes to the tuples whose arrival the watermark has reached; return them in order, or None."""
        entering = self._pending.ready(self.watermark)
        if entering is None:
            return None
        self.log.enter(entering)
        if self.history is not None:
            self.history.enter(entering.ident, self.log.index_of(entering.ident), entering.arrival)
        return entering

    # --- insertions --------------------------------------------------------------------------------------------------

    def insert(self, batch: Batch, complete: int | None) -> None:
        """Take tuples that are delivered in the clock ticks of their `arrival`; those up to tick `complete` are late."""
        left: Batch | None = self._admission.filter_timely(batch)
        while left is not None and len(left):
            taken, left = self._admission.first_of_each_key(left)
            self._take(taken, complete)

    def _report(self, batch: Batch, clock: int, complete: int | None) -> IntArray:
        """Take reports that motes filtered readings, which makes these known (semantics 12.3); return the ticks of new ones.

        A late report is treated like a late reading.
        """
        epochs = self.sensed_epochs
        batch = self._admission.filter_unreported(self._admission.filter_timely(batch), epochs)
        judged = self._lateness.judge(batch.tick, clock, complete)
        known = judged.live
        self.counts["filtered"] += int(known.sum())
        ticks = batch.tick[known]
        self.unfiltered_from = max(self.unfiltered_from, int(ticks.max(initial=-NEVER)) + 1)
        epochs.report(ticks, batch.site[known], np.where(judged.late, clock, batch.tick)[known])
        return ticks

    def _take(self, batch: Batch, complete: int | None) -> None:
        """Take admitted tuples: number, order and log them."""
        count = len(batch)
        if not count:
            return
        tick, clock = batch.tick, batch.arrival
        late_upto: IntArray | int | None = complete
        if self._batched is not None:  # of a pushed extent: each clock tick has its own watermark
            late_upto = clock - 1 - self.extent.wait
        judged = self._lateness.judge(tick, clock, late_upto)
        in_time = self.sensed or self._ordered or all_true(tick <= clock)
        arrival = tick if in_time else np.minimum(tick, clock)
        rank = constant(0, count)
        if any_true(judged.late):
            arrival = np.where(judged.late, clock, arrival)
            rank = np.where(judged.late, tick + 1, 0) if self.sensed else rank
        numbers = cached_arange(count, self.log.next)
        place = numbers if self.epochs is None else self.epochs.positions(tick, batch.site)
        tuples = self.tuple_builder.build(batch, numbers, arrival, rank, place)
        there = tuples.take(judged.there)
        self._admission.count_out_of_range(there)
        self.log.add(tuples, judged.live, judged.there, batch.columns, self._ordered)
        if self.history is not None:
            self.history.add(there)
        if self.epochs is not None:
            self.epochs.take(tick, batch.site, numbers, self.log.is_visible)
        seen = tuples.take(judged.live)
        self.counts["accepted"] += len(seen)
        self.step_delta.insert(seen)
        if self._batched is not None and any_true(judged.late):
            self._batched.late.append(tuples.take(judged.late & judged.live))

    # --- corrections (semantics 12.2) --------------------------------------------------------------------------------

    def delete(self, numbers: IntArray, clock: int) -> None:
        """Take tuples back. The key of a reading is free again (semantics 1.5)."""
        old = self.log.current(numbers)
        self.record_applied(old, constant(-1, len(old)), clock)
        if self.epochs is not None:
            self.epochs.release(old.tick, old.site)
        visible = self._count_corrected(old, clock)
        self.step_delta.remove(old.take(visible))
        if self.history is not None:
            self.history.end(numbers, clock)
        self.log.delete(numbers, visible)

    def revise(self, numbers: IntArray, columns: Mapping[str, Vector], clock: int) -> None:
        """Give tuples other values. `columns` has the new columns by name. Those that have these values already stay as they are."""
        old = self.log.current(numbers)
        new = old.with_columns(columns)
        changes = ~same_values(old, new)
        if not all_true(changes):
            count_nonzero(self.counts, "unchanged", len(numbers) - int(changes.sum()))
            numbers, old, new = numbers[changes], old.take(changes), new.take(changes)
        self.record_applied(new, constant(1, len(new)), clock)
        visible = self._count_corrected(old, clock)
        self.step_delta.remove(old.take(visible))
        self.step_delta.insert(new.take(visible))
        self.log.withhold(old.take(self.log.live[numbers] & ~visible))
        if self.history is not None:
            self.history.correct(new, clock)
        self.log.revise(new)

    def insert_stated(self, batch: Batch, complete: int | None) -> None:
        """Take a tuple that an INSERT states."""
        number = np.array([self.log.next])
        self.insert(batch, complete)
        if self.applied is not None and self.log.next > number[0] and self.log.there[number].all():
            self.applied.append(self._as_batch(self.log.current(number), batch.weight, batch.arrival, None))

    def record_applied(self, tuples: Tuples, weight: IntArray, clock: IntArray | int) -> None:
        """Record how corrections leave tuples, for the archive. A pushed tuple is named by its place among those that were taken."""
        if self.applied is not None and len(tuples):
            replaces = constant(BY_KEY, len(tuples)) if self.sensed else tuples.ident + 1
            self.applied.append(self._as_batch(tuples, weight, np.broadcast_to(clock, len(tuples)), replaces))

    def _as_batch(self, tuples: Tuples, weight: IntArray, clock: IntArray, replaces: IntArray | None) -> Batch:
        columns = {a.name: tuples.columns[a.name] for a in self.extent.schema}
        values = {name: vector.values for name, vector in columns.items()}
        valid = {name: vector.valid for name, vector in columns.items() if vector.valid is not None}
        return Batch(tuples.tick, tuples.site, clock, weight, values, valid, replaces)

    def _count_corrected(self, tuples: Tuples, clock: int) -> BoolArray:
        """Count corrections as those that continuous queries see and those that only history sees; return a mask of the first."""
        visible = self.corrected(tuples, clock)
        count_nonzero(self.counts, "revised", int(visible.sum()))
        count_nonzero(self.counts, "revised in history", len(tuples) - int(visible.sum()))
        return visible

    def corrected(self, tuples: Tuples, clock: IntArray | int) -> BoolArray:
        """Return a mask of the tuples whose correction reaches continuous queries: back to the horizon (semantics 12.2)."""
        return self.log.live[tuples.ident] & self._lateness.corrected(tuples.tick, clock)

    # --- what is kept ------------------------------------------------------------------------------------------------

    def keep_history(self) -> History:
        """Keep the history of the extent from now on, and return it; it begins with the tuples of the log."""
        if self.history is None:
            self.history = History(self.log.none)
            known = self.log.correctable()
            self.history.add(known)
            indexes = self.log.index_of(known.ident)
            entered = np.flatnonzero(indexes)
            entered = entered[np.argsort(indexes[entered])]
            self.history.enter(known.ident[entered], indexes[entered], known.arrival[entered])
            self.history.begin_step()
        return self.history

    @property
    def keys(self) -> int:
        """For how many ticks, at least, a copy or a correction of a tuple finds it."""
        return find_retention(self.extent, self._tick_ms, self.history is not None)

    @property
    def held(self) -> int:
        """The number of tuples held."""
        return self.log.next - self.log.first

    def need(self, before: int) -> None:
        """Promise that a query asks for no earlier tick."""
        self._needed = min(self._needed, before)

    def forget(self) -> None:
        """Drop tuples that no query needs and that no copy or correction can name."""
        needed, self._needed = self._needed, NEVER
        before = min(needed, self.watermark - max(self.horizon, self.extent.wait, self.keys) - 1)
        self._begun = max(self._begun, before)
        self.log.forget(before, self.watermark)
        if self.epochs is not None and self.site_coverage is not None:
            self.epochs.forget(before)
            self.site_coverage.forget(before)

    def forget_history(self, before: int | None) -> None:
        """Drop versions that no scan from a tick on sees; all of the history if no query reads it (None)."""
        if self.history is not None:
            if before is None:
                self.history = None
            else:
                self.history.forget(before)

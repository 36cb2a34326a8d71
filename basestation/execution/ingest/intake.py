"""Intake: what reached the base station of one extent, what became of it, and how far its time is complete.

All queries over an extent share its intake, so all agree on what was late, a duplicate or a conflict (SEMANTICS 1.5).
Every tuple that was taken stays in a log, by its number, for as long as a correction may name it.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from acquisition.extent import Kind
from acquisition.ticks import grid_at_or_after
from basestation.algebra.record import made_often
from basestation.algebra.vector import anything, constant, everything, one, row
from basestation.execution.columns.change import Change
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.punctuation import Mark
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.watermark_buffer import Arrivals
from basestation.execution.ingest.admission import Admission
from basestation.execution.ingest.batch_runs import odd, plain, runs
from basestation.execution.ingest.batched_corrections import Amending
from basestation.execution.ingest.corrections import correct_row
from basestation.execution.ingest.history import History
from basestation.execution.ingest.lateness import Lateness
from basestation.execution.ingest.site_coverage import Census
from basestation.execution.ingest.step_delta import Settling
from basestation.execution.ingest.tuple_builder import Tagging
from basestation.execution.ingest.tuple_log import Log
from basestation.progress.query_scope import ALL
from basestation.progress.watermark import NEVER, Epochs

_NONE = np.empty(0, np.int64)
KEYS_MS = 86_400_000
"""For how long at least a copy of a reading is recognised, and a reading may be named by a correction."""
_FEW = 1024
"""So many tuples are looked at sooner than it is found out whether two arrays are one."""
NAMED = 86_400
"""For how many ticks at least a tuple of a pushed extent, which has no key, may be named by its index."""


@made_often
class Step:
    """What one clock tick did to an extent: the change of its stream, and which tuples entered it now, in order, if any."""

    change: Change
    entering: Tuples | None

    @property
    def entered(self):
        """Their numbers."""
        return _NONE if self.entering is None else self.entering.ident


def at_once(batch):
    """Whether each of its tuples came in the clock tick that it is about, as far as that is known without a look at many."""
    if len(batch) <= _FEW:
        return everything(batch.tick == batch.arrival)
    return one(batch.tick, batch.arrival)


class Intake:
    """One extent."""

    gathers = True  # what comes in many small batches, in time, may be taken in as one

    def __init__(self, extent, begun=0, scheduled=True, tick_ms=1_000):
        """A sensed extent that is not `scheduled` waits for `epochs.schedule`."""
        self.extent = extent
        self.sensed = extent.kind is Kind.SENSED
        self.keys = -(-KEYS_MS // tick_ms) if self.sensed else NAMED
        self.counts = Counter()
        self._lateness = Lateness(extent, self.counts)
        self.horizon = self._lateness.horizon
        self.epochs = Epochs(extent, begun if scheduled else None) if self.sensed else None
        self.clock = begun - 1
        self._begun = begun
        self.watermark = self._complete(begun - 1)
        self.tagging = Tagging(extent)
        self.log = Log(self.tagging.none())
        self._admission = Admission(extent, self.tagging, self.epochs, self.log, self.counts)
        self.census = Census(extent, self.epochs, self.log) if self.sensed else None
        self.history = None  # kept where a query reads it
        self._pending = Arrivals()
        self.last = None  # what the last Step did
        self.unfiltered = -NEVER  # the first tick from which on no mote has filtered anything
        self._needed = NEVER
        self._marked = 0  # how many marks there were
        self.settling = None  # what comes and goes in the Step that is going on
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

    def step(self, batches, corrections, clock, end=False, calm=False, amends=False):
        """Take the deliveries of clock tick `clock` in their order; at the end of a replay all time is complete.

        In `calm` there may be deliveries of many clock ticks up to that one, each in that of its arrival; none is late or corrects
        another then, unless the step `amends`.
        """
        complete = None if calm else self._complete(clock - 1)
        self.settling = Settling(self.log.none, self.log.next)
        self._amending = Amending() if amends else None
        if self.history is not None:
            self.history.begin_step()
        # Of many clock ticks, batches and what is in them come in the order of their clock ticks.
        self._ordered = (
            calm and not (self.sensed or corrections) and all(plain(batch) and at_once(batch) for batch in batches)
        )
        marks = []
        filtered = [_NONE]
        for batch in batches:
            if plain(batch):
                self.insert(batch if calm else replace(batch, arrival=constant(clock, len(batch))), complete)
                continue
            silent = batch.weight == 0
            if silent.any():
                filtered.append(self._report(batch.take(silent), clock, complete))
                batch = batch.take(~silent)
            if self._amending is not None and (amends := odd(batch)).any():
                self._amending.rows.append(batch.take(np.flatnonzero(amends)))
                batch = batch.take(np.flatnonzero(~amends))
            for run, values in runs(batch):
                marks += [self._mark(value, run, clock, complete) for value in values]
                if run.replaces is not None or (run.weight < 0).any():
                    correct_row(self, run, clock)
                else:
                    at = run.arrival if calm else constant(clock, len(run))
                    self.insert(replace(run, arrival=at), complete)
        for correction in corrections:
            correction(self, clock, complete)
        self.watermark = clock if end else max(self.watermark, self._complete(clock))
        come, gone, fresh = self.settling.settled(self.log.live)
        self._pending.apply(come, fresh, gone, self._ordered and not len(gone))
        entering = self._enter()
        versions = self._amending and self._amending.carry_out(self, clock)
        if versions is not None:
            come, gone = self._amending.settled(come)
            fresh = constant(True, len(come))
        self.clock = clock
        touched = distinct(np.concatenate([come.tick, gone.tick, *filtered])) if self.sensed else _NONE
        if len(touched):
            self.census.tallies.changed(int(touched[0]))
        self.last = Step(Change(come, fresh, gone, touched, self.watermark, tuple(marks), versions), entering)

    def _mark(self, value, run, clock, complete):
        """A mark enters just before the first of the tuples that follow it; behind all of its clock tick without any."""
        self._marked += 1
        source = self.extent.name, self._marked
        if not len(run):
            return Mark(source, clock, 0, 0, self.log.next, value)
        tick, at = int(run.tick[0]), clock if complete is not None else int(run.arrival[0])
        late = complete is not None and tick <= complete
        if not self.sensed:
            return Mark(source, at if late else min(tick, at), 0, 0, self.log.next - 0.5, value)
        key = run.tick[:1], run.site[:1]
        place = int(self.epochs.positions(*key)[0]) if self.epochs.due(*key)[0] else 0
        return Mark(source, at if late else tick, 0, tick + 1 if late else 0, place - 0.5, value)

    def entries(self):
        """Clock ticks in which a tuple may enter its stream although nothing is delivered: the next is among them."""
        first = self._pending.first
        if first is None:
            return ()
        if not self.sensed:
            return (first + self.extent.wait,)
        due = grid_at_or_after(self.watermark + 1, self.extent.interval)  # what holds it back, or will
        return first, due + self.extent.wait

    def disturbed_by(self, batches, corrections, clock, hasty=False):
        """Whether deliveries of a clock tick may change what was, or should have been, answered before it.

        `hasty`: answered before all that it covers was complete, so that any tuple may.
        """
        if corrections or (hasty and any(len(batch) for batch in batches)):
            return True
        complete = self._complete(clock - 1)
        return any((b.tick <= complete).any() or odd(b).any() for b in batches)

    def disturbing(self, batch):
        """Which tuples of a batch may change what was answered before the clock tick of their arrival."""
        if not self.sensed and plain(batch) and at_once(batch):
            return constant(False, len(batch))
        last = batch.arrival - self.extent.wait if self.extent.wait else batch.arrival  # that is not late
        found = batch.tick < last if plain(batch) else odd(batch) | (batch.tick < last)
        if self.sensed:
            due = self.epochs.due(batch.tick, batch.site)
            if everything(due):
                return found | self.epochs.free_again(batch.tick, batch.site)
            due = np.flatnonzero(due)
            found[due] |= self.epochs.free_again(batch.tick[due], batch.site[due])
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
        left = self._admission.timely(batch)
        while left is not None and len(left):
            taken, left = self._admission.first_of_each_key(left)
            self._take(taken, complete)

    def _report(self, batch, clock, complete):
        """Take reports that readings were filtered, which are known from now on (12.3); late ones as late readings."""
        batch = self._admission.unheard(self._admission.timely(batch))
        judged = self._lateness.judged(batch.tick, clock, complete)
        known = judged.live
        self.counts["filtered"] += int(known.sum())
        ticks = batch.tick[known]
        self.unfiltered = max(self.unfiltered, int(ticks.max(initial=-NEVER)) + 1)
        self.epochs.report(ticks, batch.site[known], np.where(judged.late, clock, batch.tick)[known])
        return ticks

    def _take(self, batch, complete):
        count = len(batch)
        if not count:
            return
        tick, clock = batch.tick, batch.arrival
        if self._amending is not None:
            complete = self._complete(clock - 1)
        judged = self._lateness.judged(tick, clock, complete)
        in_time = self.sensed or self._ordered or everything(tick <= clock)
        arrival = tick if in_time else np.minimum(tick, clock)
        rank = constant(0, count)
        if anything(judged.late):
            arrival = np.where(judged.late, clock, arrival)
            rank = np.where(judged.late, tick + 1, 0) if self.sensed else rank
        numbers = row(count, self.log.next)
        place = self.epochs.positions(tick, batch.site) if self.sensed else numbers
        tuples = self.tagging.tagged(batch, numbers, arrival, rank, place)
        there = tuples.take(judged.there)
        self._admission.count_out_of_range(there)
        self.log.add(tuples, judged.live, judged.there, batch.columns, self._ordered)
        if self.history is not None:
            self.history.add(there)
        if self.sensed:
            self.epochs.take(tick, batch.site, numbers, self.log.sees)
        seen = tuples.take(judged.live)
        self.counts["accepted"] += len(seen)
        self.settling.come(seen)
        if self._amending is not None and anything(judged.late):
            self._amending.came.append(tuples.take(judged.late & judged.live))

    # --- corrections (12.2) ------------------------------------------------------------------------------------------

    def delete(self, numbers, clock):
        """Take tuples back. The key of a reading is free again (1.5)."""
        self.counts["revised"] += len(numbers)
        old = self.log.held(numbers)
        if self.sensed:
            self.epochs.release(old.tick, old.site)
        said = self.corrected(old, clock)
        self.settling.gone(old.take(said))
        if self.history is not None:
            self.history.end(numbers, clock)
        self.log.delete(numbers, said)

    def revise(self, numbers, columns, clock):
        """Give tuples other values."""
        self.counts["revised"] += len(numbers)
        old = self.log.held(numbers)
        new = replace(old, columns=columns)
        said = self.corrected(old, clock)
        self.settling.gone(old.take(said))
        self.settling.come(new.take(said))
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

    def tally(self, interval, excluded, heeds=ALL):
        """The Tally of all that cover alike; None where what is used depends on the window, not on the tick alone."""
        return self.census.tally(interval, excluded, self.begun, heeds)

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
            self.census.tallies.forget(before)

    def forget_history(self, before):
        """Let go of what no scan from a tick on sees; of all of it where nobody reads it (None)."""
        if self.history is not None:
            if before is None:
                self.history = None
            else:
                self.history.forget(before)

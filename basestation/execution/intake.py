"""Intake: what reached the base station of one extent, what became of it, and how far its time is complete.

All queries over an extent share its intake, so all agree on what was late, a duplicate or a conflict (SEMANTICS 1.5).
Every tuple that was taken stays in a log, by its number, for as long as a correction may name it.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from acquisition.batch import Batch, dtype_of, values_of
from acquisition.extent import Kind, Late
from acquisition.instants import grid_at_or_after
from acquisition.schema import Type
from basestation.algebra.vector import Vector, constant
from basestation.execution.change import Change
from basestation.execution.distinct import distinct
from basestation.execution.history import History
from basestation.execution.marks import Mark
from basestation.execution.numbered import Numbered
from basestation.execution.tuples import Growing, Tuples, equal, joined, no_tuples
from basestation.windows.epochs import NEVER, Epochs
from basestation.windows.tally import Tally

_NONE = np.empty(0, np.int64)
KEYS = 86_400
"""For how many ticks at least a copy of a reading is recognised, and a tuple may be named by a correction."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one clock tick did to an extent: the change of its stream, and which tuples entered it now."""

    change: Change
    entered: np.ndarray  # their numbers, in the order of entry


class Intake:
    """One extent. Tuples are numbered 0, 1, 2, … as they are taken; `index` and `live` are by that number."""

    def __init__(self, extent, begun=0, scheduled=True):
        """A sensed extent that is not `scheduled` waits for `epochs.schedule`."""
        self.extent = extent
        self.sensed = extent.kind is Kind.SENSED
        self._site_attribute, self._time_attribute = extent.site_attribute, extent.time_attribute
        self._no_tuples = no_tuples(self._tuples(_empty_batch(extent)))
        self.counts = Counter()
        self.epochs = Epochs(extent, begun if scheduled else None) if self.sensed else None
        self.clock = begun - 1
        self._begun = begun
        self.horizon = extent.horizon if extent.late is Late.REVISE else 0
        self.watermark = self._complete(begun - 1)
        self._log = Growing()
        self._next = 0
        self._index = Numbered(np.int64)  # 0: not entered yet
        self._live = Numbered(bool)  # seen by continuous queries
        self._there = Numbered(bool)  # not deleted
        self._pending = Growing()
        self._withheld = Growing()  # tuples as streams go on seeing them where a correction was not for streams
        self._tallies = {}
        self.history = None  # kept where a query reads it
        self._entered_count = 0
        self.last = None  # what the last Step did
        self.unfiltered = -NEVER  # the first tick from which on no mote has filtered anything
        self._needed = NEVER
        self._marked = 0  # how many marks there were
        self._began = 0  # the number of the first tuple of this step
        self._come, self._gone = [], []

    @property
    def begun(self):
        """The first tick from which on everything is here."""
        return max(self._begun, self.epochs.begun) if self.sensed else self._begun

    # --- one clock tick ----------------------------------------------------------------------------------------------

    def step(self, batches, corrections, clock, end=False, calm=False):
        """Take the deliveries of clock tick `clock` in their order; at the end of a replay all time is complete.

        In `calm` there may be deliveries of many clock ticks up to that one, each in that of its arrival, and none is late.
        """
        complete = None if calm else self._complete(clock - 1)
        self._began, self._come, self._gone = self._next, [], []
        if self.history is not None:
            self.history.begin_step()
        marks = []
        filtered = [_NONE]
        for batch in batches:
            silent = batch.weight == 0
            if silent.any():
                filtered.append(self._report(batch.take(silent), clock, complete))
                batch = batch.take(~silent)
            for run, values in _runs(batch):
                marks += [self._mark(value, run, clock, complete) for value in values]
                if run.replaces is not None or (run.weight < 0).any():
                    self._correct_row(run, clock)
                else:
                    at = run.arrival if calm else constant(clock, len(run))
                    self.insert(replace(run, arrival=at), complete)
        for correction in corrections:
            correction(self, clock, complete)
        self.clock = clock
        self.watermark = clock if end else max(self.watermark, self._complete(clock))
        come, gone = self._settled()
        entered = self._enter()
        touched = distinct(np.concatenate([come.tick, gone.tick, *filtered])) if self.sensed else _NONE
        if len(touched):
            for tally in self._tallies.values():
                tally.changed(int(touched[0]))
        fresh = ~np.isin(come.ident, gone.ident) if len(gone) else np.ones(len(come), bool)
        self.last = Step(Change(come, fresh, gone, touched, self.watermark, tuple(marks)), entered)

    def _mark(self, value, run, clock, complete):
        """A mark enters just before the first of the tuples that follow it; behind all of its clock tick without any."""
        self._marked += 1
        source = self.extent.name, self._marked
        if not len(run):
            return Mark(source, clock, 0, 0, self._next, value)
        tick, at = int(run.tick[0]), clock if complete is not None else int(run.arrival[0])
        late = complete is not None and tick <= complete
        if not self.sensed:
            return Mark(source, at if late else min(tick, at), 0, 0, self._next - 0.5, value)
        place = int(self.epochs.positions(run.site[:1])[0]) if self.epochs.due(run.tick[:1], run.site[:1])[0] else 0
        return Mark(source, at if late else tick, 0, tick + 1 if late else 0, place - 0.5, value)

    def entries(self):
        """Clock ticks in which a tuple may enter its stream although nothing is delivered: the next is among them."""
        waiting = self._pending.all()
        if waiting is None or not len(waiting):
            return ()
        first = int(waiting.arrival.min())
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
        return any((odd(b) | (b.tick <= complete)).any() for b in batches)

    def disturbing(self, batch):
        """Which tuples of a batch may change what was answered before the clock tick of their arrival."""
        found = odd(batch) | (batch.tick < batch.arrival - self.extent.wait)
        if self.sensed:
            due = np.flatnonzero(self.epochs.due(batch.tick, batch.site))
            found[due] |= self.epochs.free_again(batch.tick[due], batch.site[due])
        return found

    def _complete(self, clock):
        """The watermark at the end of a clock tick, by the schedule (1.5)."""
        return self.epochs.watermark(clock) if self.sensed else clock - self.extent.wait

    def _enter(self):
        """Tuples whose arrival the watermark has reached take the next indexes, in order."""
        waiting = self._pending.all()
        if waiting is None:
            return _NONE
        ready = waiting.arrival <= self.watermark
        if not ready.any():
            return _NONE
        entering = waiting.take(ready).in_order()
        entering = entering.take(self._live[entering.ident])  # one taken back before its entry gets no index
        self._pending.keep(~ready)
        indexes = np.arange(self._entered_count + 1, self._entered_count + 1 + len(entering))
        self._index[entering.ident] = indexes
        self._entered_count += len(entering)
        if self.history is not None:
            self.history.enter(entering.ident, indexes, entering.arrival)
        return entering.ident

    # --- insertions --------------------------------------------------------------------------------------------------

    def insert(self, batch, complete):
        """Take tuples that are delivered in the clock ticks of their `arrival`; those up to tick `complete` are late."""
        self.counts["received"] += len(batch)
        batch = self._timely(batch)
        while batch is not None and len(batch):
            batch = self._take_first_of_each_key(batch, complete)

    def _timely(self, batch):
        """Leave out what is off the schedule, and set aside what is stamped too far ahead."""
        if self.sensed:
            due = self.epochs.due(batch.tick, batch.site)
            self.counts["rejected: off the schedule"] += int(len(batch) - due.sum())
            batch = batch.take(due)
        if self.extent.ahead is not None:
            ahead = batch.tick - batch.arrival > self.extent.ahead
            self.counts["ahead"] += int(ahead.sum())
            batch = batch.take(~ahead)
        return batch

    def _report(self, batch, clock, complete):
        """Take reports that readings were filtered, which are known from now on (12.3); late ones as late readings."""
        self.counts["received"] += len(batch)
        batch = self._timely(batch)
        fresh = self.epochs.unheard(batch.tick, batch.site)
        self.counts["duplicate"] += int((~fresh).sum())
        batch = batch.take(fresh)
        late = constant(False, len(batch)) if complete is None else batch.tick <= complete
        known = ~late
        self.counts["late"] += 0 if self.extent.late is Late.DROP else int(late.sum())
        if self.extent.late is Late.REVISE:
            known |= clock - batch.tick <= self.extent.horizon
            self.counts["beyond horizon"] += int((~known).sum())
        elif self.extent.late is Late.APPEND:
            known |= late
        else:
            self.counts["dropped"] += int(late.sum())
        self.counts["filtered"] += int(known.sum())
        ticks = batch.tick[known]
        self.unfiltered = max(self.unfiltered, int(ticks.max(initial=-NEVER)) + 1)
        self.epochs.report(ticks, batch.site[known], np.where(late, clock, batch.tick)[known])
        return ticks

    def _take_first_of_each_key(self, batch, complete):
        """Take the tuples whose key is not held; what is left of the batch, if anything, are more copies of keys taken now."""
        again = None
        tuples = self._tuples(batch)
        if self.sensed:
            holder = self.epochs.holders(batch.tick, batch.site)
            held = holder >= 0
            if held.any():
                self._count_copies(tuples.take(held), holder[held])
                batch, tuples = batch.take(~held), tuples.take(~held)
            first = self.epochs.first_of_each(batch.tick, batch.site)
            if not first.all():
                again = batch.take(~first)
                tuples = tuples.take(first)
        self._take(tuples, complete)
        return again

    def _count_copies(self, tuples, holder):
        there = self._rows(holder)
        same = np.ones(len(tuples), bool)
        for name, vector in tuples.columns.items():
            same &= equal(vector, there.columns[name])
        self.counts["duplicate"] += int(same.sum())
        self.counts["conflict"] += int((~same).sum())

    def _take(self, tuples, complete):
        count = len(tuples)
        if not count:
            return
        tick, clock = tuples.tick, tuples.arrival  # so far, when it was delivered
        nowhere = constant(False, count)
        late = nowhere if complete is None else tick <= complete
        arrival = tick if self.sensed or (tick <= clock).all() else np.minimum(tick, clock)
        rank = constant(0, count)
        if late.any():
            arrival = np.where(late, clock, arrival)
            rank = np.where(late, tick + 1, 0) if self.sensed else rank
        numbers, new = np.arange(self._next, self._next + count), slice(self._next, self._next + count)
        place = self.epochs.positions(tuples.site) if self.sensed else numbers
        tuples = replace(tuples, ident=numbers, arrival=arrival, rank=rank, place=place)
        beyond = dropped = nowhere
        if self.extent.late is Late.REVISE:
            if late.any():
                beyond = late & (clock - tick > self.extent.horizon)
            self.counts["beyond horizon"] += int(beyond.sum())
        elif self.extent.late is Late.DROP:
            dropped = late
            self.counts["dropped"] += int(dropped.sum())
        live = ~(beyond | dropped)
        self.counts["late"] += int((late & ~dropped).sum())
        self.counts["accepted"] += int(live.sum())
        self._count_out_of_range(tuples.take(~dropped))
        self._log.add(tuples)
        self._next += count
        self._index[new] = 0
        self._live[new] = live
        self._there[new] = ~dropped  # what was dropped is in no archive, and cannot be corrected
        if self.history is not None:
            self.history.add(tuples.take(~dropped))
        if self.sensed:
            self.epochs.take(tuples.tick, tuples.site, numbers, self._live)
        seen = tuples.take(live)
        self._pending.add(seen)
        self._come.append(seen)

    def _count_out_of_range(self, tuples):
        """A value outside the range of its attribute is delivered and counted, not hidden (13)."""
        for attribute in self.extent.schema:
            if attribute.range is not None:
                vector = tuples.columns[attribute.name]
                values = values_of(vector.values, attribute.scale)
                outside = ((values < attribute.range[0]) | (values > attribute.range[1])) & vector.there
                self.counts["out of range"] += int(outside.sum())

    def _tuples(self, batch):
        """A batch as Tuples under the names of the attributes; what is known without the sensor is filled in."""
        columns = {}
        for attribute in self.extent.schema:
            if attribute is self._site_attribute:
                columns[attribute.name] = Vector(batch.site)
            elif attribute is self._time_attribute:
                columns[attribute.name] = Vector(batch.tick)
            elif attribute.name in batch.columns:
                mask = batch.valid.get(attribute.name)
                mask = None if mask is None or mask.all() else mask
                columns[attribute.name] = Vector(batch.columns[attribute.name], mask)
            else:
                columns[attribute.name] = _missing(len(batch), attribute)
        none = constant(0, len(batch))
        append = constant(self.extent.late is Late.APPEND, len(batch))
        return Tuples(none, batch.tick, batch.arrival, none, none, none, batch.site, append, columns)

    # --- corrections (12.2) ------------------------------------------------------------------------------------------

    def _correct_row(self, row, clock):
        """One row that takes a tuple back or replaces it, named by its index or its key."""
        self.counts["received"] += 1
        number = self._named(row)
        if number is None:
            self.counts["rejected: no such tuple"] += 1
            return
        if row.weight[0] < 0:
            self.delete(np.array([number]), clock)
            return
        old = self._rows(np.array([number]))
        new = self._tuples(replace(row, tick=old.tick, site=old.site))
        self.revise(np.array([number]), new.columns, clock)

    def _named(self, row):
        """The number of the tuple that a correction names; None if there is none."""
        if row.replaces is not None and row.replaces[0]:
            number = self._index.find(row.replaces[0])
        elif self.sensed and self.epochs.due(row.tick, row.site).all():
            number = int(self.epochs.holders(row.tick, row.site)[0])
        else:
            number = -1
        return number if number >= self._there.base and self._there[number] else None

    def known(self):
        """All tuples that corrections may name, as they are now; None where there never were any."""
        log = self._log.all()
        return None if log is None else log.take(self._there[log.ident])

    def living(self):
        """All tuples that continuous queries may see, as they are now."""
        log = self._log.all()
        return self._none() if log is None else self._as_said(log.take(self._live[log.ident]))

    def rows(self, numbers):
        """The tuples of these numbers as continuous queries see them now."""
        return self._as_said(self._rows(numbers)) if len(numbers) else self._none()

    def rows_ever(self):
        """(numbers, arrivals) of all tuples of the log that entered, in the order of their indexes."""
        log = self._log.all()
        if log is None:
            return _NONE, _NONE
        index = self._index[log.ident]
        order = np.argsort(index)[int((index == 0).sum()) :]
        return log.ident[order], log.arrival[order]

    def _as_said(self, tuples):
        """With the values that streams go on seeing."""
        held = self._withheld.all()
        if held is None or not len(held):
            return tuples
        which = np.isin(tuples.ident, held.ident)
        place = np.searchsorted(held.ident, tuples.ident[which], sorter=(order := np.argsort(held.ident)))
        said = held.take(order[place])
        columns = {name: _with(v, which, said.columns[name]) for name, v in tuples.columns.items()}
        return tuples.with_columns(columns)

    def _none(self):
        return self._no_tuples

    def keep_history(self):
        """The History of the extent, from now on; of what was before, what the log has."""
        if self.history is None:
            self.history = History(self._none())
            known = self.known()
            if known is not None:
                self.history.add(known)
                indexes = self._index[known.ident]
                entered = np.flatnonzero(indexes)
                entered = entered[np.argsort(indexes[entered])]
                self.history.enter(known.ident[entered], indexes[entered], known.arrival[entered])
            self.history.begin_step()
        return self.history

    def known_sites(self, ticks):
        """Which sites' readings of due ticks are known: a row for each tick."""
        return self._seen_sites(ticks) | (self.epochs.filtered_at(ticks) != NEVER)

    def _seen_sites(self, ticks):
        seen = self.epochs.seen_at(ticks)
        return (seen >= self._live.base) & self._live[np.maximum(seen, self._live.base)]

    def known_at(self, tick, at):
        """Which sites' readings of a due tick are known; for a `late append` extent, by the tick `at` of a window."""
        ticks = np.array([tick])
        if self.extent.late is not Late.APPEND:
            return self.known_sites(ticks)[0]
        known = self._seen_sites(ticks)[0]
        if known.any():
            log = self._log.all()
            known[known] = log.arrival[self.epochs.seen_at(ticks)[0][known] - self._log_base] <= at
        reported = self.epochs.filtered_at(ticks)[0]
        return known | ((reported <= at) & (reported != NEVER))

    def tally(self, interval, excluded):
        """The Tally of all that cover alike; None where what is used depends on the window, not on the tick alone."""
        if self.extent.late is Late.APPEND:
            return None
        key = interval, excluded.tobytes()
        if key not in self._tallies:
            self._tallies[key] = Tally(self, interval, excluded)
        return self._tallies[key]

    @property
    def first(self):
        """The number of the first tuple that is still in the log."""
        return self._live.base

    def index_of(self, numbers):
        return self._index[numbers]

    def delete(self, numbers, clock):
        """Take tuples back. The key of a reading is free again (1.5)."""
        self.counts["revised"] += len(numbers)
        old = self._rows(numbers)
        if self.sensed:
            self.epochs.release(old.tick, old.site)
        said = self._corrected(old, clock)
        self._gone.append(old.take(said))
        if self.history is not None:
            self.history.end(numbers, clock)
        self._live[numbers[said]] = False
        self._there[numbers] = False

    def revise(self, numbers, columns, clock):
        """Give tuples other values."""
        self.counts["revised"] += len(numbers)
        old = self._rows(numbers)
        new = replace(old, columns=columns)
        said = self._corrected(old, clock)
        self._gone.append(old.take(said))
        self._come.append(new.take(said))
        self._withhold(old.take(~said & self._live[numbers]))
        if self.history is not None:
            self.history.correct(new, clock)
        log = self._log.all()
        changed = {name: _with(log.columns[name], numbers - self._log_base, v) for name, v in columns.items()}
        self._put(replace(log, columns=changed))

    def _withhold(self, tuples):
        """Streams go on seeing these values. What is not corrected once is never corrected again."""
        held = self._withheld.all()
        self._withheld.add(tuples if held is None else tuples.take(~np.isin(tuples.ident, held.ident)))

    def _corrected(self, tuples, clock):
        """Which of them continuous queries are corrected about: back to the horizon, by tick (12.2)."""
        if self.extent.late is not Late.REVISE:
            return np.zeros(len(tuples), bool)
        return self._live[tuples.ident] & (clock - tuples.tick <= self.extent.horizon)

    def _put(self, log):
        self._log = Growing()
        self._log.add(log)

    def _rows(self, numbers):
        return self._log.all().take(numbers - self._log_base)

    # --- what came of it ---------------------------------------------------------------------------------------------

    def _settled(self):
        """What came and what is gone in this step: of each tuple the values it has now, and those it had before."""
        come, gone = joined(self._come or [self._no_tuples]), joined(self._gone or [self._no_tuples])
        if len(gone):
            come = come.take(_last_of_each(come.ident))
            come = come.take(self._live[come.ident])
            gone = gone.take(_first_of_each(gone.ident))
            gone = gone.take(gone.ident < self._began)
        return come, gone

    @property
    def _log_base(self):
        return self._log.all().ident[0]

    def need(self, before):
        """A query asks for nothing before a tick."""
        self._needed = min(self._needed, before)

    def forget(self):
        """Let go of tuples that no query needs, and that no copy or correction can name any more."""
        needed, self._needed = self._needed, NEVER
        before = min(needed, self.watermark - max(self.horizon, self.extent.wait, KEYS) - 1)
        self._begun = max(self._begun, before)
        log = self._log.all()
        if log is None:
            return
        young = np.flatnonzero((log.tick >= before) | ~self._done(log))
        first = int(young[0]) if len(young) else len(log)
        if first:
            number = int(log.ident[0]) + first
            self._log.keep(np.arange(len(log)) >= first)
            if (held := self._withheld.all()) is not None:
                self._withheld.keep(held.ident >= number)
            for by_number in (self._index, self._live, self._there):
                by_number.drop_before(number)
        if self.sensed:
            self.epochs.forget(before)
            for tally in self._tallies.values():
                tally.forget(before)

    def forget_history(self, before):
        """Let go of what no scan from a tick on sees; of all of it where nobody reads it (None)."""
        if self.history is not None:
            if before is None:
                self.history = None
            else:
                self.history.forget(before)

    def _done(self, log):
        """Tuples that wait for nothing: entered, or never to enter."""
        return (self._index[log.ident] > 0) | ~self._live[log.ident]


def odd(batch):
    """Which tuples take one back or replace one."""
    return batch.weight < 0 if batch.replaces is None else (batch.weight < 0) | (batch.replaces != 0)


def _runs(batch):
    """A batch as runs of plain insertions and single corrections, in order, each with the marks that stand before it."""
    single = odd(batch)
    if not single.any() and not batch.marks:
        return [(replace(batch, replaces=None), ())] if len(batch) else []
    behind = (np.flatnonzero(single) + 1).tolist()
    edges = sorted({0, len(batch), *np.flatnonzero(single).tolist(), *behind, *(at for at, _ in batch.marks)})
    plain = replace(batch, marks=())
    runs = [plain.take(slice(a, b)) for a, b in pairwise([*edges, len(batch)])]
    values = [[value for at, value in batch.marks if at == edge] for edge in edges]
    runs = [run if len(run) and single[a] else replace(run, replaces=None) for run, a in zip(runs, edges, strict=True)]
    return list(zip(runs, values, strict=True))


def _last_of_each(idents):
    mask = np.zeros(len(idents), bool)
    mask[len(idents) - 1 - np.unique(idents[::-1], return_index=True)[1]] = True
    return mask


def _first_of_each(idents):
    mask = np.zeros(len(idents), bool)
    mask[np.unique(idents, return_index=True)[1]] = True
    return mask


def _with(vector, positions, new):
    """A Vector with some entries changed; the old one stays as it was."""
    values, valid = vector.values.copy(), vector.there.copy()
    values[positions], valid[positions] = new.values, new.there
    return Vector(values, None if valid.all() else valid)


def _missing(length, attribute):
    blank = "" if attribute.type is Type.STRING else 0
    return Vector(np.full(length, blank, dtype_of(attribute)), np.zeros(length, bool))


def _empty_batch(extent):
    none = np.empty(0, np.int64)
    return Batch(none, none, none, none, {})

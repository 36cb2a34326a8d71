"""Run: the deliveries of all inputs go to the engine clock tick by clock tick, and what it says comes back.

A clock tick is handed over whole and then ended; ticks in which nothing happens are skipped, the engine answers what
became due in them. What is delivered behind the end is not delivered.
"""

import numpy as np

from basestation.execution.engine import Engine, NotYet, TooEarly
from basestation.language import syntax
from basestation.language.diagnostics import Refused
from basestation.results.shape import shape_of


class NotExecutable(Refused):
    """Valid statements that this version cannot execute; the diagnostics point at them."""


class Replay:
    """One pass over a recording. Statements are added here, so that one that cannot be executed is known at once."""

    def __init__(self, recording, statements, until=None, every_tick=False):
        """`every_tick` ends every clock tick one by one, which tells when each update is given and changes nothing else."""
        self.every_tick = every_tick
        self.recording = recording
        clocks = [given.clock for given in statements if given.clock]
        self.until = max([recording.end(), *clocks]) if until is None else until
        self.queries = [shape_of(given.number, given.bound) for given in statements if given.query]
        self.engine = Engine(recording.catalog)
        for name, versions in recording.versions.items():
            for tick, columns in versions:
                self.engine.load(name, tick, columns)
        self.clock = -1  # the last clock tick that ended
        self._later = {}  # clock tick -> statements given then
        self._add([given for given in statements if given.query and not given.clock])
        for given in statements:
            if given.clock or not given.query:
                clock = self.until if given.clock is None else given.clock
                self._later.setdefault(clock, []).append(given)
                if given.query:
                    self.engine.expect(given.number, given.bound)

    def _add(self, statements):
        """Queries begin with the coming clock tick."""
        refused = []
        for given in statements:
            if isinstance(given.bound.statement, syntax.Explain):
                refused.append(given.later("EXPLAIN in a replay"))
                continue
            try:
                self.engine.add(given.number, given.bound)
            except NotYet as why:
                refused.append(given.later(why.what))
            except TooEarly as why:
                raise Refused([given.too_early(why)]) from None
        if refused:
            raise NotExecutable(refused)

    def updates(self):
        """Lists of updates, each with those of one clock tick; ends with the end of the replay."""
        deliveries = [_Deliveries(name, batch, self.until) for name, batch in self.recording.batches.items()]
        # A query begins with the clock tick behind the last one that ended, so the one before it is ended too.
        asked = [clock - 1 for clock, given in self._later.items() if any(each.query for each in given)]
        moments = np.array([*self._later, *asked], np.int64)
        ticks = np.unique(np.concatenate([moments, *(d.ticks for d in deliveries)]))
        ticks = ticks[ticks <= self.until].tolist()
        for clock in range(self.until + 1) if self.every_tick else ticks:
            for each in deliveries:
                each.deliver(self.engine, clock)
            for given in self._later.get(clock, ()):
                if given.query:
                    self._add([given])
                else:
                    self._correct(given)
            if clock < self.until:
                self.clock = clock
                yield self.engine.on_clock(clock)
        self.clock = self.until
        yield self.engine.finish(self.until)

    def _correct(self, given):
        try:
            self.engine.correct(given.bound)
        except NotYet as why:
            raise NotExecutable([given.later(why.what)]) from None

    def ledger(self):
        return self.engine.ledger()


class _Deliveries:
    """The tuples of one extent in the order of their delivery, and where each clock tick begins in them."""

    def __init__(self, name, batch, until):
        if len(batch) and (np.diff(batch.arrival) < 0).any():
            batch = batch.take(np.argsort(batch.arrival, kind="stable"))
        self.name = name
        self.batch = batch.take(slice(0, int(np.searchsorted(batch.arrival, until, "right"))))
        self.ticks, starts = np.unique(self.batch.arrival, return_index=True)
        self._edges = [*starts.tolist(), len(self.batch)]
        self._next = 0

    def deliver(self, engine, clock):
        """Hand over what was delivered in a clock tick, which come in order."""
        if self._next < len(self.ticks) and self.ticks[self._next] == clock:
            first, last = self._edges[self._next : self._next + 2]
            engine.deliver(self.name, self.batch.take(slice(first, last)))
            self._next += 1

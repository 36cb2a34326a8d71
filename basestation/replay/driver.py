"""Run: the deliveries of all inputs go to the engine, and what it says comes back.

The engine is handed many clock ticks at once; they end one by one only where somebody wants to see that.
"""

import numpy as np

from basestation.execution.engine import Engine, StartBeforeRecordError, UnsupportedPlanError
from basestation.language import syntax
from basestation.language.diagnostics import DiagnosticError
from basestation.results.schema import schema_of
from basestation.updates.update import split_by_query

AT_ONCE = 65_536
"""About how many tuples are handed over before what they give is asked for."""
_NO_TICKS = np.empty(0, np.int64)


class NotExecutableError(DiagnosticError):
    """Valid statements that this version cannot execute; the diagnostics point at them."""


class Replay:
    """One pass over a recording. Statements are added here, so that one that cannot be executed is known at once."""

    def __init__(self, recording, statements, until=None, every_tick=False, at_once=AT_ONCE):
        """`every_tick` ends every clock tick one by one, which tells when each update is given and changes nothing else.

        Otherwise the engine is handed about `is_on_time` tuples at a time.
        """
        self.every_tick, self._at_once = every_tick, at_once
        self.recording = recording
        clocks = [given.clock for given in statements if given.clock]
        self.until = max([recording.end(), *clocks]) if until is None else until
        self.queries = [schema_of(given.number, given.bound) for given in statements if given.query]
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
                    self.engine.announce(given.number, given.bound)

    def _add(self, statements):
        """Queries begin with the coming clock tick."""
        refused = []
        for given in statements:
            if isinstance(given.bound.statement, syntax.Explain):
                refused.append(given.not_executable_yet("EXPLAIN in a replay"))
                continue
            try:
                self.engine.add(given.number, given.bound)
            except UnsupportedPlanError as why:
                refused.append(given.not_executable_yet(why.what))
            except StartBeforeRecordError as why:
                raise DiagnosticError([given.too_early(why)]) from None
        if refused:
            raise NotExecutableError(refused)

    def updates(self):
        """Lists of updates, each with those of some clock ticks; ends with the end of the replay."""
        deliveries = [_Deliveries(name, batch, self.until) for name, batch in self.recording.batches.items()]
        for clock in range(self.until + 1) if self.every_tick else self._ends(deliveries):
            for each in deliveries:
                each.deliver(self.engine, clock)
            for given in self._later.get(clock, ()):
                if given.query:
                    self._add([given])
                else:
                    self._correct(given)
            if clock < self.until:
                self.clock = clock
                yield list(split_by_query(self.engine.on_clock(clock)))
        self.clock = self.until
        yield list(split_by_query(self.engine.finish(self.until)))

    def _ends(self, deliveries):
        """The clock ticks at which statements are given, and enough others that not too much is handed over at once."""
        # A query begins with the clock tick behind the last one that ended, so the one before it is ended too.
        asked = [clock - 1 for clock, given in self._later.items() if any(each.query for each in given)]
        arrivals = np.sort(np.concatenate([_NO_TICKS, *(each.arrivals for each in deliveries)]))
        enough = arrivals[self._at_once - 1 :: self._at_once].tolist()
        ends = np.unique(np.array([*self._later, *asked, *enough, self.until], np.int64))
        return ends[(ends >= 0) & (ends <= self.until)].tolist()

    def _correct(self, given):
        try:
            self.engine.correct(given.bound)
        except UnsupportedPlanError as why:
            raise NotExecutableError([given.not_executable_yet(why.what)]) from None

    def ledger(self):
        return self.engine.ledger()


class _Deliveries:
    """The tuples of one extent in the order of their delivery."""

    def __init__(self, name, batch, until):
        if len(batch) and (np.diff(batch.arrival) < 0).any():
            batch = batch.take(np.argsort(batch.arrival, kind="stable"))
        self._name = name
        self._batch = batch.take(slice(0, int(np.searchsorted(batch.arrival, until, "right"))))
        self._next = 0

    @property
    def arrivals(self):
        return self._batch.arrival

    def deliver(self, engine, clock):
        """Hand over what was delivered up to a clock tick and was not before."""
        first, self._next = self._next, int(np.searchsorted(self.arrivals, clock, "right"))
        if first < self._next:
            engine.deliver(self._name, self._batch.take(slice(first, self._next)))

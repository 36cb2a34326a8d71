"""The driver of a replay: feeds the recorded deliveries to the engine and collects its updates.

The engine takes many clock ticks at once. They end one by one only with `every_tick`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch
from acquisition.ticks import grid_at_or_after
from basestation.algebra.node import walk
from basestation.algebra.window import TimeWindow
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import StartBeforeRecordError, UnsupportedPlanError
from basestation.language import syntax
from basestation.planner.plan import Plan
from basestation.replay.inputs import Recording
from basestation.replay.recorded_stream import RecordedStream
from basestation.replay.statements import SubmittedStatement
from basestation.results.schema import schema_of
from basestation.updates.update import Update, split_by_query
from gateway.diagnostics import DiagnosticError

AT_ONCE = 65_536
"""About how many tuples the engine takes before the driver collects the updates."""
_NO_TICKS = np.empty(0, np.int64)


class NotExecutableError(DiagnosticError):
    """Valid statements that this version cannot execute; each diagnostic points at one."""


class Replay:
    """One pass over a recording. The constructor submits the statements, so it raises what is wrong with them."""

    def __init__(
        self,
        recording: Recording,
        statements: Sequence[SubmittedStatement],
        until: int | None = None,
        every_tick: bool = False,
        at_once: int = AT_ONCE,
        begin: int = 0,
        ask: int | None = None,
    ) -> None:
        """`every_tick` ends the clock ticks one by one, which shows when the engine emits each update and changes nothing else.

        Otherwise the engine takes about `at_once` tuples at a time. `until` is the last clock tick; default: the last
        recorded or submitted one. `begin` is the first clock tick: earlier deliveries are left out. Raises NotExecutableError
        and DiagnosticError. One-off queries without a clock tick are submitted at `ask`; default: at the begin.
        """
        self.every_tick, self._at_once = every_tick, at_once
        self.recording = recording
        statements = [_asked_at(given, ask) for given in statements]
        clocks = [given.clock for given in statements if given.clock]
        self.until = max([recording.end(), *clocks]) if until is None else until
        self.queries = [schema_of(given.number, given.bound) for given in statements if isinstance(given.bound, Plan)]
        self.begin = min(begin, self.until)
        self.engine = Engine(recording.catalog, self.begin)
        for name, versions in recording.versions.items():
            for tick, columns in versions:
                self.engine.load(name, tick, columns)
        self.clock = self.begin - 1  # the last clock tick that has ended
        self._later: dict[int, list[SubmittedStatement]] = {}  # by the clock tick of their submission
        at_begin = [given for given in statements if given.is_query and (given.clock or 0) <= self.begin]
        self._at_begin = [given for given in at_begin if not given.plan.is_one_off]
        self._add(at_begin)
        for given in statements:
            if given not in at_begin:
                clock = self.until if given.clock is None else max(given.clock, self.begin)
                self._later.setdefault(clock, []).append(given)
                if given.is_query:
                    self.engine.announce(given.number, given.plan)

    def _add(self, statements: Iterable[SubmittedStatement]) -> None:
        """Submit queries, which begin with the next clock tick."""
        refused = []
        for given in statements:
            if isinstance(given.bound.statement, syntax.Explain):
                refused.append(given.not_executable_yet("EXPLAIN in a replay"))
                continue
            try:
                self.engine.add(given.number, given.plan)
            except UnsupportedPlanError as why:
                refused.append(given.not_executable_yet(why.what))
            except StartBeforeRecordError as why:
                raise DiagnosticError([given.starts_too_early(why)]) from None
        if refused:
            raise NotExecutableError(refused)

    def updates(self) -> Iterator[list[Update]]:
        """Lists of updates, each of some clock ticks, until the end of the replay. Raises InputError for wrong data."""
        deliveries = [
            _Deliveries(name, stream, self.begin, self.until) for name, stream in self.recording.streams.items()
        ]
        for clock in range(self.begin, self.until + 1) if self.every_tick else self._ends(deliveries):
            for each in deliveries:
                each.deliver(self.engine, clock)
            for given in self._later.get(clock, ()):
                if given.is_query:
                    self._add([given])
                else:
                    self._correct(given)
            if clock < self.until:
                self.clock = clock
                yield list(split_by_query(self.engine.on_clock(clock)))
        self.clock = self.until
        yield list(split_by_query(self.engine.finish(self.until)))

    def _ends(self, deliveries: Sequence["_Deliveries"]) -> Iterator[int]:
        """The clock ticks to end: those of statements, and enough others to limit the tuples that the engine takes at once."""
        # A query begins with the clock tick after the last one that ended, so the tick before its submission ends too.
        before = [clock - 1 for clock, given in self._later.items() if any(each.is_query for each in given)]
        asked = sorted({clock for clock in (*self._later, *before, self.until) if self.begin <= clock <= self.until})
        ended = self.begin - 1
        for last in asked:
            while ended < last:
                ended = min(last, self._find_end(deliveries))
                yield ended

    def _find_end(self, deliveries: Sequence["_Deliveries"]) -> int:
        """The clock tick in which the last of the tuples comes that the engine takes at once; the last one if fewer come."""
        for each in deliveries:
            each.read(self._at_once)
        waiting = [each.arrivals[: self._at_once] for each in deliveries]
        arrivals = np.concatenate([_NO_TICKS, *waiting])
        if len(arrivals) < self._at_once:
            return self.until
        return int(np.partition(arrivals, self._at_once - 1)[self._at_once - 1])

    def _correct(self, given: SubmittedStatement) -> None:
        try:
            self.engine.correct(given.correction)
        except UnsupportedPlanError as why:
            raise NotExecutableError([given.not_executable_yet(why.what)]) from None

    def first_full_windows(self) -> dict[int, int]:
        """By query, the tick from which on its windows of time no longer reach back before the data.

        Queries without a window that does are left out.
        """
        found: dict[int, int] = {}
        for given in self._at_begin:
            for window in walk(given.plan.root):
                if (
                    isinstance(window, TimeWindow)
                    and grid_at_or_after(self.begin, window.slide) + window.begin < self.begin
                ):
                    found[given.number] = max(found.get(given.number, 0), self.begin - window.begin)
        return found

    def ledger(self) -> Mapping[str, Mapping[str, int]]:
        """By extent, how many deliveries met each fate."""
        return self.engine.ledger()


def _asked_at(given: SubmittedStatement, ask: int | None) -> SubmittedStatement:
    """The statement, with the clock tick of one-off queries if it is one without a clock tick."""
    if given.clock is not None or not given.is_query or not given.plan.is_one_off:
        return given
    return given if isinstance(given.bound.statement, syntax.Explain) else replace(given, clock=ask)


class _Deliveries:
    """The tuples of one extent in order of delivery, read as far as they are needed."""

    def __init__(self, name: str, stream: RecordedStream, begin: int, until: int) -> None:
        self._name, self._begin, self._until = name, begin, until
        self._blocks: Iterator[Batch] | None = stream.deliveries()
        self._parts: list[Batch] = []  # what was read and is not delivered
        self._next = 0  # where in the first of them

    @property
    def arrivals(self) -> IntArray:
        """The clock ticks of the tuples that were read and are not delivered."""
        arrivals = [batch.arrival for batch in self._parts]
        return np.concatenate([_NO_TICKS, *arrivals])[self._next :]

    def read(self, count: int) -> None:
        """Read until `count` tuples wait, or all there are."""
        while self._blocks is not None and sum(map(len, self._parts)) - self._next < count:
            self._read_block()

    def _read_until(self, clock: int) -> None:
        """Read until all tuples of a clock tick are there."""
        while self._blocks is not None and not (self._parts and self._parts[-1].arrival[-1] > clock):
            self._read_block()

    def _read_block(self) -> None:
        batch = None if self._blocks is None else next(self._blocks, None)
        if batch is None or (len(batch) and batch.arrival[0] > self._until):
            self._blocks = None
            return
        early = int(np.searchsorted(batch.arrival, self._begin))
        if early < len(batch):
            self._parts.append(batch.take(slice(early, None)) if early else batch)

    def deliver(self, engine: Engine, clock: int) -> None:
        """Deliver the next tuples, up to and including those of a clock tick."""
        self._read_until(clock)
        while self._parts:
            batch = self._parts[0]
            first, end = self._next, int(np.searchsorted(batch.arrival, clock, "right"))
            if first < end:
                engine.deliver(self._name, batch if end - first == len(batch) else batch.take(slice(first, end)))
            self._next = end
            if end < len(batch):
                return
            del self._parts[0]
            self._next = 0

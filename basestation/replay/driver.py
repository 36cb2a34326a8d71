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
from basestation.replay.quiet_stretches import MANY_STEPS, QuietStretch, count_steps, find_quiet_stretches
from basestation.replay.recorded_stream import RecordedStream
from basestation.replay.recorded_ticks import find_gaps
from basestation.replay.restored_ticks import shorten_plan
from basestation.replay.shortened_clock import ShortenedClock, SkippedAnswers
from basestation.replay.shown_updates import ShownUpdates
from basestation.replay.statements import SubmittedStatement
from basestation.results.schema import schema_of
from basestation.updates.update import SharedUpdate, Update, split_by_query
from gateway.diagnostics import DiagnosticError

SKIP_FROM = 10_000
"""Quiet stretches in which a query has this many answers are skipped by default: more than people read."""
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
        skip_from: int | None = None,
    ) -> None:
        """`every_tick` ends the clock ticks one by one, which shows when the engine emits each update and changes nothing else.

        Otherwise the engine takes about `at_once` tuples at a time. `until` is the last clock tick; default: the last
        recorded or submitted one. `begin` is the first clock tick: earlier deliveries are left out. Raises NotExecutableError
        and DiagnosticError. One-off queries without a clock tick are submitted at `ask`; default: at the begin.
        Answers in quiet stretches with at least `skip_from` of them are skipped and counted; None: every answer is given.
        """
        self.every_tick, self._at_once = every_tick, at_once
        self.recording = recording
        statements = [_asked_at(given, ask) for given in statements]
        clocks = [given.clock for given in statements if given.clock]
        self.until = max([recording.end(), *clocks]) if until is None else until
        self.queries = [schema_of(given.number, given.bound) for given in statements if isinstance(given.bound, Plan)]
        self.begin = min(begin, self.until)
        self.steps_without_data = 0
        """How many windows or epochs are computed in a stretch without data that cannot be skipped; 0 if they are few."""
        self._short = ShortenedClock(self._find_stretches(statements, skip_from))
        self._shown = ShownUpdates(self._short)
        self.skipped: list[SkippedAnswers] = []
        """The answers that were skipped before the updates that were given last; the caller clears it."""
        self.engine = Engine(recording.catalog, self.begin)
        for name, versions in recording.versions.items():
            for tick, columns in versions:
                self.engine.load(name, self._short.shorten_one(tick), columns)
        self.clock = self.begin - 1  # the last clock tick that has ended
        self._later: dict[int, list[SubmittedStatement]] = {}  # by the clock tick of their submission
        at_begin = [given for given in statements if given.is_query and (given.clock or 0) <= self.begin]
        self._at_begin = [given for given in at_begin if not given.plan.is_one_off]
        self._add(at_begin)
        for given in statements:
            if given not in at_begin:
                self._later.setdefault(self._short.shorten_one(self._submission(given)), []).append(given)
                if given.is_query:
                    self.engine.announce(given.number, given.plan)

    def _submission(self, given: SubmittedStatement) -> int:
        """The clock tick in which a statement is submitted."""
        if given.is_query and not given.clock:
            return self.begin
        return self.until if given.clock is None else max(given.clock, self.begin)

    def _find_stretches(self, statements: Sequence[SubmittedStatement], skip_from: int | None) -> list[QuietStretch]:
        """The quiet stretches that the replay skips."""
        if skip_from is None or self.every_tick or not all(given.is_query for given in statements):
            return []
        submitted = [self._submission(given) for given in statements]
        ticks = [tick for versions in self.recording.versions.values() for tick, _ in versions]
        streams = self.recording.streams.values()
        intervals = [interval for stream in streams for interval in stream.ticks]
        intervals += [(tick, tick) for tick in (*ticks, *submitted, *self._edges(statements))]
        gaps = find_gaps(intervals, self.begin, self.until)
        at_begin = [given.plan for given, clock in zip(statements, submitted, strict=True) if clock <= self.begin]
        later = [given.plan for given, clock in zip(statements, submitted, strict=True) if clock > self.begin]
        extents, tick_ms = [stream.extent for stream in streams], self.recording.catalog.tick_ms
        found = find_quiet_stretches(gaps, at_begin, later, extents, tick_ms, skip_from)
        steps = 0 if found else count_steps(gaps, [*at_begin, *later])
        self.steps_without_data = steps if steps >= MANY_STEPS * skip_from else 0
        return found

    def _edges(self, statements: Iterable[SubmittedStatement]) -> Iterator[int]:
        """The ticks at which SINCE begins a query, and FOR ends one."""
        for given in statements:
            options, start = given.plan.options, self._submission(given)
            if options.since is not None:
                start = options.since
                yield start
            if options.run_for is not None:
                yield start + options.run_for

    def _add(self, statements: Iterable[SubmittedStatement]) -> None:
        """Submit queries, which begin with the next clock tick."""
        refused = []
        for given in statements:
            if isinstance(given.bound.statement, syntax.Explain):
                refused.append(given.not_executable_yet("EXPLAIN in a replay"))
                continue
            try:
                self.engine.add(given.number, shorten_plan(given.plan, self._submission(given), self._short))
            except UnsupportedPlanError as why:
                refused.append(given.not_executable_yet(why.what))
            except StartBeforeRecordError as why:
                raise DiagnosticError([given.starts_too_early(why)]) from None
        if refused:
            raise NotExecutableError(refused)

    def updates(self) -> Iterator[list[Update]]:
        """Lists of updates, each of some clock ticks, until the end of the replay. Raises InputError for wrong data."""
        until, stretches = self._short.shorten_one(self.until), self._short.ends()
        deliveries = [
            _Deliveries(name, stream, self.begin, until, self._short) for name, stream in self.recording.streams.items()
        ]
        for clock in range(self.begin, until + 1) if self.every_tick else self._ends(deliveries, until):
            for each in deliveries:
                each.deliver(self.engine, clock)
            for given in self._later.get(clock, ()):
                if given.is_query:
                    self._add([given])
                else:
                    self._correct(given)
            if clock < until:
                self.clock = self._short.restore_one(clock)
                updates = self._show(self.engine.on_clock(clock))
                if clock in stretches:
                    self.skipped += self._shown.skipped(stretches[clock])
                yield updates
        self.clock = self.until
        yield self._show(self.engine.finish(until))

    def _show(self, updates: Iterable[Update | SharedUpdate]) -> list[Update]:
        """The updates of the engine, with the ticks of the recording."""
        shown = split_by_query(updates)
        if not self._short.ends():
            return list(shown)
        return [update for each in shown if (update := self._shown.restore(each)) is not None]

    def _ends(self, deliveries: Sequence["_Deliveries"], until: int) -> Iterator[int]:
        """The clock ticks to end: those of statements, the ends of quiet stretches, and enough others to limit the
        tuples that the engine takes at once."""
        # A query begins with the clock tick after the last one that ended, so the tick before its submission ends too.
        before = [clock - 1 for clock, given in self._later.items() if any(each.is_query for each in given)]
        others = (*self._short.begins(), *self._short.ends(), until)
        asked = sorted({clock for clock in (*self._later, *before, *others) if self.begin <= clock <= until})
        ended = self.begin - 1
        for last in asked:
            while ended < last:
                ended = min(last, self._find_end(deliveries, until))
                yield ended

    def _find_end(self, deliveries: Sequence["_Deliveries"], until: int) -> int:
        """The clock tick in which the last of the tuples comes that the engine takes at once; the last one if fewer come."""
        for each in deliveries:
            each.read(self._at_once)
        waiting = [each.arrivals[: self._at_once] for each in deliveries]
        arrivals = np.concatenate([_NO_TICKS, *waiting])
        if len(arrivals) < self._at_once:
            return until
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

    def __init__(self, name: str, stream: RecordedStream, begin: int, until: int, clock: ShortenedClock) -> None:
        self._name, self._begin, self._until, self._clock = name, begin, until, clock
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
        if batch is not None and self._clock.ends():
            batch = replace(batch, tick=self._clock.shorten(batch.tick), arrival=self._clock.shorten(batch.arrival))
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

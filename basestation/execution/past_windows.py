"""Past windows: the part of a query with SINCE that lies before what the engine keeps, answered from the archive (semantics 10.7).

        begin       since               first         seam             clock
    ──────┼───────────┼───────────────────┼─────────────┼────────────────┼────▶
          │◀─ reach ─▶│                   │◀── reach ──▶│
    archive ─────────── past windows ───────────────────│─ live windows ─
                                    log of the engine ──────────────────────▶

An engine of its own answers the windows before the seam, from the tuples of the archive as they are corrected now. It stays for as long as late
tuples or corrections may revise these windows. The engine of the station answers all others.

A query that counts from its begin, or reads a HISTORY, has no such seam: an engine of its own takes all deliveries of the archive and then
the live ones, and answers the query for as long as it runs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent, ExtentKind, LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column
from basestation.algebra.loop_grid import find_linear
from basestation.algebra.node import PlanNode, StreamNode, WindowNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Scan
from basestation.algebra.vector import Vector
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.counters import OperatorShare
from basestation.execution.engine import Engine
from basestation.execution.ingest.intake import find_retention
from basestation.execution.ingest.stored_table import TableVersion
from basestation.execution.memory_failures import NO_LOG, FailureRecorder
from basestation.execution.plan_checks import find_history_extents, last_tick, start_tick
from basestation.execution.relational.subqueries import find_subqueries
from basestation.planner.plan import Correction, Plan
from basestation.updates.update import Update, split_by_query

_OVER_WINDOWS = (
    TimeWindow, Scan, WindowSelect, WindowProject, WindowAggregation, WindowCrossProduct,
    StreamAcquire, StreamReceive, StreamSelect, StreamProject,
)  # fmt: skip


Tables = Mapping[str, Iterable[TableVersion]]
"""The versions of each stored extent, in the order of ticks."""
Timer = Callable[[], int]
"""The time, as engines measure what operators take of it."""


@dataclass(frozen=True, slots=True)
class PastRange:
    """The windows from `since` to the tick before `seam` come from the archive; `begin` is the first tick that one of them holds.

    A query that `is_replayed` has an engine of its own, which answers its windows after the seam too.
    """

    begin: int
    since: int
    seam: int
    extents: tuple[Extent, ...]
    is_replayed: bool = False


def reads_past(plan: Plan | Correction) -> bool:
    """Whether a statement is a query with SINCE or over HISTORY."""
    if not isinstance(plan, Plan):
        return False
    options = plan.options
    return options.since is not None or options.since_ago is not None or bool(find_history_extents(plan.root))


def find_past(plan: Plan, engine: Engine) -> PastRange | None:
    """The windows of a query that the engine has no tuples for any more. None where there are none, or where they cannot be had.

    A query is divided at a seam where its windows depend on the tuples in their ranges alone: windows of time over sensed and pushed
    extents with `late revise`, tables, and no index. Others, and those with windows longer than the log, are replayed, unless they read an
    index or do not wait for late readings.
    """
    since = start_tick(plan.options, engine.clock + 1)
    if since is not None and since > engine.clock:
        return None
    nodes = list(walk(plan.root))
    tables = [node.extent for node in nodes if isinstance(node, Scan) and not node.history]
    begun = [versions[0][0] for table in tables if (versions := engine.table_versions(table.name))]
    if since is not None and any(since < tick for tick in begun):
        return None
    if since is not None and _has_time_windows_alone(plan):
        divided = _find_divided(plan, engine, since)
        if divided is not None:
            return divided  # None also where a window is longer than the log, so that no seam has come yet
    return _find_replayed(plan, engine, since)


def find_resumed_past(plan: Plan, engine: Engine) -> PastRange | None:
    """As `find_past`, of a query that runs again: windows before now have been answered, so it is replayed and not divided.

    Where its answers do not count from its begin, the plan says SINCE now.
    """
    since = start_tick(plan.options, engine.clock + 1)
    return None if since is not None and since > engine.clock + 1 else _find_replayed(plan, engine, since)


def counts_from_start(plan: Plan) -> bool:
    """Whether the answers of a query depend on the tick at which it began, and not only on which of them there are."""
    return _has_counter(plan.root)


def _has_counter(root: PlanNode) -> bool:
    counters = RowWindow | LandmarkWindow | LoopWindow | Converter
    return any(isinstance(node, counters) for node in walk(root)) or any(
        _has_counter(query.plan) for query in find_subqueries(root)
    )


def _find_divided(plan: Plan, engine: Engine, since: int) -> PastRange | None:
    options, first = plan.options, engine.first_tick(plan)
    nodes = list(walk(plan.root))
    reach = max((-node.begin for node in nodes if isinstance(node, TimeWindow)), default=0)
    extents = {node.extent.name: node.extent for node in nodes if isinstance(node, StreamAcquire | StreamReceive)}
    seam = first + reach + find_overlap(plan)
    is_over = options.run_for is not None and since + options.run_for <= seam
    if since - reach >= first or not extents or is_over or seam > engine.clock + 1:
        return None
    return PastRange(max(0, since - reach), since, seam, tuple(extents.values()))


def _find_replayed(plan: Plan, engine: Engine, since: int | None) -> PastRange | None:
    now = engine.clock + 1
    last = last_tick(plan.options, now)
    if not may_be_replayed(plan) or (last is not None and last < now):
        return None
    nodes = list(walk(plan.root))
    extents = {node.extent.name: node.extent for node in nodes if isinstance(node, StreamAcquire | StreamReceive)}
    recorded = {extent.name: extent for extent in find_history_extents(plan.root)}
    if recorded:
        return PastRange(0, now if since is None else since, now, tuple({**extents, **recorded}.values()), True)
    if since is None or not extents:
        return None
    first = min(_first_read(node, since) for node in nodes)
    if first >= engine.first_tick(plan):
        return None
    tick_ms = engine.catalog.tick_ms
    kept = max(max(find_retention(e, tick_ms), e.horizon or 0, e.wait) for e in extents.values())
    return PastRange(max(0, min(first, since - kept)), since, now, tuple(extents.values()), True)


def _first_read(node: PlanNode, since: int) -> int:
    """The first tick that windows of time read, of a query that begins at `since`; 0 where a loop may go back without end."""
    match node:
        case TimeWindow(begin=begin):
            return since + begin
        case LoopWindow(loop=loop, left=left) if not loop.rows:
            t, change, end = (find_linear(e, loop.t, loop.start) for e in (loop.first, loop.change, left))
            if t is None or change is None or end is None or (change.by_t, change.by_start) != (1, 0):
                return 0
            is_forward = change.constant * end.by_t >= 0
            return min(since, end.at(t.at(0, since), since)) if is_forward else 0
    return since


def may_be_replayed(plan: Plan) -> bool:
    """Whether an engine that takes the deliveries of the archive again gives the answers of one that took them live."""
    if plan.options.deliver_within is not None or plan.options.lifetime is not None:
        return False
    return not _reads_index(plan)


def _reads_index(plan: Plan) -> bool:
    indexes, read = set[Column](), set[Column]()
    for node in walk(plan.root):
        if isinstance(node, StreamNode):
            indexes.add(node.tags[1])
        for e in node.expressions:
            read.update(ex.columns_of(e))
    return bool(indexes & read)


def _has_time_windows_alone(plan: Plan) -> bool:
    if plan.options.deliver_within is not None or plan.options.lifetime is not None:
        return False
    for node in walk(plan.root):
        if not isinstance(node, _OVER_WINDOWS) or (isinstance(node, Scan) and node.history):
            return False
        if isinstance(node, StreamAcquire | StreamReceive) and not _is_revised(node.extent):
            return False
        if any(isinstance(part, ex.SubqueryExpression) for e in node.expressions for part in ex.walk(e)):
            return False
    return not plan.is_one_off and isinstance(plan.root, WindowNode) and not _reads_index(plan)


def find_overlap(plan: Plan) -> int:
    """How long after its tick a window is combined with those of other inputs; 0 where all have one slide (semantics 4)."""
    slides = {node.slide for node in walk(plan.root) if isinstance(node, TimeWindow)}
    slides |= {node.interval for node in walk(plan.root) if isinstance(node, Scan)}
    return max(slides) if len(slides) > 1 else 0


def _is_revised(extent: Extent) -> bool:
    """Whether each tuple that is taken belongs to the windows of its tick: none is dropped or appended for being late."""
    is_stream = extent.kind is not ExtentKind.STORED and extent.late is LatePolicy.REVISE
    return is_stream and extent.horizon is not None and extent.horizon >= extent.wait


def from_seam(plan: Plan, past: PastRange) -> Plan:
    """The query that answers the windows from the seam on; it begins before where these are combined with earlier ones.

    Where an engine of its own replays it, motes deliver its readings one by one.
    """
    options = plan.options
    early = 0 if past.is_replayed else min(find_overlap(plan), past.seam - past.since)
    run_for = None if options.run_for is None else options.run_for - (past.seam - past.since) + early
    since = None if past.is_replayed else past.seam - early
    options = replace(options, since=since, since_ago=None, run_for=run_for, whole_readings=past.is_replayed)
    return replace(plan, options=options)


class PastWindows:
    """The engine that answers the past windows of one query, slice by slice, and then revises them."""

    def __init__(
        self,
        number: int,
        plan: Plan,
        past: PastRange,
        catalog: Catalog,
        tables: Tables,
        recalled: Mapping[str, Batch],
        slices: int,
        first_due: Mapping[str, int],
        timer: Timer,
    ) -> None:
        """`recalled` are the current tuples, by extent and in the order of their ticks; `first_due` when motes began to sample each."""
        self._number, self._past = number, past
        self._extents = frozenset(extent.name for extent in past.extents)
        self._archived, self.slices, self.answered = dict(recalled), slices, 0
        self._later: list[tuple[str, Batch] | Correction | int] = []
        """Deliveries and corrections while slices were missing, in order; a number ends that clock tick."""
        self._engine = _begin_engine(past.begin, catalog, tables, first_due, timer)
        options = replace(plan.options, since=past.since, since_ago=None, run_for=None)
        self._engine.add(number, replace(plan, options=options))
        if number in self._engine:  # else there was no memory for it, which the first answer says
            self._engine.limit(number, past.since, past.seam - 1)

    @property
    def is_complete(self) -> bool:
        """Whether all past windows have been answered."""
        return self.answered == self.slices

    def advance(self) -> list[Update]:
        """Answer the windows of the next slice; after the last one also what has come meanwhile."""
        self.answered += 1
        past = self._past
        end = past.since + (past.seam - past.since) * self.answered // self.slices - 1
        for name, batch in self._archived.items():
            self._engine.deliver(name, batch.take((batch.tick > self._engine.clock) & (batch.tick <= end)))
        updates = self._end(end)
        if self.is_complete:
            self._archived, later, self._later = {}, self._later, []
            for each in later:
                if isinstance(each, int):
                    updates += self._end(each)
                elif isinstance(each, Correction):
                    self._engine.correct(each)
                else:
                    self._engine.deliver(*each)
        return updates

    def deliver(self, extent: str, batch: Batch) -> None:
        """Take the tuples of a delivery that belong to these windows."""
        if extent in self._extents:
            batch = batch.take(batch.tick < self._past.seam)
            if self.is_complete:
                self._engine.deliver(extent, batch)
            elif len(batch):
                self._later.append((extent, batch))

    def load(self, extent: str, tick: int, columns: Mapping[str, Vector]) -> None:
        """These windows end before a new version of a table begins."""

    def limit(self, last: int) -> None:
        """These windows lie before any tick at which a query drains."""

    def correct(self, correction: Correction) -> None:
        """Carry out a statement at the end of the current clock tick."""
        if correction.extent.name in self._extents:
            if self.is_complete:
                self._engine.correct(correction)
            else:
                self._later.append(correction)

    def answer(self, clock: int) -> list[Update]:
        """End the clock ticks up to this one; the windows and revisions of them."""
        if self.is_complete:
            return self._end(clock)
        self._later.append(clock)
        return []

    def _end(self, clock: int) -> list[Update]:
        return list(split_by_query(self._engine.on_clock(clock))) if clock > self._engine.clock else []

    @property
    def share(self) -> OperatorShare:
        """The time and the state of these windows."""
        return _share_of(self._number, self._engine)

    @property
    def is_settled(self) -> bool:
        """Whether no answer may change any more."""
        if self._number not in self._engine:
            return True
        return self.is_complete and self._engine.is_answered(self._number, self._past.seam - 1)


class ReplayedQuery:
    """The engine that answers a query which counts from its begin, or reads a HISTORY: from the archive, and then live."""

    is_complete = True

    def __init__(
        self,
        number: int,
        plan: Plan,
        past: PastRange,
        catalog: Catalog,
        tables: Tables,
        recalled: Mapping[str, Batch],
        clock: int,
        reads: Mapping[str, tuple[str, ...]],
        first_due: Mapping[str, int],
        timer: Timer,
    ) -> None:
        """Take the archived deliveries and corrections up to the end of `clock`, each at its clock tick, and begin the query then."""
        self._number, self._reads = number, frozenset(extent.name for extent in past.extents)
        first = min((int(batch.tick.min()) for batch in recalled.values() if len(batch)), default=past.since)
        begin = min(clock, past.since, max(past.begin, first))
        self._engine = engine = _begin_engine(begin, catalog, tables, first_due, timer)
        engine.announce(number, plan)
        engine.failure_log = recorder = FailureRecorder()
        self._replay(recalled, catalog, clock)
        lost = [start.extent for failure in recorder.take() for start in failure.records]
        engine.failure_log = NO_LOG
        options = plan.options
        if options.since_ago is not None:
            plan = replace(plan, options=replace(options, since=past.since, since_ago=None))
        if lost:
            engine.fail_to_begin(number, f"the archived tuples of {', '.join(lost)} find no room")
        else:
            engine.add(number, plan, reads=reads)
        self._last = clock + 1 if plan.is_one_off else last_tick(plan.options, clock + 1)

    def _replay(self, recalled: Mapping[str, Batch], catalog: Catalog, clock: int) -> None:
        delivered, named, begin = {}, {}, self._engine.clock + 1
        for name, batch in recalled.items():
            is_named = np.zeros(len(batch), bool)
            if catalog.extents[name].kind is ExtentKind.PUSHED and batch.replaces is not None:
                is_named = batch.replaces != 0
            named[name] = batch.take(is_named)
            batch = replace(batch, arrival=np.maximum(batch.arrival, begin))  # one stamped ahead may have come before
            delivered[name] = replace(batch.take(~is_named), replaces=None) if is_named.any() else batch
        corrected = {int(at) for batch in named.values() for at in batch.arrival if at <= clock}
        for at in sorted({*corrected, clock}):
            for name, batch in delivered.items():
                self._engine.deliver(name, batch.take((batch.arrival > self._engine.clock) & (batch.arrival <= at)))
            for name, batch in named.items():
                if (batch.arrival == at).any():
                    self._engine.correct_archived(name, batch.take(batch.arrival == at))
            if at > self._engine.clock:
                self._engine.on_clock(at)
        for name, batch in delivered.items():
            self._engine.deliver(name, batch.take(batch.arrival > clock))

    def deliver(self, extent: str, batch: Batch) -> None:
        """Take the tuples of a delivery."""
        if extent in self._reads:
            self._engine.deliver(extent, batch)

    def load(self, extent: str, tick: int, columns: Mapping[str, Vector]) -> None:
        """Add a version of a stored extent; one declared after the query began is none of its tables."""
        if extent in self._engine.catalog.extents:
            self._engine.load(extent, tick, columns)

    def correct(self, correction: Correction) -> None:
        """Carry out a statement at the end of the current clock tick."""
        if correction.extent.name in self._reads:
            self._engine.correct(correction)

    def begin_at(self, first: int) -> None:
        """Answer nothing before a tick: that has been done."""
        if self._number in self._engine:
            self._engine.limit(self._number, first, NEVER)

    def limit(self, last: int) -> None:
        """Answer nothing after a tick; late readings still revise the answers."""
        if self._number in self._engine:
            self._engine.limit(self._number, -NEVER, last)
            self._last = last if self._last is None else min(last, self._last)

    def answer(self, clock: int) -> list[Update]:
        """End the clock ticks up to this one; the updates of them."""
        return list(split_by_query(self._engine.on_clock(clock))) if clock > self._engine.clock else []

    @property
    def share(self) -> OperatorShare:
        """The time and the state of the query."""
        return _share_of(self._number, self._engine)

    @property
    def is_settled(self) -> bool:
        """Whether no answer may change any more."""
        if self._number not in self._engine:
            return True
        return self._last is not None and self._engine.is_answered(self._number, self._last)


def _share_of(number: int, engine: Engine) -> OperatorShare:
    return engine.share(number) if number in engine else OperatorShare(0.0, 0.0)


def _begin_engine(begin: int, catalog: Catalog, tables: Tables, first_due: Mapping[str, int], timer: Timer) -> Engine:
    engine = Engine(catalog, begun=begin, timer=timer)
    engine.postpone(first_due)
    for name, versions in tables.items():
        for version in versions:
            engine.load(name, version.tick, version.columns)
    return engine

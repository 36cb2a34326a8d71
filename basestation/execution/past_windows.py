"""Past windows: the part of a query with SINCE that lies before what the engine keeps, answered from the archive (semantics 10.7).

        begin       since               first         seam             clock
    ──────┼───────────┼───────────────────┼─────────────┼────────────────┼────▶
          │◀─ reach ─▶│                   │◀── reach ──▶│
    archive ─────────── past windows ───────────────────│─ live windows ─
                                    log of the engine ──────────────────────▶

An engine of its own answers the windows before the seam, from the tuples of the archive as they are corrected now. It stays for as long as late
tuples or corrections may revise these windows. The engine of the station answers all others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent, ExtentKind, LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Scan
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.engine import Engine
from basestation.execution.ingest.stored_table import TableVersion
from basestation.execution.plan_checks import start_tick
from basestation.planner.plan import Correction, Plan
from basestation.updates.update import Update, split_by_query

_OVER_WINDOWS = (
    TimeWindow, Scan, WindowSelect, WindowProject, WindowAggregation, WindowCrossProduct,
    StreamAcquire, StreamReceive, StreamSelect, StreamProject,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PastRange:
    """The windows from `since` to the tick before `seam` come from the archive; `begin` is the first tick that one of them holds."""

    begin: int
    since: int
    seam: int
    extents: tuple[Extent, ...]


def find_past(plan: Plan, engine: Engine) -> PastRange | None:
    """The windows of a query that the engine has no tuples for any more. None where there are none, or where it cannot be divided.

    A query is divided where its windows depend on the tuples in their ranges alone: windows of time over sensed and pushed extents with
    `late revise`, tables, and no index.
    """
    options = plan.options
    since = start_tick(options, engine.clock + 1)
    if since is None or plan.is_one_off or not _has_time_windows_alone(plan):
        return None
    first = engine.first_tick(plan)
    nodes = list(walk(plan.root))
    reach = max((-node.begin for node in nodes if isinstance(node, TimeWindow)), default=0)
    extents = {node.extent.name: node.extent for node in nodes if isinstance(node, StreamAcquire | StreamReceive)}
    seam = first + reach
    is_over = options.run_for is not None and since + options.run_for <= seam
    tables = [node.extent for node in nodes if isinstance(node, Scan)]
    begun = [versions[0][0] for table in tables if (versions := engine.table_versions(table.name))]
    if (
        since - reach >= first
        or since > engine.clock
        or not extents
        or is_over
        or seam > engine.clock + 1
        or any(since < tick for tick in begun)
    ):
        return None
    return PastRange(max(0, since - reach), since, seam, tuple(extents.values()))


def _has_time_windows_alone(plan: Plan) -> bool:
    if plan.options.deliver_within is not None or plan.options.lifetime is not None:
        return False
    indexes, read = set[Column](), set[Column]()
    for node in walk(plan.root):
        if not isinstance(node, _OVER_WINDOWS) or (isinstance(node, Scan) and node.history):
            return False
        if isinstance(node, StreamNode):
            indexes.add(node.tags[1])
        if isinstance(node, StreamAcquire | StreamReceive) and not _is_revised(node.extent):
            return False
        for e in node.expressions:
            if any(isinstance(part, ex.SubqueryExpression) for part in ex.walk(e)):
                return False
            read.update(ex.columns_of(e))
    return not indexes & read


def _is_revised(extent: Extent) -> bool:
    """Whether each tuple that is taken belongs to the windows of its tick: none is dropped or appended for being late."""
    is_stream = extent.kind is not ExtentKind.STORED and extent.late is LatePolicy.REVISE
    return is_stream and extent.horizon is not None and extent.horizon >= extent.wait


def from_seam(plan: Plan, past: PastRange) -> Plan:
    """The query that answers the windows from the seam on."""
    options = plan.options
    run_for = None if options.run_for is None else options.run_for - (past.seam - past.since)
    return replace(plan, options=replace(options, since=past.seam, since_ago=None, run_for=run_for))


class PastWindows:
    """The engine that answers the past windows of one query."""

    def __init__(
        self, number: int, plan: Plan, past: PastRange, catalog: Catalog, tables: Mapping[str, Iterable[TableVersion]]
    ) -> None:
        self._number, self._seam = number, past.seam
        self._extents = frozenset(extent.name for extent in past.extents)
        self._engine = Engine(catalog, begun=past.begin)
        for name, versions in tables.items():
            for version in versions:
                self._engine.load(name, version.tick, version.columns)
        options = replace(plan.options, since=None, since_ago=None, run_for=None)
        self._engine.add(number, replace(plan, options=options))
        if number in self._engine:  # else there was no memory for it, which the first answer says
            self._engine.limit(number, past.since, past.seam - 1)

    def deliver(self, extent: str, batch: Batch) -> None:
        """Take the tuples of a delivery that belong to these windows."""
        if extent in self._extents:
            self._engine.deliver(extent, batch.take(batch.tick < self._seam))

    def correct(self, correction: Correction) -> None:
        """Carry out a statement at the end of the current clock tick."""
        if correction.extent.name in self._extents:
            self._engine.correct(correction)

    def answer(self, clock: int) -> list[Update]:
        """End the clock ticks up to this one; the windows and revisions of them."""
        return list(split_by_query(self._engine.on_clock(clock))) if clock > self._engine.clock else []

    @property
    def held_bytes(self) -> float:
        """The bytes of the states of these windows."""
        shares, _ = self._engine.usage([self._number], {})
        return shares[self._number].bytes if self._number in shares else 0.0

    @property
    def is_settled(self) -> bool:
        """Whether no answer may change any more."""
        return self._number not in self._engine or self._engine.is_answered(self._number, self._seam - 1)

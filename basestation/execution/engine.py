"""Engine: runs standing queries. Batches go in, and at the end of each clock tick updates come out.

It reads no clock and does no input or output: the time and the deliveries are arguments.
"""

import gc
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.vector import Vector
from basestation.execution import thresholds
from basestation.execution.columns.next_due import NextDue, find_earliest
from basestation.execution.counters import OperatorReport, OperatorShare
from basestation.execution.description import RunningOperator
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.coalesce import CoalescingBuffer, ExtentKey
from basestation.execution.ingest.intake_set import Corrections, Deliveries, IntakeSet
from basestation.execution.ingest.memory_headroom import estimate_intake_bytes, has_room
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.ingest.step_plan import plan_steps
from basestation.execution.ingest.step_size import StepSize, cut_deliveries
from basestation.execution.ingest.stored_table import TableVersion
from basestation.execution.joins.join_plan import JoinPlan
from basestation.execution.plan_checks import (
    StartBeforeRecordError,
    UnsupportedPlanError,
    find_history_extents,
    find_unsupported,
    start_tick,
)
from basestation.execution.plan_interning import PlanInterner
from basestation.execution.query_registry import QueryRegistry
from basestation.execution.running_query import RunningQuery
from basestation.planner.executable_rules import EXECUTABLE_RULES, select_rules
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Correction, Plan
from basestation.planner.rewriter import Rule, rewrite
from basestation.updates.update import QueryFailure, SharedUpdate, Update
from innet.operators.fold import Fold

Updates = list[Update | SharedUpdate]
OUT_OF_MEMORY = "SN516"
"""The number in the catalogue of errors of a query that needs more memory than there is."""
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Engine:
    """`clock` is the last clock tick that ended; at first the one before `begun`.

    A recording is sampled from its beginning. Live, a sensed extent is scheduled when the first query needs it (semantics 12.3).
    """

    def __init__(
        self,
        catalog: Catalog,
        begun: int = 0,
        live: bool = False,
        rules: Sequence[Rule] = EXECUTABLE_RULES,
        tidy_every: int = 64,
        timer: Callable[[], int] | None = None,
    ) -> None:
        """State is pruned after `tidy_every` steps at the latest. `timer` returns the time, to measure what operators take of it."""
        self.catalog, self._begun, self._rules = catalog, begun, rules
        self._tidy_every, self._step_count, self._tuple_count = tidy_every, 0, 0  # since state was pruned
        self._prune_after = thresholds.PRUNE_AFTER_TUPLES[0]
        self.clock = begun - 1
        self._intakes = IntakeSet(catalog, begun, live)
        self._live = live
        self._registry = QueryRegistry()
        self._graph, self._interner = OperatorGraph(timer), PlanInterner()
        self._announced: set[int] = set()  # the numbers of queries to come
        self._waiting, self._stepped = CoalescingBuffer(), self.clock  # the last clock tick that a step ended
        self._step_size = StepSize()
        self._failures: list[QueryFailure] = []  # of queries that ended outside a step whose updates are returned
        self._multi_tick = False  # whether one step may end several clock ticks
        self._next_due: NextDue | None = None  # when an update may be due; None: not computed since the last step

    @property
    def _queries(self) -> dict[int, RunningQuery]:
        return self._registry.running

    def declare(self, extent: Extent) -> None:
        """Add a pushed or stored extent, without tuples, from now on."""
        self._catch_up()
        self.catalog = replace(self.catalog, extents={**self.catalog.extents, extent.name: extent})
        self._intakes.declare(extent, self.clock + 1, self.catalog.tick_ms)

    def load(self, extent: str, tick: int, columns: Mapping[str, Vector]) -> None:
        """Add a version of a stored extent, valid from its tick on."""
        self._catch_up()
        self._intakes.tables[extent].load(tick, columns)

    def table_versions(self, extent: str) -> list[tuple[int, int]]:
        """Return (first tick, number of rows) of each version of a stored extent, in the order of ticks."""
        return self._intakes.tables[extent].versions

    def stored_versions(self) -> dict[str, list[TableVersion]]:
        """The versions of each stored extent, in the order of ticks."""
        return {name: table.loaded for name, table in self._intakes.tables.items()}

    def announce(self, number: int, plan: Plan) -> None:
        """Announce a query that will be added later: from now on, the engine keeps the past that it may read."""
        self._catch_up()
        self._announced.add(number)
        for extent in find_history_extents(plan.root):
            if extent.name in self._intakes.extents:
                self._intakes.extents[extent.name].keep_history()

    # --- queries -----------------------------------------------------------------------------------------------------

    def add(
        self,
        number: int,
        plan: Plan,
        fed: Sequence[PartialSource] = (),
        folds: Mapping[int, Fold] | None = None,
        reports_from: Mapping[str, int] = _EMPTY,
        reads: Mapping[str, tuple[str, ...]] = _EMPTY,
    ) -> None:
        """Run a query from now on. Its first window is the first on the grid after the clock, or after SINCE.

        `fed` are its aggregations that take partials, and `folds` the folds that begin with it, by the number under which their
        partials are delivered. `reports_from` has by extent the tick from which on motes report readings as filtered only if this
        query's conditions reject them too. `reads` has by extent the attributes that the query reads; a reading without one of them was sent for other queries.

        A query for whose past there is no memory ends at once; the next updates have its failure.

        Raises UnsupportedPlanError if the plan cannot run, StartBeforeRecordError if the query would begin before the record.
        """
        if number in self._registry:
            raise ValueError(f"query {number} runs already")
        self._catch_up()
        self.check(plan)
        self._announced.discard(number)
        try:
            self._run(number, plan, fed, folds or {}, reports_from, reads)
        except MemoryError as error:  # for the past that it reads
            self._drop_unused_folds()
            self._failures.append(QueryFailure(number, OUT_OF_MEMORY, str(error), self.clock))

    def check(self, plan: Plan) -> None:
        """Raise UnsupportedPlanError or StartBeforeRecordError where `add` would; no answer changes."""
        missing = find_unsupported(plan)
        if missing:
            raise UnsupportedPlanError(missing)
        since = start_tick(plan.options, self.clock + 1)
        if since is not None and since < (first := self.first_tick(plan)):
            raise StartBeforeRecordError(since, first)

    def _run(
        self,
        variant: int,
        plan: Plan,
        fed: Sequence[PartialSource],
        folds: Mapping[int, Fold],
        reports_from: Mapping[str, int],
        reads: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Build the operators of a query, or of a variant of one, and schedule its extents."""
        better, _ = rewrite(plan, select_rules(self._rules, [source.node for source in fed]))
        root = rebuild(better.root, lambda node: _take_partials(node, fed)) if fed else better.root
        root = rebuild(root, lambda node: _read_columns(node, reads)) if reads else root
        if sum(isinstance(node, StreamMerged) for node in walk(root)) < len(fed):
            raise ValueError(f"query {variant} is to take partials for an aggregation that it does not run")
        for fold, operator in folds.items():
            self._start_fold(fold, operator)
        now = self.clock + 1
        query = RunningQuery(
            variant,
            plan,
            root,
            self._graph,
            self._interner,
            self._intakes.by_key,
            self._intakes.tables,
            now,
            self._begun,
            reports_from,
            self._live,
        )
        self._registry.add(variant, query)
        self._step_size.restart()
        for intake in query.sensed:
            intake.sensed_epochs.schedule(now)

    def start_variant(
        self,
        number: int,
        plan: Plan,
        fed: Sequence[PartialSource] = (),
        folds: Mapping[int, Fold] | None = None,
        reports_from: Mapping[str, int] = _EMPTY,
        reads: Mapping[str, tuple[str, ...]] = _EMPTY,
    ) -> None:
        """Run another variant of a query with windows of time, silently until the query switches to it. Arguments as of `add`."""
        self._catch_up()
        variant = self._registry.next_variant()
        self._run(variant, plan, fed, folds or {}, reports_from, reads)
        self._registry.start_variant(number, variant)

    def switch_variant(self, number: int) -> None:
        """Let the newest variant of a query answer all windows after the clock."""
        self._catch_up()
        self._registry.switch_variant(number, self.clock)

    def change_join_plan(self, number: int, plan: JoinPlan, which: int = 0) -> None:
        """Compute a join of a query by another plan from now on, which changes no answer.

        `which` counts the joins of the query. Raises InvalidJoinPlanError if the plan is not for that join.
        """
        self._catch_up()
        self._registry.active(number).joins[which].change_join_plan(plan)

    def counts(self, number: int) -> list[OperatorReport]:
        """Return the counters of each operator below a query, those that are read first."""
        self._catch_up()
        return self._graph.counted(self._registry.active(number).key)

    def share(self, number: int) -> OperatorShare:
        """Return the share of a query in time and state of the operators that it uses. Raises KeyError where it does not run."""
        self._catch_up()
        if number not in self._registry:
            raise KeyError(number)
        return self._share_of(number)

    def _share_of(self, number: int) -> OperatorShare:
        users = {variant: [query.key] for variant, query in self._registry.running.items()}
        return self._graph.share(self._registry.keys_of(number), users)

    def usage(
        self, numbers: Iterable[int], before: Mapping[int, int]
    ) -> tuple[dict[int, OperatorShare], dict[int, int]]:
        """Return the shares of running queries in states, and in the time since `before`; and the times now, by operator."""
        self._catch_up()
        users = {number: self._registry.keys_of(number) for number in numbers if number in self._registry}
        return self._graph.usage(users, before)

    def describe(self, number: int) -> tuple[RunningOperator, ...]:
        """Return the operators that run for a query, from its output down, as EXPLAIN prints them."""
        self._catch_up()
        return self._graph.describe(self._registry.active(number).key)

    def remove(self, number: int) -> None:
        """Stop a query. Raises KeyError if there is none of that number."""
        self._catch_up()
        self._registry.remove(number)
        self._drop_unused_folds()

    def limit(self, number: int, first: int, last: int) -> None:
        """Let a query answer no tick before `first` and none after `last`; late readings still revise its answers."""
        self._catch_up()
        self._registry.limit(number, first, last)

    def __contains__(self, number: int) -> bool:
        return number in self._registry

    def is_answered(self, number: int, last: int) -> bool:
        """Return whether no answer of a query up to tick `last` may change any more."""
        return self._registry.is_answered(number, last)

    def first_tick(self, plan: Plan) -> int:
        """Return the first tick at which a query could begin: a recording has one beginning, live each extent has its own.

        State is pruned first. So the tick does not depend on when that was done last, and `add` finds the same one.
        """
        if not self._live:
            return self._begun
        self._catch_up()
        self._tidy()
        first = self._begun
        for node in walk(plan.root):
            extent = getattr(node, "extent", None)
            if extent is not None:
                first = max(first, min(self._intakes.first_tick(extent), self.clock + 1))
        return first

    # --- folds -------------------------------------------------------------------------------------------------------

    def has_fold(self, fold: int) -> bool:
        """Return whether a query takes partials of the fold with this number."""
        return fold in self._intakes.by_key

    def _start_fold(self, number: int, fold: Fold) -> None:
        """Add the intake of a fold. Its number may be reused: variants that took partials of it before have given all answers."""
        if number in self._intakes.by_key:
            self._registry.stop_variants(
                lambda switch, variant: switch.is_over(variant) and number in self._queries[variant].folds
            )
        self._intakes.start_fold(number, fold, self.clock + 1)

    def _drop_unused_folds(self) -> None:
        """Drop the intakes of folds whose partials no query takes."""
        self._intakes.drop_folds(lambda: self._registry.folds)

    # --- deliveries --------------------------------------------------------------------------------------------------

    def deliver(self, extent: ExtentKey, batch: Batch | PartialBatch) -> None:
        """Take tuples, each delivered in the clock tick of its arrival; no update is given before that ends.

        A tuple whose clock tick has ended counts as delivered in the current one. The engine keeps the arrays of the batch: do not
        write to them any more.
        """
        self._intakes.deliver(extent, batch)

    def correct(self, correction: Correction) -> None:
        """Carry out REVISE, DELETE or INSERT after the deliveries of the current clock tick (semantics 12.2)."""
        self._intakes.correct(correction)

    def pending_corrections(self) -> list[Correction]:
        """Return the statements that are carried out at the end of the current clock tick."""
        return self._intakes.pending_corrections()

    def archive_corrections(self) -> None:
        """Record the corrections that are carried out from now on, for `take_applied`."""
        self._intakes.archive_corrections()

    def take_applied(self) -> list[tuple[str, Batch]]:
        """Remove and return the corrections that were carried out, as an archive takes them, each with its extent.

        A reading is named by its key, a pushed tuple in `replaces` by its place among the tuples that were taken, from 1.
        """
        return self._intakes.take_applied()

    def on_clock(self, tick: int) -> Updates:
        """End all clock ticks up to this one, and return the updates of all queries."""
        return self._advance(tick, end=False)

    def finish(self, until: int) -> Updates:
        """End clock tick `until`, and with it the recording: all watermarks advance to it (semantics 1.5)."""
        return self._advance(until, end=True)

    def ledger(self) -> dict[str, dict[str, int]]:
        """Return by extent how many delivered tuples were accepted, late, rejected, and so on."""
        self._catch_up()
        return self._intakes.counts

    def _advance(self, tick: int, end: bool) -> Updates:
        if tick <= self.clock:
            raise ValueError(f"expected a clock tick after {self.clock}, which has ended; found {tick}")
        updates = self._advance_to(tick, end)
        failures, self._failures = self._failures, []
        return [*failures, *updates]

    def _advance_to(self, tick: int, end: bool) -> Updates:
        """End all clock ticks up to this one."""
        next_due = self._find_next_due()
        if self._may_wait(tick, next_due):
            updates = self._answer_due(tick, next_due) if tick >= next_due.before else []
            self._waiting.put(self._intakes.take_delivered())
            self.clock = tick
            if end or self._waiting.must_flush(self._find_next_due(), tick):
                updates += self._take_waiting(end)
            return updates
        self._catch_up()
        delivered, corrections = self._intakes.take_delivered(), self._intakes.take_corrections()
        batched = self._find_batched(delivered) if self._multi_tick else set()
        corrected = any(corrections.values())
        updates = []
        for last, batches, several in plan_steps(
            delivered, self._intakes.by_key, self.clock, tick, self._multi_tick, batched, corrected
        ):
            given = corrections if last == tick else dict.fromkeys(corrections, ())
            updates += self._step(last, batches, given, end and last == tick, several, batched)
        return updates

    # --- deliveries that wait ----------------------------------------------------------------------------------------

    def _find_next_due(self) -> NextDue:
        """Return when an update may be due; compute it after a step, and with it whether one step may end several clock ticks."""
        if self._next_due is None:
            groups = self._registry.groups
            self._multi_tick = all(group.multi_tick for group in groups) and not self._announced
            self._next_due = find_earliest(group.next_due for group in groups)
        return self._next_due

    def _may_wait(self, tick: int, next_due: NextDue) -> bool:
        """Return whether nothing that was delivered up to a clock tick changes an earlier answer."""
        return bool(self._multi_tick and next_due) and self._intakes.may_wait(self.clock, tick)

    def _answer_due(self, tick: int, next_due: NextDue) -> Updates:
        """Return the updates that are due before the first delivery up to a clock tick; that one waits on.

        If the deliveries span more time than was quiet before them, more updates are due within them, and all is one step.
        """
        first = self._intakes.first_arrival(tick)
        if not self._stepped < next_due.before < first or tick - first > first - self._stepped:
            return []
        self.clock = first - 1
        return self._take_waiting()

    def _take_waiting(self, end: bool = False) -> Updates:
        """Take one step for all clock ticks since the last one. No delivery in them may change an answer that is due before it."""
        waiting = self._waiting.flush()
        keys = self._intakes.by_key
        delivered = {key: waiting.get(key, []) for key in keys}
        return self._step(self.clock, delivered, dict.fromkeys(keys, ()), end, True, set())

    def _catch_up(self) -> None:
        """Take in the deliveries that wait. No update is due for them, but a query may run out of memory."""
        for update in self._take_waiting() if self.clock > self._stepped else ():
            if not isinstance(update, QueryFailure):
                raise AssertionError("an update was due and was not given")
            self._failures.append(update)
        self._next_due = None

    # --- steps -------------------------------------------------------------------------------------------------------

    def _find_batched(self, delivered: Deliveries) -> set[ExtentKey]:
        """Return the extents whose corrections in several clock ticks can be applied in one step."""
        per_tick = (name for group in self._registry.groups for name in group.per_tick_extents)
        return self._intakes.find_batched(delivered, per_tick)

    def _step(
        self,
        tick: int,
        delivered: Deliveries,
        corrections: Corrections,
        end: bool,
        multi_tick: bool,
        batched: set[ExtentKey],
    ) -> Updates:
        """Take deliveries in and end clock tick `tick`, in several steps if their rows would be too many for one."""
        updates: Updates = []
        while multi_tick and (cut := self._step_size.find_end(delivered, self._stepped, tick)) < tick:
            part, delivered = cut_deliveries(delivered, cut)
            updates += self._take_step(cut, part, dict.fromkeys(corrections, ()), False, True, batched)
        return updates + self._take_step(tick, delivered, corrections, end, multi_tick, batched)

    def _take_step(
        self,
        tick: int,
        delivered: Deliveries,
        corrections: Corrections,
        end: bool,
        multi_tick: bool,
        batched: set[ExtentKey],
    ) -> Updates:
        """Take one step. Windows that were due before `tick` are answered before its deliveries revise them."""
        updates: Updates = []
        begun, rows = self._stepped, self._graph.rows_out if multi_tick else 0
        self._tuple_count += sum(len(batch) for batches in delivered.values() for batch in batches)
        while not multi_tick and (earlier := self._find_tick_before(tick, delivered, corrections)) is not None:
            self._intakes.pass_time(earlier)
            updates += self._end_step(earlier)
        updates += self._make_room(tick, delivered)
        self._intakes.step(tick, delivered, corrections, end, multi_tick, batched)
        updates += self._end_step(tick)
        if multi_tick:
            most = max((sum(map(len, batches)) for batches in delivered.values()), default=0)
            self._step_size.adapt(most, tick - begun, self._graph.rows_out - rows)
        return updates

    def _make_room(self, tick: int, delivered: Deliveries) -> list[QueryFailure]:
        """End queries, those with the most state first, until the intake of a step finds memory; return their failures.

        A step that fails there would end all queries. If all of them hold less than it needs, it may still succeed.
        """
        need = estimate_intake_bytes(delivered)
        failures = []
        while need > thresholds.UNCHECKED_BYTES and not has_room(need):
            held = {number: self._share_of(number).bytes for number in self._registry.numbers}
            if sum(held.values()) < need:
                break
            number = max(held, key=held.__getitem__)
            reason = f"it holds {held[number]:,.0f} bytes, more than any other query; new tuples need {need:,} bytes"
            failures.append(QueryFailure(number, OUT_OF_MEMORY, reason, tick))
            self._registry.remove(number)
            self._drop_unused_folds()
            gc.collect()
        return failures

    def _find_tick_before(self, tick: int, delivered: Deliveries, corrections: Corrections) -> int | None:
        """Return the next clock tick before `tick` that has to end separately, or None.

        If windows are answered before they are complete (semantics 11), or contain indexes, each clock tick in which a tuple enters its
        stream has to, and the one before it: to windows answered by then the entry is a revision.
        """
        found: list[int] = []
        groups = self._registry.groups
        answers_early = any(group.answers_early for group in groups)
        entry_ticks = [clock for group in groups for clock in group.entry_ticks()]
        if any(group.within is not None for group in groups):
            entry_ticks += self._intakes.entry_ticks()
        found += [candidate for clock in entry_ticks for candidate in (clock - 1, clock)]
        if self._intakes.is_disturbed_by(delivered, corrections, tick, answers_early):
            found.append(tick - 1)
        return min((candidate for candidate in found if self.clock < candidate < tick), default=None)

    def _end_step(self, tick: int) -> Updates:
        """Let all operators take their step; return the updates, and end queries that cannot go on."""
        self.clock = self._stepped = tick
        self._next_due = None
        failed = self._graph.step(tick)
        updates: Updates = self._end_failed(failed, tick) if failed else []
        for group in self._registry.groups:
            updates += self._registry.select(group.updates)
            if group.halt is not None:
                for number in dict.fromkeys(self._registry.number_of(variant) for variant in group.numbers):
                    updates.append(QueryFailure(number, group.halt.code, group.halt.message, tick))
                    self.remove(number)
        self._step_count += 1
        if self._step_count >= self._tidy_every or self._tuple_count >= self._prune_after:
            self._step_count = self._tuple_count = 0
            self._tidy()
            low, high = thresholds.PRUNE_AFTER_TUPLES
            self._prune_after = min(max(low, self._intakes.held // 2), high)
        return updates

    def _end_failed(self, failed: Mapping[Hashable, str], tick: int) -> Updates:
        """End the queries whose operators ran out of memory in this step, and return their failures."""
        reasons = {
            self._registry.number_of(variant): failed[query.key]
            for variant, query in self._queries.items()
            if query.key in failed
        }
        for number in reasons:
            self._registry.remove(number)
        self._drop_unused_folds()
        return [QueryFailure(number, OUT_OF_MEMORY, reason, tick) for number, reason in reasons.items()]

    def _tidy(self) -> None:
        """Prune state: drop what no window and no horizon can reach."""
        if self._announced:
            return
        groups = self._registry.groups
        for group in groups:
            group.ask()
        self._registry.stop_variants(
            lambda switch, variant: switch.is_over(variant, self._queries[variant].output_group.settled)
        )
        self._drop_unused_folds()
        self._graph.tidy()
        self._intakes.prune([group.histories() for group in self._registry.groups])


def _read_columns(node: PlanNode, reads: Mapping[str, tuple[str, ...]]) -> PlanNode:
    """Return an acquisition that takes only readings with all attributes that the query reads."""
    return replace(node, reads=reads.get(node.extent.name, ())) if isinstance(node, StreamAcquire) else node


def _take_partials(node: PlanNode, fed: Sequence[PartialSource]) -> PlanNode:
    """Return an aggregation over partials if it is one that takes them."""
    source = next((source for source in fed if source.node == node), None)
    if source is None or not isinstance(node, SliceAggregation):
        return node
    return replace(node, child=StreamMerged(source.number, source.sources, node.child))

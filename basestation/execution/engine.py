"""Engine: runs standing queries. Batches go in, and at the end of each clock tick updates come out.

It reads no clock and does no input or output: the time and the deliveries are arguments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from acquisition.batch import Batch
from acquisition.extent import Extent
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.vector import Vector
from basestation.execution.counters import OperatorReport, OperatorShare
from basestation.execution.description import RunningOperator
from basestation.execution.ingest.coalesce import ExtentKey
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.ingest.stored_table import TableVersion
from basestation.execution.joins.join_plan import JoinPlan
from basestation.execution.memory_failures import OUT_OF_MEMORY
from basestation.execution.plan_checks import (
    StartBeforeRecordError,
    UnsupportedPlanError,
    find_history_extents,
    find_unsupported,
    start_tick,
)
from basestation.execution.running_query import RunningQuery
from basestation.execution.step_loop import StepLoop, Updates
from basestation.planner.executable_rules import select_rules
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Correction, Plan
from basestation.planner.rewriter import rewrite
from basestation.updates.update import QueryFailure
from innet.operators.fold import Fold

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Engine(StepLoop):
    """Queries, tables and deliveries come in between steps; `on_clock` returns the updates of all queries.

    A recording is sampled from its beginning. Live, a sensed extent is scheduled when the first query needs it (semantics 12.3).
    """

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
        if start_tick(plan.options, self.clock + 1) is not None:
            self.prune()
        self.check(plan)
        self._announced.discard(number)
        failures = []
        if not self.failure_log.ends_next(number):
            try:
                self._run(number, plan, fed, folds or {}, reports_from, reads)
            except MemoryError as error:  # for the past that it reads
                self._drop_unused_folds()
                failures.append(QueryFailure(number, OUT_OF_MEMORY, str(error), self.clock))
        self._keep_failures(failures)

    def fail_to_begin(self, number: int, reason: str) -> None:
        """Let the next updates have the failure of a query whose past found no memory, in the place of `add`."""
        self._keep_failures([QueryFailure(number, OUT_OF_MEMORY, reason, self.clock)])

    def check(self, plan: Plan) -> None:
        """Raise UnsupportedPlanError or StartBeforeRecordError where `add` would, if state was pruned now; nothing changes."""
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
        if self._is_failing(number):
            return
        variant = self._registry.next_variant()
        self._run(variant, plan, fed, folds or {}, reports_from, reads)
        self._registry.start_variant(number, variant)

    def switch_variant(self, number: int) -> None:
        """Let the newest variant of a query answer all windows after the clock."""
        self._catch_up()
        if not self._is_failing(number):
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
        """Stop a query. Raises KeyError if there is none of that number.

        A query that ran out of memory since the last updates counts as running until they have its failure; now they will not.
        """
        self._catch_up()
        if self._is_failing(number):
            self._failures = [failure for failure in self._failures if failure.query != number]
            return
        self._registry.remove(number)
        self._drop_unused_folds()

    def limit(self, number: int, first: int, last: int) -> None:
        """Let a query answer no tick before `first` and none after `last`; late readings still revise its answers."""
        self._catch_up()
        if not self._is_failing(number):
            self._registry.limit(number, first, last)

    def _is_failing(self, number: int) -> bool:
        """Whether a query has ended, and the next updates have its failure."""
        return number not in self._registry and any(failure.query == number for failure in self._failures)

    def __contains__(self, number: int) -> bool:
        return number in self._registry

    def is_answered(self, number: int, last: int) -> bool:
        """Return whether no answer of a query up to tick `last` may change any more."""
        return not self._is_failing(number) and self._registry.is_answered(number, last)

    def first_tick(self, plan: Plan) -> int:
        """Return the first tick at which a query could begin: a recording has one beginning, live each extent has its own.

        After `prune` it does not depend on when state was pruned before, and `add` finds the same one.
        """
        if not self._live:
            return self._begun
        first = self._begun
        for node in walk(plan.root):
            extent = getattr(node, "extent", None)
            if extent is not None:
                first = max(first, min(self._intakes.first_tick(extent), self.clock + 1))
        return first

    @property
    def first_due(self) -> dict[str, int]:
        """By sensed extent that was ever scheduled, its first due tick (12.3)."""
        return self._intakes.first_due

    def postpone(self, first_due: Mapping[str, int]) -> None:
        """Let nothing of some sensed extents be due before a tick; before the first query."""
        self._intakes.postpone(first_due)

    def prune(self) -> None:
        """Drop what no window and no horizon can reach; live only, since a recording keeps its beginning.

        Corrections reach no tuple that was dropped. So only an entry of the journal may ask for it, which a restart repeats.
        """
        if self._live:
            self._catch_up()
            self._keep_failures(self._tidy())

    def repeat_failures(self) -> None:
        """Carry out the failures of a run that is repeated that are due between two operations."""
        self._catch_up()

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

    def correct_archived(self, extent: str, rows: Batch) -> None:
        """Apply corrections of pushed tuples as an archive has them, after the deliveries of the current clock tick.

        `replaces` names each tuple by its place among those that the extent has taken, from 1.
        """
        self._intakes.correct_archived(extent, rows)

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


def _read_columns(node: PlanNode, reads: Mapping[str, tuple[str, ...]]) -> PlanNode:
    """Return an acquisition that takes only readings with all attributes that the query reads."""
    return replace(node, reads=reads.get(node.extent.name, ())) if isinstance(node, StreamAcquire) else node


def _take_partials(node: PlanNode, fed: Sequence[PartialSource]) -> PlanNode:
    """Return an aggregation over partials if it is one that takes them."""
    source = next((source for source in fed if source.node == node), None)
    if source is None or not isinstance(node, SliceAggregation):
        return node
    return replace(node, child=StreamMerged(source.number, source.sources, node.child))

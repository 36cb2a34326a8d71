"""StepLoop: ends clock ticks for all operators of an engine, in steps of bounded size, and prunes their state."""

import gc
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from acquisition.extent import Catalog
from basestation.execution import thresholds
from basestation.execution.columns.next_due import NextDue, find_earliest
from basestation.execution.counters import OperatorShare
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.coalesce import CoalescingBuffer, ExtentKey
from basestation.execution.ingest.intake_set import Corrections, Deliveries, IntakeSet, Marks
from basestation.execution.ingest.memory_headroom import estimate_intake_bytes, has_room, is_limited
from basestation.execution.ingest.step_plan import plan_steps
from basestation.execution.ingest.step_size import StepSize, cut_deliveries
from basestation.execution.memory_failures import NO_LOG, OUT_OF_MEMORY, find_ended
from basestation.execution.output.text_size import estimate_text_bytes
from basestation.execution.plan_interning import PlanInterner
from basestation.execution.query_registry import QueryRegistry
from basestation.execution.running_query import RunningQuery
from basestation.planner.executable_rules import EXECUTABLE_RULES
from basestation.planner.rewriter import Rule
from basestation.updates.update import QueryFailure, SharedUpdate, Update, split_by_query

Updates = list[Update | SharedUpdate]


class StepLoop:
    """`clock` is the last clock tick that ended; at first the one before `begun`.

    `failure_log` has the failures for lack of memory. It belongs to the process and is in no snapshot.
    """

    failure_log = NO_LOG

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

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "failure_log"}

    @property
    def _queries(self) -> dict[int, RunningQuery]:
        return self._registry.running

    def _share_of(self, number: int) -> OperatorShare:
        users = {variant: [query.key] for variant, query in self._registry.running.items()}
        return self._graph.share(self._registry.keys_of(number), users)

    def _drop_unused_folds(self) -> None:
        """Drop the intakes of folds whose partials no query takes."""
        self._intakes.drop_folds(lambda: self._registry.folds)

    def _advance(self, tick: int, end: bool) -> Updates:
        if tick <= self.clock:
            raise ValueError(f"expected a clock tick after {self.clock}, which has ended; found {tick}")
        updates = self._settle(self._advance_to(tick, end))
        failures, self._failures = self._failures, []
        return [*failures, *updates]

    def _settle(self, updates: Updates) -> Updates:
        """End an operation in which memory may have run out; return its updates. A replay lets fail what failed then, and nothing else."""
        planned = self.failure_log.enter()
        if planned is None:
            starts, ended = self._intakes.take_failed(self.clock), list(find_ended(updates))
            if starts or ended:
                self.failure_log.record(ended, starts)
            return updates
        planned.check(updates, self._intakes.failed)
        self._intakes.take_failed(self.clock)
        for start in planned.records:
            self._intakes.restart(start, self.clock)
        failing = {failure.query for failure in self._failures}  # since a snapshot that is newer than the entry before
        planned = replace(planned, queries=tuple(each for each in planned.queries if each.number not in failing))
        for number in {each.number for each in planned.queries if each.number in self._registry}:
            self._registry.remove(number)
            self._next_due = None
        self._drop_unused_folds()
        return [*planned.apply(updates)] if planned.queries else updates

    def _advance_to(self, tick: int, end: bool) -> Updates:
        """End all clock ticks up to this one."""
        next_due = self._find_next_due()
        if self._may_wait(tick, next_due):
            updates: Updates = self._answer_due(tick, next_due) if tick >= next_due.before else []
            self._waiting.put(self._intakes.take_delivered())
            self.clock = tick
            if end or self._waiting.must_flush(self._find_next_due(), tick):
                updates += self._take_waiting(end)
            return updates
        updates = [*self._take_in_waiting()]
        delivered, corrections = self._intakes.take_delivered(), self._intakes.take_corrections()
        batched = self._find_batched(delivered) if self._multi_tick else set()
        corrected = any(corrections.values())
        marks = self._intakes.mark(delivered)
        try:
            for last, batches, several in plan_steps(
                delivered, self._intakes.by_key, self.clock, tick, self._multi_tick, batched, corrected
            ):
                given = corrections if last == tick else dict.fromkeys(corrections, ())
                self._step(last, batches, given, end and last == tick, several, batched, updates)
        except MemoryError as error:  # to cut deliveries into steps
            self._lose(delivered, marks, tick, end, error, updates)
        return updates

    def _lose(
        self, delivered: Deliveries, marks: Marks, tick: int, end: bool, error: MemoryError, updates: Updates
    ) -> None:
        """End the readers of deliveries that cannot be cut into steps, and clock tick `tick` for all others. Append to `updates`."""
        self._intakes.lose(delivered, marks, tick, error)
        updates += self._end_readers(tick)
        self._take_step(tick, *self._intakes.nothing, end, False, set(), updates)

    # --- deliveries that wait ----------------------------------------------------------------------------------------

    def _find_next_due(self) -> NextDue:
        """Return when an update may be due; compute it after a step, and with it whether one step may end several clock ticks."""
        if self._next_due is None:
            groups = self._registry.groups
            self._multi_tick = all(group.multi_tick for group in groups)
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
        tick, marks = self.clock, self._intakes.mark(delivered)
        updates: Updates = []
        try:
            self._step(tick, delivered, dict.fromkeys(keys, ()), end, True, set(), updates)
        except MemoryError as error:  # to cut deliveries into steps
            self._lose(delivered, marks, tick, end, error, updates)
        return updates

    def _catch_up(self) -> None:
        """Take in the deliveries that wait, as an operation of its own."""
        self._keep_failures(self._take_in_waiting())

    def _keep_failures(self, failures: Sequence[QueryFailure]) -> None:
        """Settle an operation without other updates; the next updates have its failures."""
        self._failures += [each for each in self._settle([*failures]) if isinstance(each, QueryFailure)]

    def _take_in_waiting(self) -> list[QueryFailure]:
        """Take in the deliveries that wait. No update is due for them, but a query may run out of memory: return its failure."""
        failures = []
        for update in self._take_waiting() if self.clock > self._stepped else ():
            if not isinstance(update, QueryFailure):
                raise AssertionError("an update was due and was not given")
            failures.append(update)
        self._next_due = None
        return failures

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
        updates: Updates,
    ) -> None:
        """Take deliveries in and end clock tick `tick`, in several steps if their rows would be too many for one. Append to `updates`."""
        while multi_tick and (cut := self._find_step_end(delivered, tick)) < tick:
            part, delivered = cut_deliveries(delivered, cut)
            self._take_step(cut, part, dict.fromkeys(corrections, ()), False, True, batched, updates)
        self._take_step(tick, delivered, corrections, end, multi_tick, batched, updates)

    def _find_step_end(self, delivered: Deliveries, last: int) -> int:
        """Return the last clock tick, at most `last`, of a step whose rows are not too many."""
        end = self._step_size.find_end(delivered, self._stepped, last)
        for group in self._registry.groups:
            end = group.find_step_end(delivered, self._stepped, end)
        return end

    def _take_step(
        self,
        tick: int,
        delivered: Deliveries,
        corrections: Corrections,
        end: bool,
        multi_tick: bool,
        batched: set[ExtentKey],
        updates: Updates,
    ) -> None:
        """Take one step. Windows that were due before `tick` are answered before its deliveries revise them. Append to `updates`."""
        begun, rows = self._stepped, self._graph.rows_out if multi_tick else 0
        self._tuple_count += sum(len(batch) for batches in delivered.values() for batch in batches)
        while not multi_tick and (earlier := self._find_tick_before(tick, delivered, corrections)) is not None:
            self._intakes.pass_time(earlier)
            updates += self._end_readers(earlier)
            self._end_step(earlier, updates)
        updates += self._make_room(tick, delivered)
        self._intakes.step(tick, delivered, corrections, end, multi_tick, batched)
        updates += self._end_readers(tick)
        self._end_step(tick, updates)
        if multi_tick:
            most = max((sum(map(len, batches)) for batches in delivered.values()), default=0)
            self._step_size.adapt(most, tick - begun, self._graph.rows_out - rows)

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

    def _end_step(self, tick: int, updates: Updates) -> None:
        """Let all operators take their step, append to `updates`, and end queries that cannot go on."""
        self.clock = self._stepped = tick
        self._next_due = None
        failed = self._graph.step(tick)
        updates += self._end_failed(failed, tick)
        count = len(self._queries)
        for group in self._registry.groups:
            try:
                new = group.updates
                if len(self._queries) < count:  # a query that has ended may be answered by this group, too
                    new = [update for update in split_by_query(new) if update.query in self._queries]
                updates += self._leave_room(list(self._registry.select(new)), tick)
            except MemoryError as error:
                failed = {self._queries[variant].key: f"its updates: {error}" for variant in group.numbers}
                updates += self._end_failed(failed, tick)
                continue
            if group.halt is not None:
                for number in dict.fromkeys(self._registry.number_of(variant) for variant in group.numbers):
                    updates.append(QueryFailure(number, group.halt.code, group.halt.message, tick))
                    self._registry.remove(number)
                    self._drop_unused_folds()
        self._step_count += 1
        if self._step_count >= self._tidy_every or self._tuple_count >= self._prune_after:
            self._step_count = self._tuple_count = 0
            updates += self._tidy()
            low, high = thresholds.PRUNE_AFTER_TUPLES
            self._prune_after = min(max(low, self._intakes.held // 2), high)

    def _leave_room(self, updates: Updates, tick: int) -> Updates:
        """Return updates, and in place of those whose text finds no room the failures of their queries.

        Text is made by who passes answers on: there is no way to end a query alone then.
        """
        if not (updates and is_limited() and any(map(_lacks_room, updates))):
            return updates
        single = [*split_by_query(updates)]
        needs = {update.query: estimate_text_bytes(update) for update in single if _lacks_room(update)}
        failures = [
            QueryFailure(number, OUT_OF_MEMORY, f"its answer: no memory for {need:,} bytes of text", tick)
            for number, need in needs.items()
        ]
        kept = [update for update in single if update.query not in needs]
        kept += failures
        for number in needs:
            self._registry.remove(number)
        self._drop_unused_folds()
        return [*kept]

    def _end_failed(self, failed: Mapping[Hashable, str], tick: int) -> list[QueryFailure]:
        """End the queries whose operators ran out of memory in this step, and return their failures."""
        if not failed:
            return []
        reasons = {
            self._registry.number_of(variant): failed[query.key]
            for variant, query in self._queries.items()
            if query.key in failed
        }
        for number in reasons:
            self._registry.remove(number)
        self._drop_unused_folds()
        return [QueryFailure(number, OUT_OF_MEMORY, reason, tick) for number, reason in reasons.items()]

    def _end_readers(self, tick: int) -> list[QueryFailure]:
        """End the queries that read an intake which ran out of memory, and return their failures."""
        failed = self._intakes.failed
        reasons: dict[Hashable, str] = {
            query.key: failed[key]
            for query in (self._queries.values() if failed else ())
            for key in (*query.folds, *query.output_group.extents)
            if key in failed
        }
        return self._end_failed(reasons, tick)

    def _tidy(self) -> list[QueryFailure]:
        """Prune state: drop what no window and no horizon can reach. Returns the failures of queries that ran out of memory then."""
        if self._announced:
            return []
        groups = self._registry.groups
        for group in groups:
            group.ask()
        self._registry.stop_variants(
            lambda switch, variant: switch.is_over(variant, self._queries[variant].output_group.settled)
        )
        self._drop_unused_folds()
        failures = self._end_failed(self._graph.tidy(), self.clock)
        self._intakes.prune([group.histories() for group in self._registry.groups], self.clock)
        return failures + self._end_readers(self.clock)


def _lacks_room(update: Update | SharedUpdate) -> bool:
    need = estimate_text_bytes(update)
    return need > thresholds.UNCHECKED_BYTES and not has_room(need)

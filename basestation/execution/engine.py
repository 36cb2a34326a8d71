"""Engine: standing queries come and go; batches go in, and at the end of each clock tick answers come out.

It has no clock and does no input or output: what time it is, and what was delivered, are arguments.
"""

from dataclasses import replace
from types import MappingProxyType

from acquisition.extent import ExtentKind
from basestation.algebra.node import rebuild, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.execution.columns.next_due import find_earliest
from basestation.execution.description import RunningOperator
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.coalesce import CoalescingBuffer, can_wait
from basestation.execution.ingest.corrections import make_correction
from basestation.execution.ingest.intake import Intake
from basestation.execution.ingest.partial_intake import PartialIntake
from basestation.execution.ingest.step_plan import plan_steps
from basestation.execution.ingest.stored_table import StoredTable
from basestation.execution.operator_builder import (
    RunningQuery,
    StartBeforeRecordError,
    UnsupportedPlanError,
    find_history_extents,
    find_unsupported,
    start_tick,
)
from basestation.execution.output.plan_switch import PlanSwitch
from basestation.execution.plan_interning import PlanInterner
from basestation.planner.executable_rules import EXECUTABLE_RULES, select_rules
from basestation.planner.rewriter import rewrite
from basestation.updates.update import QueryFailure, split_by_query
from innet.operators.acquire import find_acquires

_PLENTY = 2**13, 2**16
"""After half as many tuples as are held, within these bounds, state is tidied, however few steps took them: it is never much more than
it has to be, and memory that is used again is there already."""


_OF_NONE = MappingProxyType({})


class Engine:
    """`clock` is the last clock tick that ended; it begins before tick 0, or before `begun`.

    A recording is sampled from its beginning. Live, a sensed extent is scheduled when the first query needs it (12.3).
    """

    def __init__(self, catalog, begun=0, live=False, rules=EXECUTABLE_RULES, tidy_every=64, timer=None):
        """`timer`, a function that tells the time, is asked before and after what each operator does."""
        self.catalog, self._begun, self._rules = catalog, begun, rules
        self._tidy_every, self._steps, self._taken = tidy_every, 0, 0  # since state was tidied
        self.clock = begun - 1
        streams = [e for e in catalog if e.kind is not ExtentKind.STORED and e.sites is not None]
        # By name of the extent, and by number those of folds.
        self._intakes = {e.name: Intake(e, begun, not live, catalog.tick_ms) for e in streams}
        self._tables = {e.name: StoredTable(e) for e in catalog if e.kind is ExtentKind.STORED}
        self._live = live
        self._queries = {}
        self._successions = {}  # by number those queries that were exchanged
        self._ways = 0  # how many have followed
        self._speaking = {}  # who has something to say at the end of a clock tick: queries, or many of them in one
        self._graph, self._alike = OperatorGraph(timer), PlanInterner()
        self._expected = set()  # the numbers of queries to come
        self._delivered = {name: [] for name in self._intakes}
        self._corrections = {name: [] for name in self._intakes}
        self._plenty = _PLENTY[0]
        self._aside, self._stepped = CoalescingBuffer(), self.clock  # the last clock tick that was a step, or in one
        self._silence = None  # for how long nobody says anything of what comes in time; None: nobody was asked

    def load(self, extent, tick, columns):
        """A version of a stored extent, from its tick on."""
        self._catch_up()
        self._tables[extent].load(tick, columns)

    def announce(self, number, plan):
        """Say that a query will be added later: what it may then ask of the past is kept from now on."""
        self._catch_up()
        self._expected.add(number)
        for extent in find_history_extents(plan.root):
            if extent.name in self._intakes:
                self._intakes[extent.name].keep_history()

    def has_fold(self, fold):
        """Whether somebody is fed by the fold of a number."""
        return fold in self._intakes

    def _unfold(self):
        """Let go of folds by which nobody is fed any more."""
        folds = {each for each in self._intakes if isinstance(each, int)}
        if folds:
            folds -= set().union(*(query.folds for query in self._queries.values()))
        for number in folds:
            for of in (self._intakes, self._delivered, self._corrections):
                del of[number]

    def add(self, number, plan, fed=(), folds=None, reports_from=_OF_NONE, reads=_OF_NONE):
        """Run a query from now on: its first window is the first on the grid after the clock, or after SINCE.

        `fed` are those of its aggregations that partials come for, as Fed; `folds` are by number the folds that begin with
        it, under which partials are delivered. `find_report_starts` says by extent from which tick on readings are reported as
        filtered that do not pass this query either, `reads` the attributes without which a reading was sent for others only.
        NotYet if it cannot be run, TooEarly if it begins before what is on record.
        """
        if number in self._queries or number in self._successions:
            raise ValueError(f"there is a query {number} already")
        missing = find_unsupported(plan)
        if missing:
            raise UnsupportedPlanError(missing)
        self._catch_up()
        since = start_tick(plan.options, self.clock + 1)
        if since is not None and since < self._first_tick(plan):
            raise StartBeforeRecordError(since, self._first_tick(plan))
        self._expected.discard(number)
        self._run(number, plan, fed, folds or {}, reports_from, reads)

    def _run(self, number, plan, fed, folds, reports_from, reads):
        better, _ = rewrite(plan, select_rules(self._rules, [each.node for each in fed]))
        root = rebuild(better.root, lambda node: _over_partials(node, fed)) if fed else better.root
        root = rebuild(root, lambda node: _reading(node, reads)) if reads else root
        if sum(isinstance(node, StreamMerged) for node in walk(root)) < len(fed):
            raise ValueError(f"query {number} is fed by partials for an aggregation that it does not run")
        for fold, operator in folds.items():
            self._fold(fold, operator)
        now = self.clock + 1
        query = RunningQuery(
            number, plan, root, self._graph, self._alike, self._intakes, self._tables, now, self._begun, reports_from
        )
        self._queries[number] = query
        self._speaking[query.output_group] = self._speaking.get(query.output_group, 0) + 1
        for intake in query.sensed:
            intake.epochs.schedule(self.clock + 1)

    # --- one query in several ways -----------------------------------------------------------------------------------

    def start_variant(self, number, plan, fed=(), folds=None, reports_from=_OF_NONE, reads=_OF_NONE):
        """Answer a query that gives windows of time in another way as well, which is not heard until it is handed over; as `add`."""
        self._catch_up()
        self._ways += 1
        self._run(-self._ways, plan, fed, folds or {}, reports_from, reads)
        self._successions.setdefault(number, PlanSwitch(number)).start_variant(-self._ways)

    def switch_variant(self, number):
        """All windows of a query behind the clock are answered in the way that followed."""
        self._catch_up()
        self._successions[number].switch_variant(self.clock)

    def _heard(self, updates):
        """What an engine says of its queries, whichever their ways."""
        if not self._successions:
            return updates
        of = {variant: each for each in self._successions.values() for variant in each.variants}
        return [
            part
            for each in split_by_query(updates)
            for part in (of[each.query].select(each) if each.query in of else (each,))
        ]

    def _let_go(self, over):
        """Stop the ways of which nothing is heard any more."""
        for succession in self._successions.values():
            for variant in [variant for variant in succession.variants if over(succession, variant)]:
                succession.release(variant)
                self._stop(variant)

    def _query_of(self, variant):
        """The number of the query that a way is of."""
        return next((number for number, each in self._successions.items() if variant in each.variants), variant)

    def _answering(self, number):
        """The Query that answers what comes."""
        succession = self._successions.get(number)
        return self._queries[number if succession is None else succession.active]

    # --- folds -------------------------------------------------------------------------------------------------------

    def _fold(self, number, fold):
        if number in self._intakes:  # numbers are used again: who was fed by it before has said all
            self._let_go(
                lambda succession, variant: succession.is_over(variant) and number in self._queries[variant].folds
            )
        extents = dict.fromkeys((fold.extent, *find_acquires(fold)))
        self._intakes[number] = PartialIntake(fold, [self._intakes[name] for name in extents], self.clock + 1)
        self._delivered[number], self._corrections[number] = [], []

    def _first_tick(self, plan):
        """The first tick that a query could begin at: a recording has one beginning, live each extent has its own.

        What motes filtered for those who asked then is not there for one that asks now.
        """
        first = self._begun
        for node in walk(plan.root) if self._live else ():
            extent = getattr(node, "extent", None)
            if extent is not None:
                of = self._tables[extent.name] if extent.kind is ExtentKind.STORED else self._intakes[extent.name]
                begun = of.begun if extent.kind is ExtentKind.STORED else max(of.begun, of.unfiltered_from)
                first = max(first, min(begun, self.clock + 1))
        return first

    def change_join_plan(self, number, plan, which=0):
        """Compute a join of a query by another plan from now on; no answer changes. NoPlan if it is none for that join."""
        self._catch_up()
        self._answering(number).joins[which].change_join_plan(plan)

    def counts(self, number):
        """What each operator below a query has done so far, and with how many it is shared; those below first."""
        self._catch_up()
        return self._graph.counted(self._answering(number).key)

    def describe(self, number) -> tuple[RunningOperator, ...]:
        """The operators that run for a query, from its output down, as EXPLAIN prints them."""
        self._catch_up()
        return self._graph.describe(self._answering(number).key)

    def remove(self, number):
        """Stop a query. KeyError if there is none of that number."""
        self._catch_up()
        if number not in self._queries and number not in self._successions:
            raise KeyError(number)
        succession = self._successions.pop(number, None)
        for variant in (number,) if succession is None else succession.variants:
            self._stop(variant)
        self._unfold()

    def _stop(self, variant):
        query = self._queries.pop(variant)
        query.stop()
        self._speaking[query.output_group] -= 1
        if not self._speaking[query.output_group]:
            del self._speaking[query.output_group]

    def deliver(self, extent, batch):
        """Take tuples, each of which was delivered in the clock tick of its arrival; nothing is said before that ends.

        What arrived in a clock tick that has ended is taken to have come in the one that is going on. Its arrays are held on
        to, and are not to be written to any more.
        """
        if len(batch):
            self._delivered[extent].append(batch)

    def correct(self, correction):
        """Carry out REVISE, DELETE or INSERT after the deliveries of the clock tick that is going on (12.2)."""
        self._corrections[correction.extent.name].append(make_correction(correction))

    def on_clock(self, tick):
        """All clock ticks up to this one end: what every query has to say, query by query."""
        return self._advance(tick, end=False)

    def finish(self, until):
        """Clock tick `until` ends, and with it the recording: all watermarks go to it (1.5)."""
        return self._advance(until, end=True)

    def _advance(self, tick, end):
        if tick <= self.clock:
            raise ValueError(f"clock tick {tick} ends after {self.clock} has ended")
        if self._waits(tick):
            updates = self._due_before(tick) if tick >= self._silence.before else []
            self._aside.put(self._delivered)
            self._delivered = {name: [] for name in self._intakes}
            self.clock = tick
            return updates + self._take_in(end) if end or self._aside.must_flush(self._silence, tick) else updates
        self._catch_up()
        delivered, self._delivered = self._delivered, {name: [] for name in self._intakes}
        corrections, self._corrections = self._corrections, {name: [] for name in self._intakes}
        followed = self._followed(delivered) if self._calm else set()
        corrected = any(corrections.values())
        updates = []
        for moment, batches, steady in plan_steps(
            delivered, self._intakes, self.clock, tick, self._calm, followed, corrected
        ):
            last = moment == tick
            given = corrections if last else {name: [] for name in self._intakes}
            updates += self._step(moment, batches, given, end and last, steady, followed)
        return updates

    # --- what may wait -----------------------------------------------------------------------------------------------

    def _waits(self, tick):
        """Whether nothing that was delivered up to a clock tick changes what was said before."""
        if self._silence is None:
            self._ask()
        if not (self._calm and self._silence) or any(self._corrections.values()):
            return False
        return all(can_wait(of, self._intakes[name], self.clock, tick) for name, of in self._delivered.items() if of)

    def _ask(self):
        """Ask who speaks what may wait."""
        self._calm = all(output_group.multi_tick for output_group in self._speaking) and not self._expected
        self._silence = find_earliest(output_group.next_due for output_group in self._speaking)

    def _due_before(self, tick):
        """What is due before the first of what was delivered up to a clock tick, which then waits on; not where it spans a longer
        time than there was none: then more is due in it, mostly, and all of it is one step.
        """
        first = min((int(of[0].arrival[0]) for of in self._delivered.values() if of), default=tick)
        if not self._stepped < self._silence.before < first or tick - first > first - self._stepped:
            return []
        self.clock = first - 1
        updates = self._take_in()
        self._ask()
        return updates

    def _take_in(self, end=False):
        """One step of all clock ticks behind the last one, in which nothing disturbs."""
        taken = self._aside.flush()
        delivered, none = ({name: of.get(name, []) for name in self._intakes} for of in (taken, {}))
        return self._step(self.clock, delivered, none, end, True, ())

    def _catch_up(self):
        """Take in what waits. Nobody has anything to say of it."""
        if self.clock > self._stepped:
            if self._take_in():
                raise AssertionError("something was due, and was not told")
        self._silence = None

    # --- one clock tick ----------------------------------------------------------------------------------------------

    def _followed(self, delivered):
        """The extents of which nobody has to be told clock tick by clock tick what disturbs them.

        A mark stands before a correction too: then both have a step of their own.
        """
        marked = {name for name, batches in delivered.items() if any(batch.marks for batch in batches)}
        per_tick_extents = marked.union(*(output_group.per_tick_extents for output_group in self._speaking))
        return {name for name, intake in self._intakes.items() if intake.amends and name not in per_tick_extents}

    def _step(self, tick, delivered, corrections, end, multi_tick, followed):
        """What became due before this clock tick is answered before its deliveries revise it."""
        updates = []
        self._taken += sum(len(batch) for batches in delivered.values() for batch in batches)
        while not multi_tick and (moment := self._before(tick, delivered, corrections)) is not None:
            for intake in self._intakes.values():
                intake.step([], [], moment)
            updates += self._end(moment)
        for name, intake in self._intakes.items():
            intake.step(delivered[name], corrections[name], tick, end, multi_tick, multi_tick and name in followed)
        return updates + self._end(tick)

    def _before(self, tick, delivered, corrections):
        """The next clock tick before this one that has to end on its own, or None.

        Where windows are answered before their time is complete (11), also those in which a tuple enters its stream, and
        those before: what was answered till then sees the entry as a revision.
        """
        moments = []
        answers_early = any(output_group.answers_early for output_group in self._speaking)
        if any(output_group.within is not None for output_group in self._speaking):
            entry_ticks = [clock for each in self._intakes.values() for clock in each.entry_ticks()]
            moments = [moment for clock in entry_ticks for moment in (clock - 1, clock)]
        if any(
            each.is_disturbed_by(delivered[name], corrections[name], tick, answers_early)
            for name, each in self._intakes.items()
        ):
            moments.append(tick - 1)
        return min((moment for moment in moments if self.clock < moment < tick), default=None)

    def _end(self, tick):
        self.clock = self._stepped = tick
        self._silence = None
        self._graph.step(tick)
        updates = []
        for output_group in list(self._speaking):
            updates += self._heard(output_group.updates)
            if output_group.halt is not None:
                for number in dict.fromkeys(self._query_of(variant) for variant in output_group.numbers):
                    updates.append(QueryFailure(number, output_group.halt.code, output_group.halt.message, tick))
                    self.remove(number)
        self._steps += 1
        if self._steps >= self._tidy_every or self._taken >= self._plenty:
            self._steps = self._taken = 0
            self._tidy()
            self._plenty = min(max(_PLENTY[0], sum(intake.held for intake in self._intakes.values()) // 2), _PLENTY[1])
        return updates

    def _tidy(self):
        """State is bounded: what no window and no horizon can reach is let go of."""
        if self._expected:
            return
        for output_group in self._speaking:
            output_group.ask()
        self._let_go(
            lambda succession, variant: succession.is_over(variant, self._queries[variant].output_group.settled)
        )
        self._unfold()
        self._graph.tidy()
        histories = [output_group.histories() for output_group in self._speaking]
        for name, intake in self._intakes.items():
            intake.forget()
            intake.forget_history(min((read[name] for read in histories if name in read), default=None))

    def ledger(self):
        """What became of everything that was delivered, by extent."""
        self._catch_up()
        extents = ((name, intake) for name, intake in self._intakes.items() if isinstance(intake, Intake))
        return {name: dict(sorted(intake.counts.items())) for name, intake in extents}


def _reading(node, reads):
    """What an extent gives to a query that reads something of it: whole readings."""
    return replace(node, reads=reads.get(node.extent.name, ())) if isinstance(node, StreamAcquire) else node


def _over_partials(node, fed):
    """An aggregation over partials if it is one of the fed."""
    found = next((each for each in fed if each.node == node), None)
    return node if found is None else replace(node, child=StreamMerged(found.number, found.sources, node.child))

"""Station: the running service, which joins transport, links, world, engine, archive and results.

The owner of a clock (a test, a simulation, a daemon) calls `Station.step(now)`; nothing happens in between.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

import acquisition.downlink
import gateway.downlink
import gateway.uplink
from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.batch import Batch, unit_weights
from acquisition.extent import Catalog
from acquisition.ticks import tick_of_ms
from basestation import downlink, uplink
from basestation.algebra.vector import Vector
from basestation.archive.interface import Archive
from basestation.archive.versions import batch_of_version
from basestation.controller import migration
from basestation.controller.active_hours import ActiveHours
from basestation.controller.admission import bind_corrections, bind_single_query
from basestation.controller.agenda import is_agenda_pending, round_ticks
from basestation.controller.dispatch import dispatch, on_agenda_start
from basestation.controller.expiry import expire_queries
from basestation.controller.lifetime import recheck_lifetimes
from basestation.controller.migration import MigrationEvent, MigrationListener, advance_migrations, start_migrations
from basestation.controller.network_plan import PlanCache
from basestation.controller.plan_review import MOST_DROPPED, PlanReview
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord, QueryState
from basestation.controller.world import World
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.counters import OperatorShare
from basestation.execution.engine import Engine
from basestation.execution.memory_failures import find_ended, settle_past
from basestation.execution.past_windows import PastRange, PastWindows, find_past, find_resumed_past
from basestation.planner.plan import Correction, Plan
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.results.feed import Feed
from basestation.results.schema import schema_of
from basestation.station import query_changes
from basestation.station.clock_skew import ClockSkewDetector, find_timestamps
from basestation.station.declared_extents import read_declaration
from basestation.station.latest_readings import LatestReadings
from basestation.station.ledger import Ledger
from basestation.station.mote_status import MoteHealth, MoteWatch
from basestation.station.operational_events import OperationalEventLog
from basestation.station.past_answers import PastAnswers
from basestation.station.past_start import PastStart
from basestation.station.query_accounts import TIMER, QueryAccounts, find_share
from basestation.station.statistics_collector import StatisticsCollector
from basestation.updates.update import QueryFailure, Update
from gateway.codec import FrameDecoder
from gateway.frame import MAX_FRAME, Frame, HopPath, MoteId
from gateway.link import LinkPolicy, Links
from gateway.reconciler import MoteReconcilers
from gateway.transports import Transport
from innet.deployment import Deployment
from innet.routing.failure_detector import FailureDetector

Resumption = Callable[[int, World, Engine, PastRange | None], downlink.QueryChange]
"""Lets a query run again, as `query_changes.resume` does."""
LEAST_GAP = 64
"""Numbers of samplings and folds are a byte; after a restore a station leaves out from a quarter to a half of them."""


def ignore_migration(event: MigrationEvent) -> None:
    """The default listener of migrations; a named function, so that a station can be pickled."""


class Station:
    """All times are ms since tick 0. `boot` is the number of this start of the station; no two starts have the same.

    Without a `deployment` the sensors of the motes are unknown, and motes deliver all readings. With one, `pushdown` says how
    much of the queries runs on motes; with an `agenda` motes sleep outside their slots. Running queries may migrate to other
    plans; `on_migration` is called then.
    """

    # Defaults of the class: the state of an older program has none.
    _review: PlanReview | None = None
    _dropped_reviews = 0  # in a row

    def __init__(
        self,
        catalog: Catalog,
        transport: Transport,
        archive: Archive,
        boot: int,
        now_ms: int,
        policy: LinkPolicy | None = None,
        deployment: Deployment | None = None,
        pushdown: PushdownPolicy = PushdownPolicy.PLANNED,
        agenda: bool = False,
        on_migration: MigrationListener = ignore_migration,
    ) -> None:
        self.world = World.initial(catalog, deployment, pushdown, agenda)
        self.feed = Feed()
        self.links = Links(boot, policy or LinkPolicy())
        mtu = MAX_FRAME if deployment is None else deployment.mtu
        self.reconcilers = MoteReconcilers(self.links, self._clock, self._route_to, mtu=mtu)
        self.failure_detector = FailureDetector()
        self.clock_skew = ClockSkewDetector(self.reconcilers.policy.clock_tolerance_ms)
        self.engine = Engine(catalog, begun=tick_of_ms(now_ms, catalog.tick_ms), live=True, timer=TIMER)
        self.engine.archive_corrections()
        self.accounts = QueryAccounts()
        self.errors: Counter[str] = Counter()
        self.events = OperationalEventLog()
        self.ledger = Ledger(catalog, self.links.by_mote)
        self.latest, self.motes = LatestReadings(), MoteWatch()
        self._transport, self.archive, self._decoder = transport, archive, FrameDecoder(mtu)
        self._recalled: dict[str, Batch] = {}  # archived tuples for the past windows of the next query
        self.past = PastAnswers(now_ms)
        self._statistics, self._on_migration = StatisticsCollector(), on_migration
        self._tick = tick_of_ms(now_ms, catalog.tick_ms)
        self._stepped = self._reviewed = self._tick  # the ticks of the last step, and of the last use of statistics
        self._changed: int | None = None  # the tick in which a query started or ended, until plans are reviewed

    # --- requests ----------------------------------------------------------------------------------------------------

    def declare(self, text: str, now_ms: int) -> None:
        """Add the pushed or stored extent that a text declares. DiagnosticError, ExtentError say why it cannot be."""
        extent = read_declaration(text, self.world.catalog)
        self._answer(now_ms)
        self.engine.declare(extent)
        self.world = replace(self.world, catalog=self.engine.catalog)
        self.ledger.catalog = self.engine.catalog

    def load(self, extent: str, columns: Mapping[str, Vector], now_ms: int) -> None:
        """Replace the contents of a stored extent from now on."""
        self._answer(now_ms)
        declared = self.world.catalog.extents[extent]
        self.archive.append(declared, batch_of_version(declared, self._tick, columns))
        self.engine.load(extent, self._tick, columns)
        self.past.load(extent, self._tick, columns)

    def push(
        self, extent: str, tick: IntArray, columns: Mapping[str, AnyArray], valid: Mapping[str, BoolArray], now_ms: int
    ) -> None:
        """Take tuples of a pushed extent, delivered now. A time stamp of -1 is that of the delivery."""
        self._answer(now_ms)
        arrival = np.full(len(tick), self._tick)
        site = np.zeros(len(tick), np.int64)
        batch = Batch(np.where(tick < 0, arrival, tick), site, arrival, unit_weights(len(tick)), columns, valid)
        self.archive.append(self.world.catalog.extents[extent], batch)
        self.engine.deliver(extent, batch)
        self.past.deliver(extent, batch)

    def recall(self, extent: str, batch: Batch) -> None:
        """Take tuples of the archive for the past windows of the query that is submitted next."""
        self._recalled[extent] = batch

    def correct(self, text: str, now_ms: int) -> tuple[Correction, ...]:
        """Carry out statements of REVISE, DELETE and INSERT. DiagnosticError where one of them is wrong: then none is."""
        self._answer(now_ms)
        corrections = bind_corrections(text, self.world)
        for correction in corrections:
            self.engine.correct(correction)
            self.past.correct(correction)
        return corrections

    def submit(self, text: str, now_ms: int, name: str | None = None, active: ActiveHours | None = None) -> QueryRecord:
        """Accept a query and send motes their part of it.

        DiagnosticError if it cannot run, QueryStateError if another query has its name.
        """
        self._answer(now_ms)
        start = self._take_past_start(text)
        query_changes.check_name(name, self.world)
        change = downlink.deploy(text, self.world, self.engine, name, past=None if start is None else start.past)
        query = self._apply(query_changes.with_hours(change, active), now_ms)
        return self._begin_past(query, start, now_ms)

    def _take_past_start(self, query: str | int) -> PastStart | None:
        """The past of a query, as for `find_past`, that begins now, where tuples of the archive were taken for it."""
        recalled, self._recalled = self._recalled, {}
        if not recalled:
            return None
        self.engine.prune()
        plan, past = self.find_past(query)
        return None if past is None else PastStart(plan, past, recalled, isinstance(query, int))

    def _begin_past(self, query: QueryRecord, start: PastStart | None, now_ms: int) -> QueryRecord:
        """Answer the past windows of a query from archived tuples; the query as it is then."""
        number = query.number
        if start is not None and query.live:
            if number in self.engine:  # replayed, it runs there for its schedules alone
                self.engine.limit(number, NEVER - 1 if start.past.is_replayed else start.past.seam, NEVER)
            while number in self.past.held:  # of a query that was paused before it had answered its past
                self._publish_past(number, self.past.advance(number, self.engine.clock, now_ms), now_ms)
            if self.world.queries[number].live:
                self._publish_past(number, self.past.begin(query, start, self.engine, now_ms), now_ms)
        return self.world.queries[number]

    def refuse(self, now_ms: int) -> None:
        """Do what a submission does before it is refused: end the clock ticks before now, and drop what was recalled for it."""
        self._answer(now_ms)
        if self._recalled:
            self._recalled = {}
            self.engine.prune()

    @property
    def past_count(self) -> int:
        """How many queries have past windows that may change."""
        return len(self.past.by_query)

    def usage(self, before: Mapping[int, int]) -> tuple[dict[int, OperatorShare], dict[int, int]]:
        """The shares of running queries, with the engines of their past, since `before`; and the times now, by operator.

        The engine of a past has the number of its query, negated.
        """
        shares, times = self.engine.usage(self.world.live, before)
        for number in self.past.by_query.keys() & shares.keys():
            past = self.past.by_query[number].share
            times[-number] = round(past.time)
            shares[number] += replace(past, time=past.time - before.get(-number, 0))
        return shares, times

    def share(self, number: int) -> OperatorShare | None:
        """The share of a query, with the engine of its past; None where it does not run."""
        share, past = find_share(self.engine, number), self.past.by_query.get(number)
        return share if share is None or past is None else share + past.share

    def prune(self, now_ms: int) -> None:
        """Drop what the engine need not keep, so that `find_past` finds what a submission does."""
        self._answer(now_ms)
        self.engine.prune()

    def find_past(self, query: str | int) -> tuple[Plan, PastRange | None]:
        """A query, and its windows that the engine has no tuples for any more. DiagnosticError where it is wrong.

        It is the text of a new one, or the number of one that runs again and has answered the windows before now.
        """
        if isinstance(query, str):
            plan = bind_single_query(query, self.world)
            return plan, find_past(plan, self.engine)
        plan = query_changes.plan_resumption(self.world.queries[query], self.world, self.engine.clock + 1)
        return plan, find_resumed_past(plan, self.engine)

    def replace(
        self, number: int, text: str, now_ms: int, name: str | None = None, active: ActiveHours | None = None
    ) -> QueryRecord:
        """Start a query that answers the windows from now on in the place of another. Returns the new one."""
        self._answer(now_ms)
        start = self._take_past_start(text)
        past = None if start is None else start.past
        change = query_changes.supersede(number, text, self.world, self.engine, name, active, past)
        self.past.limit(number, self.engine.clock)
        return self._begin_past(self._apply(change, now_ms), start, now_ms)

    def stop(self, number: int, now_ms: int) -> QueryRecord:
        """Stop a query. KeyError if there is none of that number."""
        self._answer(now_ms)
        return self._apply(query_changes.withdraw(number, self.world, self.engine), now_ms)

    def pause(self, number: int, now_ms: int, reason: str = "") -> QueryRecord:
        """Let a query run no more until it is resumed; nothing revises its windows. KeyError, QueryStateError."""
        self._answer(now_ms)
        paused = self._apply(query_changes.pause(number, self.world, self.engine, reason), now_ms)
        self.past.drop_ended(self.world.queries)
        return paused

    def fail(self, number: int, now_ms: int, reason: str) -> QueryRecord:
        """End a query that exceeds a limit. KeyError, QueryStateError."""
        self._answer(now_ms)
        failed = self._apply(query_changes.fail(number, self.world, self.engine, reason), now_ms)
        self.past.drop(number)
        return failed

    def enter_hours(self, number: int, now_ms: int) -> QueryRecord:
        """Resume a query whose active hours begin; where it cannot run any more, it ends with the reason."""
        return self._run_again(number, now_ms, query_changes.enter_hours)

    def resume(self, number: int, now_ms: int) -> QueryRecord:
        """Run a paused or failed query again. KeyError, QueryStateError, DiagnosticError."""
        return self._run_again(number, now_ms, query_changes.resume)

    def _run_again(self, number: int, now_ms: int, change: Resumption) -> QueryRecord:
        self._answer(now_ms)
        start = self._take_past_start(number)
        query = self._apply(change(number, self.world, self.engine, None if start is None else start.past), now_ms)
        return self._begin_past(query, start, now_ms)

    def drain(self, number: int, now_ms: int) -> QueryRecord:
        """Let a query answer the windows up to now, and no more. KeyError, QueryStateError."""
        self._answer(now_ms)
        change = query_changes.drain(number, self.world, self.engine)
        self.past.limit(number, self.engine.clock)
        return self._apply(change, now_ms)

    def restart_links(self, boot: int) -> None:
        """Number frames to motes anew, and ask each mote for its state.

        A new or restored station does not know which numbers were used before: motes drop a frame whose number they had. For
        the same reason it leaves out numbers of samplings and folds: motes may have readings under them that the station would
        read as those of its own.
        """
        self.links.restart(boot)
        self.world = self.world.with_number_gap(LEAST_GAP + boot * 37 % LEAST_GAP)
        for reconciler in self.reconcilers.by_mote.values():
            reconciler.forget_report()

    def retire(self) -> tuple[QueryRecord, ...]:
        """Forget the queries that have ended and whose answers cannot change any more; return them."""
        if len(self.world.queries) == len(self.world.live):
            return ()
        over = tuple(query for query in self.world.queries.values() if query.has_ended and self._is_answered(query))
        for query in over:
            if query.state is QueryState.FINISHED:
                self.engine.remove(query.number)
            self.feed.close(query.number)
            self.world = self.world.without_query(query.number)
        return over

    def _is_answered(self, query: QueryRecord) -> bool:
        last = query.last_tick
        if query.state is QueryState.STOPPED:
            return True
        is_held = query.number in self.past.held
        return last is not None and not is_held and self.engine.is_answered(query.number, last)

    def account(self) -> dict[str, dict[int, dict[str, int]]]:
        """By extent and mote, the account of each due reading (`basestation.station.ledger`)."""
        return self.ledger.sums(max(self._tick, self.engine.clock))

    # --- one step ----------------------------------------------------------------------------------------------------

    def step(self, now_ms: int, keeps_plans: bool = False) -> bool:
        """Answer the clock ticks that are over, take what motes sent, and send them what is due.

        Returns whether a review found no cheaper plan. A replay knows that, and skips the search by `keeps_plans`.
        """
        self._answer(now_ms)
        self._go_on_with_past(now_ms)
        world = self._ingest(now_ms)
        settled = self.reconcilers.up_to_date_motes()
        world = self._maintain_links(world, settled, now_ms)
        world, kept_plans = self._replan(world, settled, now_ms, keeps_plans)
        self._dispatch(world, settled, now_ms)
        for mote, health in self.motes.update(self.world, self.reconcilers.by_mote, now_ms):
            self.events.note_mote(now_ms, mote, health is MoteHealth.LOST)
        return kept_plans

    def _answer(self, now_ms: int) -> None:
        """End the clock ticks before now. Data delivered since the last step belongs to the tick of that step."""
        now = tick_of_ms(now_ms, self.world.catalog.tick_ms)
        for ended in (self._tick, now - 1):
            if self.engine.clock < ended < now:
                self._end_failed(uplink.answer(self.engine, self.feed, ended, self.past.held), now_ms)
                self._answer_past(ended, now_ms)
                for extent, corrected in self.engine.take_applied():
                    self.archive.append_corrections(self.world.catalog.extents[extent], corrected)
        self._tick = max(self._tick, now)

    def _go_on_with_past(self, now_ms: int) -> None:
        """Answer a slice of the past of a query, where one is due."""
        number = self.past.find_due(self.world.queries, now_ms)
        if number is not None:
            self._publish_past(number, self.past.advance(number, self.engine.clock, now_ms), now_ms)

    def _publish_past(self, number: int, updates: Sequence[Update], now_ms: int) -> None:
        past, updates = self.past.by_query.get(number), settle_past(self.engine.failure_log, updates)
        if isinstance(past, PastWindows) and past.slices > 1 and not any(find_ended(updates)):
            self.events.note_past(now_ms, number, past.answered, past.slices)
        self._end_failed(uplink.publish_updates(self.feed, updates), now_ms)

    def _answer_past(self, clock: int, now_ms: int) -> None:
        """Revise the past windows of queries, and forget those that may not change any more."""
        self.past.drop_ended(self.world.queries)
        for number in list(self.past.by_query):
            updates = settle_past(self.engine.failure_log, self.past.end_clock(number, clock))
            self._end_failed(uplink.publish_updates(self.feed, updates), now_ms)
        self.past.drop_ended(self.world.queries)
        self.past.drop_settled()

    def _end_failed(self, failures: Iterable[QueryFailure], now_ms: int) -> None:
        """End the queries that one of their engines could not go on with."""
        for failure in failures:
            if failure.query in self.engine:
                self.engine.remove(failure.query)
            self.past.drop(failure.query)
            reason = f"{failure.code}: {failure.message}"
            self._apply(
                query_changes.end_query(failure.query, QueryEvent.FAIL, self.world, self.engine, reason), now_ms
            )

    def _ingest(self, now_ms: int) -> World:
        """Take all frames that arrived and acknowledge them: motes forget them only after they are safe."""
        world, tick_ms = self.world, self.world.catalog.tick_ms
        arrived = gateway.uplink.receive(self._transport.receive(), self._decoder, self.links)
        if arrived.is_empty:
            return world
        frames = self._drop_unknown_motes(arrived.frames)
        received = uplink.receive(frames, world, self.engine, self.archive, self._tick)
        for extent, batch in received.readings.batches:
            self.past.deliver(extent, batch)
        self.ledger.record_frames(frames, arrived.duplicates, received.readings, self._tick)
        self.ledger.record_all_partials(received.partials, world.folds, self._tick)
        self._statistics.record(received.readings, received.batches)
        self.latest.record(received.readings.batches)
        arrived_readings = ((extent, len(batch)) for extent, batch in received.readings.batches)
        self.accounts.record_arrivals(arrived_readings, ((fold, len(each)) for fold, each in received.batches), world)
        of_motes = [frame for frame in frames if frame.mote not in world.tree.roots]
        status_errors = self.reconcilers.receive(of_motes, now_ms)
        merged = uplink.find_merged(received, frames)
        self.reconcilers.note_alive((mote for mote, _ in merged), now_ms)
        stamps = find_timestamps(received.readings, received.partials, tick_ms)
        for site in self.clock_skew.find_skewed_sites(stamps, now_ms, world.agenda):
            self.reconcilers.of(MoteId(site)).note_clock_wrong(now_ms)
        seen = [*((int(frame.mote), int(frame.sender)) for frame in of_motes), *merged]
        self.failure_detector.record_arrivals(seen, world.tree, now_ms)
        self.errors.update(error.code for error in arrived.errors)
        self.errors.update(error.code for error in received.errors)
        self.errors.update(error.code for error in status_errors)
        gateway.downlink.send_acks(arrived.acks, self._transport)
        return received.world

    def _drop_unknown_motes(self, frames: tuple[Frame, ...]) -> list[Frame]:
        """The frames of declared motes; motes of other networks nearby are counted as errors."""
        declared = self.world.declared_motes
        known = [frame for frame in frames if declared is None or frame.mote in declared]
        self.errors.update(["stranger"] * (len(frames) - len(known)))
        return known

    def _maintain_links(self, world: World, settled: frozenset[int], now_ms: int) -> World:
        """Route around motes that have been silent too long, of those that have their desired state (`settled`)."""
        tick_ms = world.catalog.tick_ms
        limits_ms = {site: ticks * tick_ms for site, ticks in world.silence_limits.items() if site in settled}
        for mote in sorted(self.failure_detector.find_overdue(world.tree, limits_ms, now_ms)):
            self.reconcilers.of(MoteId(mote)).note_overdue(now_ms)
        return world.with_silent(self.failure_detector.motes)

    def _replan(self, world: World, settled: frozenset[int], now_ms: int, keeps_plans: bool) -> tuple[World, bool]:
        """Advance migrations, follow changes of the routing tree and of the agenda, review plans, expire queries.

        Returns the world, and whether a review found no cheaper plan.
        """
        plans = PlanCache(self.engine.clock + 1)
        world = advance_migrations(world, self.engine, settled, plans, self._on_migration)
        agenda_starts = self._agenda_starts()
        if world.tree.parent != self.world.tree.parent:
            world = recheck_lifetimes(dispatch(world, plans), plans)
        elif agenda_starts:
            self.failure_detector.begin(world.tree.parent, now_ms)
            world = recheck_lifetimes(on_agenda_start(world, plans), plans)
        world, begins = self._prepare_review(world)
        if begins:
            at_once = self._dropped_reviews >= MOST_DROPPED
            self._review = PlanReview(world, plans.now, migration.MIN_SAVING, at_once)
        reviewed, has_kept = self._review_plans(world, plans, keeps_plans)
        return expire_queries(reviewed, plans), has_kept

    def _review_plans(self, world: World, plans: PlanCache, keeps_plans: bool) -> tuple[World, bool]:
        """Start the migrations of a review whose result counts now; return whether it kept all plans.

        A review is dropped where its queries or routes have changed, and another one follows. The log of an older program has
        the result of a review in the look in which it begins.
        """
        review = self._review
        if review is None:
            return world, False
        if not review.is_about(world) or is_agenda_pending(world, self._tick):
            self._review, self._changed = None, self._tick
            self._dropped_reviews += 1
            return world, False
        if not (review.is_due or keeps_plans):
            review.count_look()
            return world, False
        self._review, self._dropped_reviews = None, 0
        reviewed = world if keeps_plans else start_migrations(world, self.engine, plans, self._on_migration, review)
        return reviewed, reviewed is world

    def search_on(self) -> None:
        """Do a part of the search of a review, between two steps. A replay does none, and searches when the result counts."""
        if self._review is not None:
            self._review.advance()

    def _prepare_review(self, world: World) -> tuple[World, bool]:
        """Return the world with newest statistics, and whether a review of running queries begins now.

        One does regularly, by new statistics, and some time after a query started or ended.
        """
        if self._review is not None or is_agenda_pending(world, self._tick):
            return world, False
        if self._tick >= self._reviewed + migration.REVIEW_ROUNDS * round_ticks(world):
            self._reviewed = self._tick
            world = replace(world, statistics=self._statistics.collect(world))
        elif self._changed is None or self._tick < self._changed + migration.QUIET_ROUNDS * round_ticks(world):
            return world, False
        self._changed = None
        return world, True

    def _agenda_starts(self) -> bool:
        """Whether motes changed to their agenda since the last step."""
        agenda = self.world.agenda
        starts = agenda is not None and self._stepped < agenda.begin <= self._tick
        self._stepped = self._tick
        return starts

    def _dispatch(self, world: World, settled: frozenset[int], now_ms: int) -> None:
        """Send motes their desired state and all else that is due."""
        if world.desired is not self.world.desired:
            gateway.downlink.set_desired(world.desired, self.reconcilers, now_ms)
        elif not is_agenda_pending(world, self.engine.clock + 1):
            world = world.with_settled(settled)
        self._become(world, now_ms)
        self._send(now_ms)

    # --- shared by requests and steps --------------------------------------------------------------------------------

    def _apply(self, change: downlink.QueryChange, now_ms: int) -> QueryRecord:
        self._changed = self._tick
        self.feed.open(schema_of(change.query.number, change.query.plan))
        gateway.downlink.set_desired(change.world.desired, self.reconcilers, now_ms)
        self._become(change.world, now_ms)
        self._send(now_ms)
        return change.query

    def _become(self, world: World, now_ms: int) -> None:
        self.events.compare(self.world, world, now_ms)
        if world.scheduled is not self.world.scheduled:
            self.ledger.set_schedules(world.scheduled, self._tick)
        self.world = world

    def _route_to(self, mote: MoteId) -> HopPath:
        return self.world.route_to(mote)

    def _clock(self, now_ms: int) -> bytes:
        return acquisition.downlink.encode_clock(now_ms, self.world.catalog.tick_ms)

    def _send(self, now_ms: int) -> None:
        gateway.downlink.maintain(self.reconcilers, self._transport, now_ms)
        gateway.downlink.send_due(self.reconcilers, self._transport, now_ms)

"""The station put together: transport, links, world, engine, archive, results; and the server that shows it.

`Station.step(now)` is all that happens at one moment; whoever owns a clock calls it: a test, a simulation, a daemon.
"""

import socket
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import acquisition.downlink
import gateway.downlink
import gateway.uplink
from acquisition.extent import Catalog
from acquisition.ticks import tick_of_ms
from basestation import downlink, uplink
from basestation.algebra.vector import Vector
from basestation.archive.interface import Archive
from basestation.controller import migration
from basestation.controller.agenda import is_agenda_pending, round_ticks
from basestation.controller.dispatch import dispatch, on_agenda_start
from basestation.controller.expiry import expire_queries
from basestation.controller.lifetime import recheck_lifetimes
from basestation.controller.query_lifecycle import QueryEvent, QueryRecord
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.results.feed import Feed
from basestation.results.schema import schema_of
from basestation.station.clock_skew import ClockSkewDetector
from basestation.station.ledger import Ledger
from basestation.station.operational_events import OperationalEventLog
from basestation.station.statistics_collector import StatisticsCollector
from gateway.codec import FrameDecoder
from gateway.frame import MAX_FRAME, HopPath, MoteId
from gateway.link import LinkPolicy, Links
from gateway.reconciler import MoteReconcilers
from gateway.transports import Transport
from innet.deployment import Deployment
from innet.routing.failure_detector import FailureDetector


def ignore_migration(decided: migration.MigrationEvent) -> None:
    """The listener of a station whose migrations interest nothing else."""


class Station:
    """`boot` is the number of this start of the station; no two starts may have the same. Times are ms since tick 0.

    Without a `deployment` nothing is known of the motes' sensors, and everything is collected; with one, `moves` says how
    much of the queries runs on motes, and with an `agenda` they sleep but for their slots. What is planned may be exchanged
    while queries run; `decided` hears of that.
    """

    def __init__(self, catalog: Catalog, transport: Transport, archive: Archive, boot: int, now_ms: int,
                 policy: LinkPolicy | None = None, deployment: Deployment | None = None,
                 moves: PushdownPolicy = PushdownPolicy.PLANNED, agenda: bool = False,
                 decided: migration.MigrationListener = ignore_migration) -> None:  # fmt: skip
        self.world = World.initial(catalog, deployment, moves, agenda)
        self.feed = Feed()
        self.links = Links(boot, policy or LinkPolicy())
        mtu = MAX_FRAME if deployment is None else deployment.mtu
        self.reconcilers = MoteReconcilers(self.links, self._clock, self._way, mtu=mtu)
        self.failure_detector = FailureDetector()
        self.clocks = ClockSkewDetector(self.reconcilers.policy.clock_tolerance_ms)
        self.engine = Engine(catalog, begun=tick_of_ms(now_ms, catalog.tick_ms), live=True)
        self.errors: Counter[str] = Counter()
        self.incidents = OperationalEventLog()
        self.ledger = Ledger(catalog, self.links.by_mote)
        self._transport, self._archive, self._decoder = transport, archive, FrameDecoder(mtu)
        self._gathering, self._decided = StatisticsCollector(), decided
        self._tick = self._looked = self._reviewed = tick_of_ms(now_ms, catalog.tick_ms)
        self._changed: int | None = None  # when a query came or went last, until that was weighed

    def load(self, extent: str, columns: Mapping[str, Vector], now_ms: int) -> None:
        """The contents of a stored extent, from now on."""
        self._end_ticks(now_ms)
        self.engine.load(extent, self._tick, columns)

    def submit(self, text: str, now_ms: int) -> QueryRecord:
        """Accept a query and send its motes what they need. Refused says why it cannot be."""
        self._end_ticks(now_ms)
        return self._carry_out(downlink.deploy(text, self.world, self.engine), now_ms)

    def stop(self, number: int, now_ms: int) -> QueryRecord:
        """Stop a query; KeyError if there is none of that number."""
        self._end_ticks(now_ms)
        return self._carry_out(downlink.withdraw(number, self.world, self.engine), now_ms)

    def step(self, now_ms: int) -> None:
        """End the clock ticks that are over, take what came, acknowledge it, look after the motes."""
        self._end_ticks(now_ms)
        arrivals = gateway.uplink.receive(self._transport.receive(), self._decoder, self.links)
        known = self.world.known
        frames = [frame for frame in arrivals.frames if known is None or frame.mote in known]
        self.errors.update(["stranger"] * (len(arrivals.frames) - len(frames)))
        risen = uplink.receive(
            frames,
            arrivals.duplicates,
            self.world,
            self.engine,
            self._archive,
            self._gathering,
            self.ledger,
            self._tick,
        )
        of_motes = [frame for frame in frames if frame.mote not in self.world.tree.roots]
        strange = self.reconcilers.receive(of_motes, now_ms)
        self.reconcilers.note_alive((mote for mote, _ in risen.merged), now_ms)
        for mote in self.clocks.find_skewed_sites(risen.stamps, now_ms, self.world.agenda):
            self.reconcilers.of(mote).note_clock_wrong(now_ms)
        came = [*((frame.mote, frame.sender) for frame in of_motes), *risen.merged]
        self.failure_detector.record_arrivals(came, self.world.tree, now_ms)
        self.errors.update(error.code for error in (*arrivals.errors, *risen.errors, *strange))
        gateway.downlink.send_acks(arrivals.acks, self._transport)
        settled = self.reconcilers.up_to_date_motes()
        world, now = self._listen(risen.world, settled, now_ms), self.engine.clock + 1
        world = migration.advance_migrations(world, self.engine, settled, self._decided)
        begins = self._agenda_begins()
        if world.tree.parent != self.world.tree.parent:
            world = recheck_lifetimes(dispatch(world, now))
        elif begins:
            self.failure_detector.begin(world.tree.parent, now_ms)
            world = recheck_lifetimes(on_agenda_start(world, now))
        world = expire_queries(self._review(world), now)
        if world.desired is not self.world.desired:
            gateway.downlink.set_desired(world.desired, self.reconcilers, now_ms)
        elif not is_agenda_pending(world, now):
            world = world.with_settled(settled)
        self._become(world, now_ms)
        self._speak(now_ms)

    def account(self) -> dict[str, dict[int, dict[str, int]]]:
        """By extent and mote, what became of each reading that was due (`basestation.station.ledger`)."""
        return self.ledger.sums(max(self._tick, self.engine.clock))

    def _review(self, world: World) -> World:
        """Weigh again what was decided: now and then by what has come since the last time, and when other queries run."""
        if is_agenda_pending(world, self._tick):
            return world
        due = self._tick >= self._reviewed + migration.REVIEW_ROUNDS * round_ticks(world)
        if due:
            self._reviewed = self._tick
            world = replace(world, statistics=self._gathering.collect(world))
        elif self._changed is None or self._tick < self._changed + migration.QUIET_ROUNDS * round_ticks(world):
            return world
        self._changed = None
        return migration.start_migrations(world, self.engine, self._decided)

    def _listen(self, world: World, up_to_date_motes: frozenset[int], now_ms: int) -> World:
        """Find out who is silent of those that have what they should have."""
        tick_ms = world.catalog.tick_ms
        most = {site: ticks * tick_ms for site, ticks in world.silence_limits.items() if site in up_to_date_motes}
        for mote in sorted(self.failure_detector.find_overdue(world.tree, most, now_ms)):
            self.reconcilers.of(mote).note_overdue(now_ms)
        return world.with_silent(self.failure_detector.motes)

    def _agenda_begins(self) -> bool:
        """Whether motes change to their agenda in this clock tick: what they did while they were told of it is not in it."""
        begun = self.world.agenda is not None and self._looked < self.world.agenda.begin <= self._tick
        self._looked = self._tick
        return begun

    def _end_ticks(self, now_ms: int) -> None:
        """What was delivered belongs to the tick of the last step; then there may have been ticks without a step."""
        now = tick_of_ms(now_ms, self.world.catalog.tick_ms)
        for ended in (self._tick, now - 1):
            if self.engine.clock < ended < now:
                for number in uplink.answer(self.engine, self.feed, ended):
                    self._carry_out(downlink.end_query(number, QueryEvent.FAIL, self.world, self.engine), now_ms)
        self._tick = max(self._tick, now)

    def _carry_out(self, deployment: downlink.QueryChange, now_ms: int) -> QueryRecord:
        self._changed = self._tick
        self.feed.open(schema_of(deployment.query.number, deployment.query.plan))
        gateway.downlink.set_desired(deployment.world.desired, self.reconcilers, now_ms)
        self._become(deployment.world, now_ms)
        self._speak(now_ms)
        return deployment.query

    def _become(self, world: World, now_ms: int) -> None:
        self.incidents.compare(self.world, world, now_ms)
        if world.scheduled is not self.world.scheduled:
            self.ledger.desire(world.scheduled, self._tick)
        self.world = world

    def _way(self, mote: MoteId) -> HopPath:
        return self.world.way(mote)

    def _clock(self, now_ms: int) -> bytes:
        return acquisition.downlink.encode_clock(now_ms, self.world.catalog.tick_ms)

    def _speak(self, now_ms: int) -> None:
        gateway.downlink.maintain(self.reconcilers, self._transport, now_ms)
        gateway.downlink.send_due(self.reconcilers, self._transport, now_ms)


class RestServer:
    """The REST interface on a thread of its own. Port 0 takes a free one; `url` says which."""

    def __init__(self, station: Station, token: str | None, host: str = "127.0.0.1", port: int = 0) -> None:
        import uvicorn

        from basestation.rest.api import make_api

        api = make_api(station.feed, station.world.catalog.tick_ms, token)
        self._socket = socket.create_server((host, port))
        self.url = "http://{}:{}".format(*self._socket.getsockname()[:2])
        self._server = uvicorn.Server(uvicorn.Config(api, log_level="warning", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="rest", daemon=True)

    def __enter__(self) -> "RestServer":
        # The socket listens already: what connects before uvicorn is up waits in its queue.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

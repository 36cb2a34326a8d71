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
from basestation.archive.interface import Store
from basestation.controller import migration
from basestation.controller.agenda import pending, round_of
from basestation.controller.dispatch import begun, commanded
from basestation.controller.expiry import passed
from basestation.controller.lifetime import judged
from basestation.controller.query_lifecycle import Event, Query
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.planner.pushdown_policy import Moves
from basestation.results.feed import Feed
from basestation.results.schema import shape_of
from basestation.station.clock_skew import Clocks
from basestation.station.ledger import Ledger
from basestation.station.operational_events import Incidents
from basestation.station.statistics_collector import Gathering
from gateway.codec import FrameDecoder
from gateway.frame import MAX_FRAME
from gateway.link import Links, Policy
from gateway.reconciler import Keepers
from gateway.transports import Transport
from innet.deployment import Deployment
from innet.routing.failure_detector import Silence


class Station:
    """`boot` is the number of this start of the station; no two starts may have the same. Times are ms since tick 0.

    Without a `deployment` nothing is known of the motes' sensors, and everything is collected; with one, `moves` says how
    much of the queries runs on motes, and with an `agenda` they sleep but for their slots. What is planned may be exchanged
    while queries run; `decided` hears of that.
    """

    def __init__(self, catalog: Catalog, transport: Transport, archive: Store, boot: int, now_ms: int,
                 policy: Policy | None = None, deployment: Deployment | None = None,
                 moves: Moves = Moves.PLANNED, agenda: bool = False,
                 decided: migration.Told = lambda decided: None) -> None:  # fmt: skip
        self.world = World.at_first(catalog, deployment, moves, agenda)
        self.feed = Feed()
        self.links = Links(boot, policy or Policy())
        mtu = MAX_FRAME if deployment is None else deployment.mtu
        self.keepers = Keepers(self.links, self._clock, lambda mote: self.world.way(mote), mtu=mtu)
        self.silence = Silence()
        self.clocks = Clocks(self.keepers.pace.off_ms)
        self.engine = Engine(catalog, begun=tick_of_ms(now_ms, catalog.tick_ms), live=True)
        self.errors: Counter[str] = Counter()
        self.incidents = Incidents()
        self.ledger = Ledger(catalog, self.links.by_mote)
        self._transport, self._archive, self._decoder = transport, archive, FrameDecoder(mtu)
        self._gathering, self._decided = Gathering(), decided
        self._tick = self._looked = self._reviewed = tick_of_ms(now_ms, catalog.tick_ms)
        self._changed: int | None = None  # when a query came or went last, until that was weighed

    def load(self, extent: str, columns: Mapping[str, Vector], now_ms: int) -> None:
        """The contents of a stored extent, from now on."""
        self._end_ticks(now_ms)
        self.engine.load(extent, self._tick, columns)

    def submit(self, text: str, now_ms: int) -> Query:
        """Accept a query and send its motes what they need. Refused says why it cannot be."""
        self._end_ticks(now_ms)
        return self._carry_out(downlink.deploy(text, self.world, self.engine), now_ms)

    def stop(self, number: int, now_ms: int) -> Query:
        """Stop a query; KeyError if there is none of that number."""
        self._end_ticks(now_ms)
        return self._carry_out(downlink.withdraw(number, self.world, self.engine), now_ms)

    def step(self, now_ms: int) -> None:
        """End the clock ticks that are over, take what came, acknowledge it, look after the motes."""
        self._end_ticks(now_ms)
        arrivals = gateway.uplink.rise(self._transport.receive(), self._decoder, self.links)
        known = self.world.known
        frames = [frame for frame in arrivals.frames if known is None or frame.mote in known]
        self.errors.update(["stranger"] * (len(arrivals.frames) - len(frames)))
        risen = uplink.rise(
            frames, arrivals.copies, self.world, self.engine, self._archive, self._gathering, self.ledger, self._tick
        )
        of_motes = [frame for frame in frames if frame.mote not in self.world.tree.roots]
        strange = self.keepers.take(of_motes, now_ms)
        self.keepers.vouch((mote for mote, _ in risen.merged), now_ms)
        for mote in self.clocks.wrong(risen.stamps, now_ms, self.world.agenda):
            self.keepers.of(mote).mistimed(now_ms)
        came = [*((frame.mote, frame.sender) for frame in of_motes), *risen.merged]
        self.silence.hear(came, self.world.tree, now_ms)
        self.errors.update(error.code for error in (*arrivals.errors, *risen.errors, *strange))
        gateway.downlink.answer(arrivals.answers, self._transport)
        settled = self.keepers.settled()
        world, now = self._listen(risen.world, settled, now_ms), self.engine.clock + 1
        world = migration.gone_on(world, self.engine, settled, self._decided)
        begins = self._agenda_begins()
        if world.tree.parent != self.world.tree.parent:
            world = judged(commanded(world, now))
        elif begins:
            self.silence.begin(world.tree.parent, now_ms)
            world = judged(begun(world, now))
        world = passed(self._review(world), now)
        if world.desired is not self.world.desired:
            gateway.downlink.desire(world.desired, self.keepers, now_ms)
        elif not pending(world, now):
            world = world.with_settled(settled)
        self._become(world, now_ms)
        self._speak(now_ms)

    def account(self) -> dict[str, dict[int, dict[str, int]]]:
        """By extent and mote, what became of each reading that was due (`basestation.station.ledger`)."""
        return self.ledger.sums(max(self._tick, self.engine.clock))

    def _review(self, world: World) -> World:
        """Weigh again what was decided: now and then by what has come since the last time, and when other queries run."""
        if pending(world, self._tick):
            return world
        due = self._tick >= self._reviewed + migration.REVIEWED * round_of(world)
        if due:
            self._reviewed = self._tick
            world = replace(world, statistics=self._gathering.told(world))
        elif self._changed is None or self._tick < self._changed + migration.CALM * round_of(world):
            return world
        self._changed = None
        return migration.reviewed(world, self.engine, self._decided)

    def _listen(self, world: World, settled: frozenset[int], now_ms: int) -> World:
        """Find out who is silent of those that have what they should have."""
        tick_ms = world.catalog.tick_ms
        most = {site: ticks * tick_ms for site, ticks in world.patience.items() if site in settled}
        for mote in sorted(self.silence.look(world.tree, most, now_ms)):
            self.keepers.of(mote).overdue(now_ms)
        return world.with_silent(self.silence.motes)

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
                    self._carry_out(downlink.release(number, Event.FAIL, self.world, self.engine), now_ms)
        self._tick = max(self._tick, now)

    def _carry_out(self, deployment: downlink.Deployment, now_ms: int) -> Query:
        self._changed = self._tick
        self.feed.open(shape_of(deployment.query.number, deployment.query.plan))
        gateway.downlink.desire(deployment.world.desired, self.keepers, now_ms)
        self._become(deployment.world, now_ms)
        self._speak(now_ms)
        return deployment.query

    def _become(self, world: World, now_ms: int) -> None:
        self.incidents.compare(self.world, world, now_ms)
        if world.scheduled is not self.world.scheduled:
            self.ledger.desire(world.scheduled, self._tick)
        self.world = world

    def _clock(self, now_ms: int) -> bytes:
        return acquisition.downlink.clock(now_ms, self.world.catalog.tick_ms)

    def _speak(self, now_ms: int) -> None:
        gateway.downlink.tend(self.keepers, self._transport, now_ms)
        gateway.downlink.descend(self.keepers, self._transport, now_ms)


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

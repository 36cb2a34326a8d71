"""The event testbed: motes are simulated event by event, and the station takes a step a few times in each tick."""

from collections import deque
from collections.abc import Callable

from basestation.archive.interface import Archive
from basestation.controller.migration import MigrationEvent
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.results.feed import Feed
from basestation.testbed.base_testbed import BaseTestbed
from gateway.transports import Transport
from simulator.backhaul import Backhaul
from simulator.fault_injection import schedule_faults
from simulator.kernel import MS
from simulator.network import MoteNetwork
from simulator.scenario import Scenario
from simulator.transport import connect
from simulator.world_builder import build_world

LOOKS_PER_TICK = 4
"""The steps of the station in a tick, unless a scenario sets `look`: an answer need not wait for the next tick."""


class EventTestbed(BaseTestbed):
    """One run of a scenario, event by event. With an `agenda` motes sleep outside of their slots.

    The station sees a transport and cannot distinguish the motes from real ones. `pushdown` is the policy: the part of
    the queries that runs on motes is `everything` that may, `nothing`, or what is `planned`.
    """

    def __init__(self, scenario: Scenario, seed: int, sink: Callable[[str], object] | None = None,
                 traced: bool = True, archive: Archive | None = None, agenda: bool = False,
                 pushdown: str = PushdownPolicy.PLANNED, feed: Feed | None = None) -> None:  # fmt: skip
        self.built = build_world(scenario, seed, sink, traced)
        self.tally, self.trace = self.built.tally, self.built.trace
        kernel, trace = self.built.kernel, self.trace

        def make_network(end: Transport) -> MoteNetwork:
            wire = Backhaul(end, kernel, trace, scenario.wire, seed)
            return MoteNetwork(kernel, trace, list(self.built.motes.values()), self.built.gateways, wire)

        wire, self.network = connect(make_network)
        wire.open()
        super().__init__(scenario, wire, archive, pushdown, agenda, feed)
        self._base_is_here = True
        begins = [(query.at_ms, False, query) for query in scenario.queries]
        ends = [(query.until_ms, True, query) for query in scenario.queries if query.until_ms is not None]
        self._changes = deque(
            sorted((*begins, *ends), key=lambda each: each[:2])
        )  # (when, whether it is a stop, query)
        schedule_faults(scenario, self.built, self._set_base)

    def _note_decision(self, decided: MigrationEvent) -> None:
        super()._note_decision(decided)
        what = "handed_over" if decided.is_switch else "decided"
        self.trace.record(self.built.kernel.now, 0, what, query=decided.query, tick=decided.tick)

    def _set_base(self, here: bool) -> None:
        self._base_is_here = here

    def run_until(self, ms: int, on_progress: Callable[[int], None] = lambda ms: None) -> None:
        """Run until `ms` milliseconds after the scenario begins. Calls `on_progress` with the time so far at each step."""
        end = self.scenario.begin_ms + ms
        look_ms = self.scenario.look_ms or max(1, self.catalog.tick_ms // LOOKS_PER_TICK)
        while self._now_ms < end:
            self._change_queries()
            self._now_ms += look_ms
            now = self._now_ms - 1  # the last moment of the tick that ends here, if one does
            self.network.run_until(now)
            if self._base_is_here:
                self.station.step(now)
            self.trace.flush(self.built.kernel.now)
            on_progress(self.elapsed_ms)

    @property
    def configured_ms(self) -> int:
        agenda = self.station.world.agenda
        begins_ms = 0 if agenda is None else agenda.begin * self.catalog.tick_ms
        return max(0, -(-self.tally.configured // MS) - self.scenario.begin_ms, begins_ms - self.scenario.begin_ms)

    def spent(self) -> dict[int, float]:
        return {number: mote.spent for number, mote in self.built.motes.items()}

    def _change_queries(self) -> None:
        """Submit and stop the queries whose time has come."""
        while self._changes and self._changes[0][0] <= self.elapsed_ms:
            _, stops, query = self._changes.popleft()
            if not stops:
                self._submit(query)
            elif query.name in self.numbers:
                self.station.stop(self.numbers[query.name], self._now_ms)

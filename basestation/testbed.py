"""Testbed: a station and simulated motes in one process and in virtual time. The one module that imports the simulator.

The station sees a transport and cannot tell the motes from real ones. Nothing here asks what time it is: `run_until`
moves the time of both, a tick at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from basestation.app import Station
from basestation.archive.memory import MemoryArchive
from basestation.archive.store import Store
from basestation.language.diagnostics import Refused
from basestation.planner.catalog import read_schema
from basestation.queries import Query

if TYPE_CHECKING:
    from simulator.scenario import Asked, Scenario


def load(path: str) -> "Scenario":
    """The scenario that a file describes; Faulty says what is wrong with it, all of it."""
    from simulator.scenario import read_scenario

    return read_scenario(path)


class Testbed:
    """One run of a scenario. `numbers` are those of its queries; `refused` are the queries that the station refused."""

    def __init__(self, scenario: "Scenario", seed: int, sink: Callable[[str], object] | None = None,
                 traced: bool = True, archive: Store | None = None) -> None:  # fmt: skip
        from simulator.backhaul import Backhaul
        from simulator.build import build
        from simulator.faults import plan_faults
        from simulator.network import Network
        from simulator.transport import connect

        self.scenario = scenario
        self.numbers: dict[str, int] = {}
        self.refused: dict[str, Refused] = {}
        self.built = build(scenario, seed, sink, traced)
        kernel, trace = self.built.kernel, self.built.trace

        def network(end):
            wire = Backhaul(end, kernel, trace, scenario.wire, seed)
            return Network(kernel, trace, list(self.built.motes.values()), self.built.gateways, wire)

        wire, self.network = connect(network)
        wire.open()
        extents = scenario.deployment.extents
        self.catalog = read_schema(extents.text, extents.name, scenario.deployment.tick_ms)
        self.archive = MemoryArchive() if archive is None else archive
        self.station = Station(self.catalog, wire, self.archive, boot=1, now_ms=scenario.begin_ms)
        self._here = True
        self._now_ms = scenario.begin_ms
        plan_faults(scenario, self.built, self._come_or_go)

    def _come_or_go(self, here: bool) -> None:
        self._here = here

    def run_until(self, ms: int, told: Callable[[int], None] = lambda ms: None) -> None:
        """Let time go by until `ms` milliseconds after the beginning; `told` hears how far it is."""
        end, tick_ms = self.scenario.begin_ms + ms, self.scenario.deployment.tick_ms
        while self._now_ms < end:
            for asked in self.scenario.queries:
                self._ask(asked)
            for share in range(1, LOOKS + 1):
                now = self._now_ms + tick_ms * share // LOOKS - 1
                self.network.run_until(now)
                if self._here:
                    self.station.step(now)
            self._now_ms += tick_ms
            self.built.trace.pass_on(self.built.kernel.now)
            told(self._now_ms - self.scenario.begin_ms)

    def _ask(self, asked: "Asked") -> None:
        """Submit or stop a query whose time has come."""
        since = self._now_ms - self.scenario.begin_ms
        if asked.name not in self.numbers and asked.name not in self.refused and asked.at_ms <= since:
            try:
                self.numbers[asked.name] = self.station.submit(asked.text, self._now_ms).number
            except Refused as refused:
                self.refused[asked.name] = refused
        elif asked.until_ms is not None and asked.until_ms <= since < asked.until_ms + self.scenario.deployment.tick_ms:
            self.station.stop(self.numbers[asked.name], self._now_ms)

    def query(self, name: str) -> Query:
        return self.station.world.queries[self.numbers[name]]


LOOKS = 4
"""How often in a tick the station looks at what came, so that an answer does not have to wait for the next tick."""

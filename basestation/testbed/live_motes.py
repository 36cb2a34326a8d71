"""LiveMotes: the simulated motes of a scenario beside a running station, on a memory link, as fast as its clock goes."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.transports.memory import MemoryTransport
from innet.deployment import Deployment

if TYPE_CHECKING:
    from gateway.transports import Transport
    from simulator.scenario import Scenario


class MoteScenario:
    """A scenario file whose motes are still to be started. ConfigError says what is wrong with the file."""

    def __init__(self, path: str) -> None:
        from basestation.testbed.scenarios import read_scenario

        self._scenario = read_scenario(path)
        self.deployment: Deployment = self._scenario.deployment

    def start(self, begin_ms: int, boot: int, seed: int | None) -> "LiveMotes":
        """The motes, from a time on; without a `seed` the scenario's own is taken."""
        return LiveMotes(self._scenario, self._scenario.seed if seed is None else seed, begin_ms, boot)


class LiveMotes:
    """Begins at `begin_ms` since tick 0. Motes remember nothing of an earlier start, so each start needs a `boot` of its own."""

    def __init__(self, scenario: "Scenario", seed: int, begin_ms: int, boot: int) -> None:
        from simulator.backhaul import Backhaul
        from simulator.fault_injection import schedule_faults
        from simulator.network import MoteNetwork
        from simulator.transport import connect
        from simulator.world_builder import build_world

        scenario = replace(scenario, begin_ms=begin_ms)
        built = build_world(scenario, seed, traced=False, boot=boot)

        def network(end: "Transport") -> MoteNetwork:
            wire = Backhaul(end, built.kernel, built.trace, scenario.wire, seed)
            return MoteNetwork(built.kernel, built.trace, list(built.motes.values()), built.gateways, wire)

        self.wire: MemoryTransport
        self.wire, self._network = connect(network)
        self.wire.open()
        schedule_faults(scenario, built, _keep_station)

    def advance(self, now_ms: int) -> None:
        """Let the motes live until a time."""
        self._network.run_until(now_ms)


def _keep_station(is_up: bool) -> None:
    """Faults of the base station belong to simulations in virtual time: this station is a process of its own."""

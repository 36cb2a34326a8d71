"""Testbed: a station and simulated motes in one process and in virtual time. The one module that imports the simulator.

The station sees a transport and cannot tell the motes from real ones. Nothing here asks what time it is: `run_until`
moves the time of both. `Testbed` runs motes one by one, tick by tick; `VectorTestbed` hands out what the queries want before
it begins, and then sweeps many rounds at once.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acquisition.batch import Batch, concatenate
from acquisition.payload import Readings, decode_schedule
from acquisition.schedule import Schedule
from acquisition.sources.batch_conversion import table_of
from acquisition.sources.python_values import read_file
from acquisition.uplink import batches_of, filtered_batch_of
from basestation import uplink
from basestation.algebra.vector import Vector
from basestation.archive.interface import Archive
from basestation.archive.memory import MemoryArchive
from basestation.controller.migration import MigrationEvent
from basestation.controller.network_plan import NetworkPlan
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.station.ledger import DeliveryKind
from basestation.station.service import Station
from gateway.diagnostics import DiagnosticError
from gateway.transports.memory import connected_pair
from innet.costs.burst_loss import NO_BURSTS, BurstLoss
from innet.deployment import Deployment
from innet.payload import MoteAssignment, RadioSchedule, decode_assignment, group_by_site
from innet.routing.topology import LinksReport, NeighbourLink, Topology

if TYPE_CHECKING:
    from innet.program.columnar_fold import FoldedColumns
    from simulator.measurement import Measurement
    from simulator.mote_config import MoteConfig
    from simulator.scenario import Scenario, ScenarioQuery
    from simulator.vector_engine.engine import ArrivedReadings, RoundsOutcome

LOOKS_PER_TICK = 4
"""How often in a tick the station looks at what came, so that an answer does not have to wait for the next tick."""
ROUNDS_AT_ONCE = 120


def load_scenario(path: str) -> "Scenario":
    """The scenario that a file describes; Faulty says what is wrong with it, all of it."""
    from simulator.scenario import read_scenario

    return read_scenario(path)


def not_vectorisable_error() -> type[Exception]:
    """What is raised where a scenario has to be run mote by mote."""
    from simulator.vector_engine.layout import NotVectorisableError

    return NotVectorisableError


def measure(
    placed: NetworkPlan, world: "Scenario", seed: int, rounds: int, told: Callable[[int], None]
) -> "Measurement":
    """What simulated motes do and use that keep to what was placed, in the world and on the radio of a scenario."""
    from simulator.measurement import measure

    return measure(make_mote_configs(placed), placed.placement.placed, world, seed, rounds, told)


def make_mote_configs(placed: NetworkPlan) -> "dict[int, MoteConfig]":
    """What each mote of a tree is to have, as if all had been told."""
    from simulator.mote_config import MoteConfig

    schedules, tree, agenda = placed.problem.schedules, placed.placement.tree, placed.agenda
    programs = group_by_site(placed.programs)
    return {
        site: MoteConfig(
            schedules.get(site, Schedule(site, 1, ())),
            MoteAssignment(programs.get(site, ()), parent, RadioSchedule.of(agenda, site)),
            agenda.tick_ms,
        )
        for site, parent in tree.parent.items()
    }


def scenario_around(deployment: Deployment, path: str | None) -> "Scenario":
    """The world and the radio of a scenario's file around a deployment, and nothing else of it; or a world that is made up."""
    from simulator.scenario import default_scenario

    around = default_scenario(deployment)
    if path is None:
        return around
    said = load_scenario(path)
    return replace(around, name=said.name, begin_ms=said.begin_ms, seed=said.seed, world=said.world,
                   delivery=said.delivery, bursts=said.bursts, source=said.source)  # fmt: skip


def deployment_of(scenario: "Scenario") -> Deployment:
    """Its deployment, with the links that its motes report: as they are heard in good times."""
    return replace(scenario.deployment, links=scenario.links)


def climate_of(scenario: "Scenario") -> BurstLoss:
    """How often its links have bad times, once they have been there for a while, and how bad those are."""
    bursts = scenario.bursts
    return BurstLoss(bursts.begin / (bursts.begin + bursts.end), bursts.left) if bursts else NO_BURSTS


class BaseTestbed:
    """What both have: a station, the queries' numbers by their names, and those that were refused."""

    def __init__(self, scenario: "Scenario", wire, archive: Archive | None, moves: str, agenda: bool) -> None:
        self.scenario = scenario
        self.numbers: dict[str, int] = {}
        self.refused: dict[str, DiagnosticError] = {}
        self.catalog = read_deployed_catalog(scenario.deployment)
        self.archive = MemoryArchive() if archive is None else archive
        self.decided: list[MigrationEvent] = []
        self.station = Station(self.catalog, wire, self.archive, boot=1, now_ms=scenario.begin_ms,
                               deployment=scenario.deployment, pushdown=PushdownPolicy(moves), agenda=agenda,
                               on_migration=self._decide)  # fmt: skip
        self._now_ms = scenario.begin_ms
        self._load_tables()

    @property
    def elapsed_ms(self) -> int:
        """How much time has gone by: looks and rounds are whole, so a little more than was asked for, or less."""
        return self._now_ms - self.scenario.begin_ms

    def _decide(self, decided: MigrationEvent) -> None:
        self.decided.append(decided)

    def _load_tables(self) -> None:
        """Stored extents lie beside the schema that names them."""
        folder = Path(self.scenario.deployment.extents.name or ".").parent
        for extent in self.catalog:
            if extent.source is not None:
                columns, valid = table_of(read_file(folder / extent.source), extent, self.catalog.tick_ms)
                vectors = {name: Vector(values, valid.get(name)) for name, values in columns.items()}
                self.station.load(extent.name, vectors, self._now_ms)

    def _submit(self, asked: "ScenarioQuery") -> None:
        try:
            self.numbers[asked.name] = self.station.submit(asked.text, self._now_ms).number
        except DiagnosticError as refused:
            self.refused[asked.name] = refused


class Testbed(BaseTestbed):
    """One run of a scenario, mote by mote; with an `agenda` motes sleep but for their slots.

    `moves` says how much of the queries runs on them: `everything` that may, `nothing`, or what is `planned`.
    """

    def __init__(self, scenario: "Scenario", seed: int, sink: Callable[[str], object] | None = None,
                 traced: bool = True, archive: Archive | None = None, agenda: bool = False,
                 moves: str = PushdownPolicy.PLANNED) -> None:  # fmt: skip
        from simulator.backhaul import Backhaul
        from simulator.fault_injection import schedule_faults
        from simulator.network import MoteNetwork
        from simulator.transport import connect
        from simulator.world_builder import build_world

        self.built = build_world(scenario, seed, sink, traced)
        self.tally, self.trace = self.built.tally, self.built.trace
        kernel, trace = self.built.kernel, self.trace

        def network(end):
            wire = Backhaul(end, kernel, trace, scenario.wire, seed)
            return MoteNetwork(kernel, trace, list(self.built.motes.values()), self.built.gateways, wire)

        wire, self.network = connect(network)
        wire.open()
        super().__init__(scenario, wire, archive, moves, agenda)
        self._here = True
        begins = [(asked.at_ms, False, asked) for asked in scenario.queries]
        ends = [(asked.until_ms, True, asked) for asked in scenario.queries if asked.until_ms is not None]
        self._coming = deque(sorted((*begins, *ends), key=lambda each: each[:2]))  # when each query comes, and goes
        schedule_faults(scenario, self.built, self._come_or_go)

    def _decide(self, decided: MigrationEvent) -> None:
        super()._decide(decided)
        what = "handed_over" if decided.is_switch else "decided"
        self.trace.record(self.built.kernel.now, 0, what, query=decided.query, tick=decided.tick)

    def _come_or_go(self, here: bool) -> None:
        self._here = here

    def run_until(self, ms: int, told: Callable[[int], None] = lambda ms: None) -> None:
        """Let time go by until `ms` milliseconds after the beginning; `told` hears how far it is."""
        end = self.scenario.begin_ms + ms
        look_ms = self.scenario.look_ms or max(1, self.catalog.tick_ms // LOOKS_PER_TICK)
        while self._now_ms < end:
            self._ask()
            self._now_ms += look_ms
            now = self._now_ms - 1  # the last moment of the tick that ends here, if one does
            self.network.run_until(now)
            if self._here:
                self.station.step(now)
            self.trace.flush(self.built.kernel.now)
            told(self.elapsed_ms)

    def spent(self) -> dict[int, float]:
        """Joules of each mote so far."""
        return {number: mote.spent for number, mote in self.built.motes.items()}

    def _ask(self) -> None:
        """Submit and stop the queries whose time has come."""
        while self._coming and self._coming[0][0] <= self.elapsed_ms:
            _, ends, asked = self._coming.popleft()
            if not ends:
                self._submit(asked)
            elif asked.name in self.numbers:
                self.station.stop(self.numbers[asked.name], self._now_ms)


class VectorTestbed(BaseTestbed):
    """One run of a scenario in which all is asked at the beginning and nothing goes wrong but on the air.

    CannotSweep says why a scenario has to be run mote by mote.
    """

    def __init__(self, scenario: "Scenario", seed: int, sink: Callable[[str], object] | None = None,
                 traced: bool = True, archive: Archive | None = None, moves: str = PushdownPolicy.PLANNED) -> None:  # fmt: skip
        from simulator.kernel import MS
        from simulator.tally import Tally
        from simulator.trace import Trace
        from simulator.vector_engine.engine import VectorEngine
        from simulator.world_builder import hardware_by_mote, make_channel, make_sensors

        _check_vectorisable(scenario)
        wire, nobody = connected_pair()
        wire.open()
        nobody.open()
        super().__init__(scenario, wire, archive, moves, agenda=True)
        channel = make_channel(scenario, seed)
        self._introduce_motes(Topology.of_ratios(channel.ratios))
        for asked in scenario.queries:
            self._submit(asked)
        self.tally = Tally()
        self.trace = Trace(sink, is_kept=traced) if traced else None
        self.configs = self._standing()
        kinds, sensors = hardware_by_mote(scenario.deployment), make_sensors(scenario, seed)
        self._sweep = VectorEngine(self.configs, {n: sensors[n] for n in self.configs},
                            {n: kinds[n] for n in self.configs}, channel, scenario.begin_ms * MS)  # fmt: skip

    def run_until(self, ms: int, told: Callable[[int], None] = lambda ms: None) -> None:
        """Let time go by until the last round that ends within `ms` milliseconds after the beginning."""
        layout = self._sweep.layout
        round_ms = layout.round_us // 1_000
        last = (self.scenario.begin_ms + ms) // round_ms
        batteries = np.array([self.scenario.deployment.motes[number].battery for number in layout.number.tolist()])
        while self._sweep.next_round < last:
            for swept in self._sweep.advance_on_batteries(
                min(ROUNDS_AT_ONCE, last - self._sweep.next_round), batteries
            ):
                self._take(swept)
            self._now_ms = self._sweep.next_round * round_ms
            told(self.elapsed_ms)

    def spent(self) -> dict[int, float]:
        found = dict.fromkeys(self.scenario.deployment.motes, 0.0)
        joules = self._sweep.spent(self._now_ms * 1_000).tolist()
        return found | dict(zip(self._sweep.layout.number.tolist(), joules, strict=True))

    def _introduce_motes(self, topology: Topology) -> None:
        """As if all had told long ago whom they hear."""
        links = topology.links.items()
        reports = [LinksReport(mote, tuple(NeighbourLink(*link) for link in heard.items())) for mote, heard in links]
        self.station.world = self.station.world.with_links(reports)

    def _standing(self) -> "dict[int, MoteConfig]":
        """What the station wants each mote to have that it can reach."""
        from simulator.mote_config import MoteConfig

        world = self.station.world
        desired = {n: each for n, each in world.desired.items() if each.program and n in world.tree.parent}
        nothing = Schedule(0, 0, ())  # of who only passes on
        return {
            n: MoteConfig(
                decode_schedule(each.schedule, n) if each.schedule else replace(nothing, site=n),
                decode_assignment(each.program, n), self.catalog.tick_ms,
            )
            for n, each in desired.items()
        }  # fmt: skip

    def _take(self, swept: "RoundsOutcome") -> None:
        """Give the station what arrived, and count and record what happened."""
        from simulator.vector_engine.trace_writer import count_events, write_trace

        count_events(swept, self._sweep.layout, self.tally)
        self._take_deaths()
        if self.trace:
            write_trace(swept, self._sweep.layout, self.trace, self.catalog.tick_ms)
            self.trace.flush(swept.rounds.stop * self._sweep.layout.round_us)
        tick_us = self.catalog.tick_ms * 1_000
        sent: dict[tuple[str, ...], list[Batch]] = {}  # by the extent, and the columns that came
        filtered: dict[str, list[Batch]] = {}
        for arrived in swept.arrived:
            name, readings = self._readings(arrived)
            for batch in batches_of(readings, self.catalog.find(name), self._ticks(arrived, True)):
                sent.setdefault((name, *batch.columns), []).append(batch)
            reports = replace(filtered_batch_of(readings, 0), arrival=self._ticks(arrived, False))
            filtered.setdefault(name, []).extend((reports, self._waited(readings, arrived)))
        ended = swept.rounds.stop * self._sweep.layout.round_us // tick_us - 1
        ledger = self.station.ledger
        for (name, *_), batches in sent.items():
            batch = _in_order(batches)
            ledger.record_readings(name, batch.site, batch.tick, DeliveryKind.DELIVERED, ended)
            self.archive.append(self.catalog.find(name), batch)
            self.station.engine.deliver(name, batch)
        for name, batches in filtered.items():
            batch = _in_order(batches)
            ledger.record_readings(name, batch.site, batch.tick, DeliveryKind.FILTERED, ended)
            self.station.engine.deliver(name, batch)
        for merged in swept.merged:
            number = merged.table.number
            found, time = merged.fold(self._sweep.layout, self.station.world.shapes[number])
            ledger.record_partials(self.station.world.folds[number], found.slice, _who(found), found.readings, ended)
            self.station.engine.deliver(number, PartialBatch.gathered(found, time // tick_us))
        if ended > self.station.engine.clock:
            uplink.answer(self.station.engine, self.station.feed, ended)

    def _take_deaths(self) -> None:
        """Batteries that were empty before the latest rounds began."""
        sweep = self._sweep
        for at in np.flatnonzero(~sweep.alive).tolist():
            mote = int(sweep.layout.number[at])
            if mote not in self.tally.died:
                self.tally.died[mote] = int(sweep.died_us[at]), "battery"
                if self.trace:
                    self.trace.record(int(sweep.died_us[at]), mote, "died", why="battery")

    def _readings(self, arrived: "ArrivedReadings") -> tuple[str, Readings]:
        """What arrived of an extent, as if it had been decoded."""
        sampled = arrived.sampled
        sampling = self.station.world.scheduled.samplings[sampled.batch.sampling.number]
        sent = sampled.outcomes.sent[arrived.rows]
        rows, site = arrived.rows[sent], self._sweep.layout.number[sampled.mote[arrived.rows]]
        tick = sampled.tick[arrived.rows]
        lanes = [(lane.values[rows], ~lane.valid[rows]) for lane in sampled.outcomes.reading]
        values, nulls = (_columns(part, len(rows)) for part in (zip(*lanes, strict=True) if lanes else ((), ())))
        found = Readings(sampling, site[sent], tick[sent], values, nulls.astype(bool), site[~sent], tick[~sent])
        return sampling.extent, found

    def _ticks(self, arrived: "ArrivedReadings", sent: bool) -> np.ndarray:
        """In which those arrived that were sent, or not."""
        which = arrived.sampled.outcomes.sent[arrived.rows] == sent
        return arrived.time[which] // (self.catalog.tick_ms * 1_000)

    def _waited(self, readings: Readings, arrived: "ArrivedReadings") -> Batch:
        """The reports of what was filtered in the rounds before these."""
        mote, tick, time = arrived.before
        found = filtered_batch_of(
            replace(readings, filtered_site=self._sweep.layout.number[mote], filtered_tick=tick), 0
        )
        return replace(found, arrival=time // (self.catalog.tick_ms * 1_000))


def _who(found: "FoldedColumns") -> np.ndarray:
    """Who is in each of them, as in `innet.payload.Partials`."""
    if not found.shape.has_bitmap:
        return np.array(found.who)[:, None]
    size = -(-len(found.shape.slots) // 8)
    packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in found.who), np.uint8)
    bits = np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little")
    return bits[:, : len(found.shape.slots)].astype(bool)


def _in_order(batches: Sequence[Batch]) -> Batch:
    """All of them, as they arrived."""
    batch = concatenate(batches)
    return batch.take(np.argsort(batch.arrival, kind="stable"))


def _columns(parts: Sequence[np.ndarray], length: int) -> np.ndarray:
    return np.stack(parts, axis=1) if parts else np.zeros((length, 0), np.int64)


def _check_vectorisable(scenario: "Scenario") -> None:
    from simulator.vector_engine.layout import NotVectorisableError

    said: Mapping[str, bool] = {
        "something goes wrong": any(fault.what != "sensor_fails" for fault in scenario.faults),
        "frames are delayed, doubled or damaged on the wire": bool(
            scenario.wire.duplicated or scenario.wire.delayed or scenario.wire.damaged
        ),
        "clocks are wrong": scenario.ppm > 0,
        "a query comes later, or goes": any(a.at_ms or a.until_ms is not None for a in scenario.queries),
        "nothing is asked": not scenario.queries,
    }
    if why := next((what for what, holds in said.items() if holds), None):
        raise NotVectorisableError(why)

"""The vector testbed: all queries are submitted at the beginning, then many rounds are simulated at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from acquisition.batch import Batch, concatenate
from acquisition.payload import Readings, decode_schedule
from acquisition.schedule import Schedule
from acquisition.uplink import batches_of, filtered_batch_of
from basestation import uplink
from basestation.algebra.vector import Vector
from basestation.archive.interface import Archive
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.results.feed import Feed
from basestation.station.reading_account import DeliveryKind
from basestation.testbed.base_testbed import BaseTestbed
from gateway.transports.memory import connected_pair
from innet.payload import decode_assignment
from innet.program.columnar_fold import FoldedColumns
from innet.routing.topology import LinksReport, NeighbourLink, Topology
from simulator.kernel import MS
from simulator.mote_config import MoteConfig
from simulator.scenario import Scenario
from simulator.tally import Tally
from simulator.trace import Trace
from simulator.vector_engine.engine import ArrivedReadings, RoundsOutcome, VectorEngine
from simulator.vector_engine.layout import NotVectorisableError
from simulator.vector_engine.trace_writer import count_events, write_trace
from simulator.world_builder import hardware_by_mote, make_channel, make_sensors

ROUNDS_AT_ONCE = 120


class VectorTestbed(BaseTestbed):
    """One run of a scenario whose queries are all submitted at the beginning, and in which only the radio loses frames.

    Motes begin with their programs and their agenda. Raises NotVectorisableError if the scenario has to be simulated event by
    event.
    """

    def __init__(self, scenario: Scenario, seed: int, sink: Callable[[str], object] | None = None,
                 traced: bool = True, archive: Archive | None = None, pushdown: str = PushdownPolicy.PLANNED,
                 feed: Feed | None = None) -> None:  # fmt: skip
        _check_vectorisable(scenario)
        wire, other_end = connected_pair()
        wire.open()
        other_end.open()
        super().__init__(scenario, wire, archive, pushdown, agenda=True, feed=feed)
        channel = make_channel(scenario, seed)
        self._report_links(Topology.of_ratios(channel.ratios))
        for query in scenario.queries:
            self._submit(query)
        self._extents = {extent.name: extent for extent in self.catalog}
        self.tally = Tally()
        self.trace = Trace(sink, is_kept=traced) if traced else None
        self.configs = self._make_configs()
        kinds, sensors = hardware_by_mote(scenario.deployment), make_sensors(scenario, seed)
        self._engine = VectorEngine(self.configs, {n: sensors[n] for n in self.configs},
                                    {n: kinds[n] for n in self.configs}, channel, scenario.begin_ms * MS)  # fmt: skip

    def run_until(self, ms: int, on_progress: Callable[[int], None] = lambda ms: None) -> None:
        """Run until the last round that ends within `ms` milliseconds after the scenario begins.

        Calls `on_progress` with the time so far after every ROUNDS_AT_ONCE rounds.
        """
        layout = self._engine.layout
        round_ms = layout.round_us // 1_000
        last = (self.scenario.begin_ms + ms) // round_ms
        batteries = np.array([self.scenario.deployment.motes[number].battery for number in layout.number.tolist()])
        while self._engine.next_round < last:
            count = min(ROUNDS_AT_ONCE, last - self._engine.next_round)
            for outcome in self._engine.advance_on_batteries(count, batteries):
                self._process(outcome)
            self._now_ms = self._engine.next_round * round_ms
            on_progress(self.elapsed_ms)

    def spent(self) -> dict[int, float]:
        found = dict.fromkeys(self.scenario.deployment.motes, 0.0)
        joules = self._engine.spent(self._now_ms * 1_000).tolist()
        return found | dict(zip(self._engine.layout.number.tolist(), joules, strict=True))

    def _report_links(self, topology: Topology) -> None:
        """Let the station know the links of all motes."""
        reports = [
            LinksReport(mote, tuple(NeighbourLink(*link) for link in links.items()))
            for mote, links in topology.links.items()
        ]
        self.station.world = self.station.world.with_links(reports)

    def _make_configs(self) -> dict[int, MoteConfig]:
        """The configuration that the station desires for each mote that it can reach."""
        world, tick_ms = self.station.world, self.catalog.tick_ms
        configs = {}
        for number, desired in world.desired.items():
            if desired.program and number in world.tree.parent:
                image = desired.schedule
                schedule = decode_schedule(image, number) if image else Schedule(number, 0, ())
                configs[int(number)] = MoteConfig(schedule, decode_assignment(desired.program, number), tick_ms)
        return configs

    def _process(self, outcome: RoundsOutcome) -> None:
        """Record the events of some rounds, and deliver the readings that arrived to the station."""
        count_events(outcome, self._engine.layout, self.tally)
        self._record_deaths()
        if self.trace:
            write_trace(outcome, self._engine.layout, self.trace, self.catalog.tick_ms)
            self.trace.flush(outcome.rounds.stop * self._engine.layout.round_us)
        tick_us = self.catalog.tick_ms * 1_000
        sent: dict[tuple[str, ...], list[Batch]] = {}  # by extent and columns
        filtered: dict[str, list[Batch]] = {}
        for arrived in outcome.arrived:
            name, readings = self._decode(arrived)
            for batch in batches_of(readings, self._extents[name], self._ticks(arrived, True)):
                sent.setdefault((name, *batch.columns), []).append(batch)
            reports = replace(filtered_batch_of(readings, 0), arrival=self._ticks(arrived, False))
            filtered.setdefault(name, []).extend((reports, self._earlier_reports(readings, arrived)))
        ended = outcome.rounds.stop * self._engine.layout.round_us // tick_us - 1
        ledger = self.station.ledger
        for (name, *_), batches in sent.items():
            batch = _concatenate(batches)
            ledger.record_readings(name, batch.site, batch.tick, DeliveryKind.DELIVERED, ended)
            self.archive.append(self._extents[name], batch)
            self.station.engine.deliver(name, batch)
        for name, batches in filtered.items():
            batch = _concatenate(batches)
            ledger.record_readings(name, batch.site, batch.tick, DeliveryKind.FILTERED, ended)
            self.station.engine.deliver(name, batch)
        for merged in outcome.merged:
            number = merged.table.number
            found, time = merged.fold(self._engine.layout, self.station.world.shapes[number])
            ledger.record_partials(
                self.station.world.folds[number], found.slice, _contributors(found), found.readings, ended
            )
            self.station.engine.deliver(number, _make_partial_batch(found, time // tick_us))
        if ended > self.station.engine.clock:
            uplink.answer(self.station.engine, self.station.feed, ended)

    def _record_deaths(self) -> None:
        """Record the motes whose batteries were empty before the latest rounds began."""
        engine = self._engine
        for at in np.flatnonzero(~engine.alive).tolist():
            mote = int(engine.layout.number[at])
            if mote not in self.tally.died:
                self.tally.died[mote] = int(engine.died_us[at]), "battery"
                if self.trace:
                    self.trace.record(int(engine.died_us[at]), mote, "died", why="battery")

    def _decode(self, arrived: ArrivedReadings) -> tuple[str, Readings]:
        """(extent, readings that arrived), as the decoder of frames would give them."""
        sampled = arrived.sampled
        sampling = self.station.world.scheduled.samplings[sampled.batch.sampling.number]
        sent = sampled.computed.sent[arrived.rows]
        rows, site = arrived.rows[sent], self._engine.layout.number[sampled.mote[arrived.rows]]
        tick = sampled.tick[arrived.rows]
        columns = sampled.computed.reading
        values = _stack([column.values[rows] for column in columns], len(rows))
        nulls = _stack([~column.valid[rows] for column in columns], len(rows)).astype(bool)
        found = Readings(sampling, site[sent], tick[sent], values, nulls, site[~sent], tick[~sent])
        return sampling.extent, found

    def _ticks(self, arrived: ArrivedReadings, sent: bool) -> IntArray:
        """The ticks at which the readings arrived that were sent, or those that were not."""
        which = arrived.sampled.computed.sent[arrived.rows] == sent
        found: IntArray = arrived.time[which] // (self.catalog.tick_ms * 1_000)
        return found

    def _earlier_reports(self, readings: Readings, arrived: ArrivedReadings) -> Batch:
        """The reports of readings that were filtered in earlier rounds."""
        mote, tick, time = arrived.before
        found = filtered_batch_of(
            replace(readings, filtered_site=self._engine.layout.number[mote], filtered_tick=tick), 0
        )
        return replace(found, arrival=time // (self.catalog.tick_ms * 1_000))


def _make_partial_batch(found: FoldedColumns, arrival: IntArray) -> PartialBatch:
    """The partials of a fold, each with the clock tick of its arrival."""
    who = found.contributors if found.shape.has_bitmap else [1] * len(found)
    first = np.array([(bits & -bits).bit_length() - 1 for bits in who], np.int64)
    keys = tuple(map(Vector, found.keys, found.keys_there))
    kinds = found.shape.kinds
    return PartialBatch(arrival, found.slice, found.bare, first, found.readings, keys, kinds, found.states)


def _contributors(found: FoldedColumns) -> AnyArray:
    """The contributors to each partial, as `innet.payload.PartialColumns.contributors` has them."""
    if not found.shape.has_bitmap:
        return np.array(found.contributors)[:, None]
    size = -(-len(found.shape.slots) // 8)
    packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in found.contributors), np.uint8)
    bits = np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little")
    return bits[:, : len(found.shape.slots)].astype(bool)


def _concatenate(batches: Sequence[Batch]) -> Batch:
    """The rows of all batches in the order of arrival."""
    batch = concatenate(batches)
    return batch.take(np.argsort(batch.arrival, kind="stable"))


def _stack(parts: Sequence[AnyArray], length: int) -> AnyArray:
    """(rows, columns) of columns of so many rows."""
    return np.stack(parts, axis=1) if parts else np.zeros((length, 0), np.int64)


def _check_vectorisable(scenario: Scenario) -> None:
    """Raises NotVectorisableError for scenarios with changes during the run."""
    obstacles: Mapping[str, bool] = {
        "the scenario injects faults": any(fault.what != "sensor_fails" for fault in scenario.faults),
        "the wire delays, duplicates or damages frames": bool(
            scenario.wire.duplicated or scenario.wire.delayed or scenario.wire.damaged
        ),
        "clocks have an error": scenario.ppm > 0,
        "a query is submitted later, or stopped": any(a.at_ms or a.until_ms is not None for a in scenario.queries),
        "there is no query": not scenario.queries,
    }
    if why := next((what for what, holds in obstacles.items() if holds), None):
        raise NotVectorisableError(why)

"""Measures simulated motes that keep to one configuration for some rounds: energy, frames, and the readings delivered.

No fault is injected; only the radio loses frames. The vector engine simulates the rounds if it can, else motes are simulated
event by event.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.payload import filter_report_interval
from acquisition.schedule import Sampling
from gateway.frame import FrameKind
from innet.operators.column_evaluation import ValueColumn
from innet.placement.placement import PlacedOperator, extents_of, find_reported_ticks
from innet.placement.statistics import ExtentReadings
from simulator.kernel import MS
from simulator.mote_config import MoteConfig
from simulator.scenario import Scenario
from simulator.tally import Tally
from simulator.trace import Event
from simulator.vector_engine.engine import RoundsOutcome, VectorEngine
from simulator.vector_engine.layout import GATEWAY, NotVectorisableError
from simulator.vector_engine.trace_writer import count_events
from simulator.world_builder import build_world, hardware_by_mote, make_channel, make_sensors

ROUNDS_AT_ONCE = 60


@dataclass(frozen=True, slots=True)
class Measurement:
    """`joules` by mote; `latest_ms` is the longest time from the begin of a round to the arrival of its last frame.

    `sampled` has the readings of each extent. `covered` is, by extent, the share of readings due by then that the gateways
    know of: delivered, merged or reported as filtered.
    """

    rounds: int
    round_ms: int
    tally: Tally
    joules: Mapping[int, float]
    latest_ms: float
    sampled: Mapping[str, ExtentReadings]
    covered: Mapping[str, float]


@dataclass(slots=True)
class _Collected:
    """The figures of the rounds that were simulated so far; `delivered` are (site, tick) of readings, by extent."""

    configs: Mapping[int, MoteConfig]
    placed: Sequence[PlacedOperator]
    rounds: range
    round_us: int
    tally: Tally = field(default_factory=Tally)
    latest_us: int = 0
    sampled: dict[str, list[ExtentReadings]] = field(default_factory=dict)
    delivered: dict[str, list[tuple[IntArray, IntArray]]] = field(default_factory=dict)

    @property
    def tick_us(self) -> int:
        return next(each.tick_ms for each in self.configs.values()) * MS

    def finished(self, joules: Mapping[int, float]) -> Measurement:
        sampled = {extent: ExtentReadings.concatenate(parts) for extent, parts in self.sampled.items()}
        due_until = self.rounds.stop * self.round_us // self.tick_us - self._longest_wait()
        covered = {}
        for extent, each in sampled.items():
            due = (each.tick < due_until) & find_reported_ticks(self.placed, extent, each.tick)
            expected = np.unique(_keys(each.site, each.tick)[due])
            parts = [_keys(*part) for part in self.delivered.get(extent, ())]
            if len(expected):
                covered[extent] = float(np.isin(expected, np.concatenate(parts or [np.zeros(0, np.int64)])).mean())
        return Measurement(
            len(self.rounds), self.round_us // MS, self.tally, joules, self.latest_us / MS, sampled, covered
        )

    def _longest_wait(self) -> int:
        """The ticks that a reading may wait in motes."""
        samplings = {s for each in self.configs.values() for s in each.schedule.samplings}
        tables = {t for each in self.configs.values() for p in each.orders.programs for t in p.tables}
        filtered = max((filter_report_interval(each) * each.epochs.interval for each in samplings), default=0)
        folded = max((table.slices.period for table in tables), default=0)
        return max(filtered, folded) + -(-self.round_us // self.tick_us)

    def samplings(self) -> dict[int, Sampling]:
        return {s.number: s for each in self.configs.values() for s in each.schedule.samplings}

    def add_merged(self, table: int, readings: tuple[IntArray, IntArray]) -> None:
        """Add (site, tick) of readings in partials of a table. In one of two extents there was a reading of each."""
        fold = next(each for each in self.placed if each.number == table)
        for extent in extents_of(fold.operator):
            self.delivered.setdefault(extent, []).append(readings)


def _keys(site: IntArray, tick: IntArray) -> IntArray:
    """One number for each (site, tick)."""
    found: IntArray = (site << 40) | tick
    return found


def measure(
    configs: Mapping[int, MoteConfig],
    placed: Sequence[PlacedOperator],
    scenario: Scenario,
    seed: int,
    rounds: int,
    on_progress: Callable[[int], None] = lambda rounds: None,
) -> Measurement:
    """Simulate so many rounds of motes with these configurations, in the world and on the radio of a scenario.

    `placed` are the operators that the configurations run. The first round is the first one that begins in the scenario.
    `on_progress` is called with the number of rounds that are over.
    """
    first = -(-scenario.begin_ms * MS // _round_us(configs))
    chosen = range(first, first + rounds)
    try:
        return measure_vectorised(configs, placed, scenario, seed, chosen, on_progress)
    except NotVectorisableError:
        return measure_by_events(configs, placed, scenario, seed, chosen, on_progress)


def _round_us(configs: Mapping[int, MoteConfig]) -> int:
    """The length of a round. Raises ValueError if the motes have no agenda."""
    slots = next(iter(configs.values())).slots
    if slots is None:
        raise ValueError("expected motes under an agenda, found motes without one")
    return slots.round_us


def measure_vectorised(configs: Mapping[int, MoteConfig], placed: Sequence[PlacedOperator], scenario: Scenario, seed: int,
                       rounds: range, on_progress: Callable[[int], None]) -> Measurement:  # fmt: skip
    """`measure` by the vector engine; raises NotVectorisableError."""
    sensors, kinds = make_sensors(scenario, seed), hardware_by_mote(scenario.deployment)
    collected = _Collected(configs, placed, rounds, _round_us(configs))
    engine = VectorEngine(configs, {n: sensors[n] for n in configs}, {n: kinds[n] for n in configs},
                          make_channel(scenario, seed), rounds.start * collected.round_us)  # fmt: skip
    while engine.next_round < rounds.stop:
        outcome = engine.advance(min(ROUNDS_AT_ONCE, rounds.stop - engine.next_round))
        count_events(outcome, engine.layout, collected.tally)
        _collect(outcome, engine, collected)
        on_progress(engine.next_round - rounds.start)
    spent = engine.spent(rounds.stop * collected.round_us).tolist()
    return collected.finished(dict(zip(engine.layout.number.tolist(), spent, strict=True)))


def _collect(outcome: RoundsOutcome, engine: VectorEngine, collected: _Collected) -> None:
    layout = engine.layout
    for sampled in outcome.sampled:
        sampling = sampled.batch.sampling
        if sampled.outcomes is not None:
            names = [channel.attribute for channel in sampling.channels]
            values = dict(zip(names, sampled.values, strict=True))
            site = layout.number[sampled.mote]
            collected.sampled.setdefault(sampling.extent, []).append(ExtentReadings(site, sampled.tick, values))
    for arrived in outcome.arrived:
        mote, tick, _ = arrived.before
        rows = layout.number[arrived.sampled.mote[arrived.rows]], arrived.sampled.tick[arrived.rows]
        extent = arrived.sampled.batch.sampling.extent
        collected.delivered.setdefault(extent, []).extend([rows, (layout.number[mote], tick)])
    for merged in outcome.merged:
        collected.add_merged(merged.table.number, (layout.number[merged.rows.mote], merged.rows.tick))
    for hop in outcome.hops:
        home = hop.came & (layout.parent[hop.frames.holder] == GATEWAY)
        if home.any():
            collected.latest_us = max(collected.latest_us, int((hop.arrived[home] % collected.round_us).max()))


def measure_by_events(configs: Mapping[int, MoteConfig], placed: Sequence[PlacedOperator], scenario: Scenario, seed: int,
                      rounds: range, on_progress: Callable[[int], None]) -> Measurement:  # fmt: skip
    """`measure` event by event."""
    collected = _Collected(configs, placed, rounds, _round_us(configs))
    built = build_world(replace(scenario, begin_ms=rounds.start * collected.round_us // MS), seed, traced=False)
    collector = _TraceCollector(collected)
    built.trace.watch = collector.watch
    for site, each in configs.items():
        built.motes[site].install(each)
    for number in rounds:
        built.kernel.run_until((number + 1) * collected.round_us - 1)
        on_progress(number + 1 - rounds.start)
    return collector.finished({site: built.motes[site].spent for site in configs})


class _TraceCollector:
    """Collects from the events of a trace what `_collect` finds in the columns of the vector engine."""

    def __init__(self, collected: _Collected) -> None:
        self.collected = collected
        self._samplings = collected.samplings()
        self._posted: dict[tuple[int, int, int], tuple[int, range]] = {}
        self._rows: dict[int, list[tuple[int, int, tuple[int | None, ...]]]] = {}
        self._delivered: dict[str, list[tuple[int, int]]] = {}

    def watch(self, event: Event) -> None:
        self.collected.tally.watch(event)
        match event.what:
            case "produced":
                self._rows.setdefault(event["sampling"], []).append((event.mote, event["tick"], event["values"]))
            case "posted":
                epochs = range(event["first"], event["first"] + event["count"])
                self._posted[event.mote, event["boot"], event["seq"]] = event["sampling"], epochs
            case "delivered":
                self.collected.latest_us = max(self.collected.latest_us, event.time % self.collected.round_us)
                if event["kind"] == FrameKind.READING.name:
                    self._add_delivered(event)
            case "merged" if event["readings"]:  # the first part of a split group has all of its readings
                pairs = [tuple(map(int, pair.split(":"))) for pair in event["readings"].split(",")]
                sites, ticks = zip(*pairs, strict=True)
                self.collected.add_merged(event["table"], (_int_array(sites), _int_array(ticks)))

    def _add_delivered(self, event: Event) -> None:
        number, epochs = self._posted[event["origin"], event["boot"], event["seq"]]
        when = self._samplings[number].epochs
        pairs = [(event["origin"], when.start + epoch * when.interval) for epoch in epochs]
        self._delivered.setdefault(self._samplings[number].extent, []).extend(pairs)

    def finished(self, joules: Mapping[int, float]) -> Measurement:
        for number, rows in self._rows.items():
            sites, ticks, readings = zip(*rows, strict=True)
            names = [channel.attribute for channel in self._samplings[number].channels]
            columns = zip(*readings, strict=True) if names else ()
            values = {name: _column(column) for name, column in zip(names, columns, strict=True)}
            self.collected.sampled.setdefault(self._samplings[number].extent, []).append(
                ExtentReadings(_int_array(sites), _int_array(ticks), values)
            )
        for extent, pairs in self._delivered.items():
            sites, ticks = zip(*pairs, strict=True)
            self.collected.delivered.setdefault(extent, []).append((_int_array(sites), _int_array(ticks)))
        return self.collected.finished(joules)


def _int_array(values: Iterable[int]) -> IntArray:
    return np.array(tuple(values), np.int64)


def _column(values: Sequence[int | None]) -> ValueColumn:
    valid: BoolArray = np.array([value is not None for value in values])
    return ValueColumn(_int_array(value or 0 for value in values), valid)

"""Measured: what motes did, and used, that kept to their orders for some rounds, and what was heard of their readings.

Nobody tells them anything and nothing goes wrong but on the air. Rounds are swept where that is possible, else motes are
simulated one by one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

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
    """`joules` of each mote; `latest_ms` is how long after a round began its last frame reached a gateway, at most.

    `covered` is, by extent, the share of its readings of which the gateways heard, of those that were to be told by then.
    """

    rounds: int
    round_ms: int
    tally: Tally
    joules: Mapping[int, float]
    latest_ms: float
    made: Mapping[str, ExtentReadings]
    covered: Mapping[str, float]


@dataclass(slots=True)
class _Collected:
    """What is known while motes go on."""

    configs: Mapping[int, MoteConfig]
    placed: Sequence[PlacedOperator]
    rounds: range
    tally: Tally = field(default_factory=Tally)
    latest_us: int = 0
    made: dict[str, list[ExtentReadings]] = field(default_factory=dict)
    heard: dict[str, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)

    @property
    def round_us(self) -> int:
        return next(each.slots.round_us for each in self.configs.values())

    @property
    def tick_us(self) -> int:
        return next(each.tick_ms for each in self.configs.values()) * MS

    def finished(self, joules: Mapping[int, float]) -> Measurement:
        made = {extent: ExtentReadings.together(parts) for extent, parts in self.made.items()}
        due = self.rounds.stop * self.round_us // self.tick_us - self._waits()
        covered = {}
        for extent, each in made.items():
            told = (each.tick < due) & find_reported_ticks(self.placed, extent, each.tick)
            wanted = np.unique(_places(each.site, each.tick)[told])
            parts = [_places(*part) for part in self.heard.get(extent, ())]
            if len(wanted):
                covered[extent] = float(np.isin(wanted, np.concatenate(parts or [np.zeros(0, np.int64)])).mean())
        return Measurement(
            len(self.rounds), self.round_us // MS, self.tally, joules, self.latest_us / MS, made, covered
        )

    def _waits(self) -> int:
        """For so many ticks a reading may wait in a mote."""
        samplings = {s for each in self.configs.values() for s in each.schedule.samplings}
        tables = {t for each in self.configs.values() for p in each.orders.programs for t in p.tables}
        filtered = max((filter_report_interval(each) * each.epochs.interval for each in samplings), default=0)
        folded = max((table.slices.period for table in tables), default=0)
        return max(filtered, folded) + -(-self.round_us // self.tick_us)

    def samplings(self) -> dict[int, Sampling]:
        return {s.number: s for each in self.configs.values() for s in each.schedule.samplings}

    def merged(self, table: int, readings: tuple[np.ndarray, np.ndarray]) -> None:
        """(site, tick) of readings that came in partials of a table: with two extents, there was one of each."""
        fold = next(each for each in self.placed if each.number == table)
        for extent in extents_of(fold.operator):
            self.heard.setdefault(extent, []).append(readings)


def _places(site: np.ndarray, tick: np.ndarray) -> np.ndarray:
    return (site << 40) | tick


def measure(
    configs: Mapping[int, MoteConfig],
    placed: Sequence[PlacedOperator],
    scenario: Scenario,
    seed: int,
    rounds: int,
    told: Callable[[int], None] = lambda ms: None,
) -> Measurement:
    """From the first round on that begins in a scenario's world and on its radio, where these operators were placed; `told`
    hears how many rounds are over."""
    first = -(-scenario.begin_ms * MS // next(each.slots.round_us for each in configs.values()))
    try:
        return measure_vectorised(configs, placed, scenario, seed, range(first, first + rounds), told)
    except NotVectorisableError:
        return measure_by_events(configs, placed, scenario, seed, range(first, first + rounds), told)


def measure_vectorised(configs: Mapping[int, MoteConfig], placed: Sequence[PlacedOperator], scenario: Scenario, seed: int, rounds: range,
           told: Callable[[int], None]) -> Measurement:  # fmt: skip
    sensors, kinds = make_sensors(scenario, seed), hardware_by_mote(scenario.deployment)
    account = _Collected(configs, placed, rounds)
    sweep = VectorEngine(configs, {n: sensors[n] for n in configs}, {n: kinds[n] for n in configs},
                  make_channel(scenario, seed), rounds.start * account.round_us)  # fmt: skip
    while sweep.next_round < rounds.stop:
        swept = sweep.advance(min(ROUNDS_AT_ONCE, rounds.stop - sweep.next_round))
        count_events(swept, sweep.layout, account.tally)
        _listen(swept, sweep, account)
        told(sweep.next_round - rounds.start)
    spent = sweep.spent(rounds.stop * account.round_us).tolist()
    return account.finished(dict(zip(sweep.layout.number.tolist(), spent, strict=True)))


def _listen(swept: RoundsOutcome, sweep: VectorEngine, account: _Collected) -> None:
    layout = sweep.layout
    for sampled in swept.sampled:
        sampling = sampled.batch.sampling
        if sampled.outcomes is not None:
            names = [channel.attribute for channel in sampling.channels]
            lanes = dict(zip(names, sampled.values, strict=True))
            site = layout.number[sampled.mote]
            account.made.setdefault(sampling.extent, []).append(ExtentReadings(site, sampled.tick, lanes))
    for arrived in swept.arrived:
        mote, tick, _ = arrived.before
        of_these = layout.number[arrived.sampled.mote[arrived.rows]], arrived.sampled.tick[arrived.rows]
        account.heard.setdefault(arrived.sampled.batch.sampling.extent, []).extend(
            [of_these, (layout.number[mote], tick)]
        )
    for merged in swept.merged:
        account.merged(merged.table.number, (layout.number[merged.rows.mote], merged.rows.tick))
    for hop in swept.hops:
        home = hop.came & (layout.parent[hop.frames.holder] == GATEWAY)
        if home.any():
            account.latest_us = max(account.latest_us, int((hop.arrived[home] % account.round_us).max()))


def measure_by_events(configs: Mapping[int, MoteConfig], placed: Sequence[PlacedOperator], scenario: Scenario, seed: int, rounds: range,
                told: Callable[[int], None]) -> Measurement:  # fmt: skip
    account = _Collected(configs, placed, rounds)
    built = build_world(replace(scenario, begin_ms=rounds.start * account.round_us // MS), seed, traced=False)
    watching = _TraceCollector(account)
    built.trace.watch = watching.watch
    for site, each in configs.items():
        built.motes[site].install(each)
    for number in rounds:
        built.kernel.run_until((number + 1) * account.round_us - 1)
        told(number + 1 - rounds.start)
    return watching.finished({site: built.motes[site].spent for site in configs})


class _TraceCollector:
    """Makes of events what a sweep has in columns."""

    def __init__(self, account: _Collected) -> None:
        self.account = account
        self._samplings = account.samplings()
        self._posted: dict[tuple[int, int, int], tuple[int, range]] = {}
        self._rows: dict[int, list[tuple[int, int, tuple]]] = {}
        self._heard: dict[str, list[tuple[int, int]]] = {}

    def watch(self, event: Event) -> None:
        self.account.tally.watch(event)
        match event.what:
            case "produced":
                self._rows.setdefault(event["sampling"], []).append((event.mote, event["tick"], event["values"]))
            case "posted":
                epochs = range(event["first"], event["first"] + event["count"])
                self._posted[event.mote, event["boot"], event["seq"]] = event["sampling"], epochs
            case "delivered":
                self.account.latest_us = max(self.account.latest_us, event.time % self.account.round_us)
                if event["kind"] == FrameKind.READING.name:
                    self._arrived(event)
            case "merged" if event["readings"]:  # of a group that came back, all are with its first part
                places = [tuple(map(int, place.split(":"))) for place in event["readings"].split(",")]
                self.account.merged(event["table"], tuple(map(_whole, zip(*places, strict=True))))

    def _arrived(self, event: Event) -> None:
        number, epochs = self._posted[event["origin"], event["boot"], event["seq"]]
        when = self._samplings[number].epochs
        places = [(event["origin"], when.start + epoch * when.interval) for epoch in epochs]
        self._heard.setdefault(self._samplings[number].extent, []).extend(places)

    def finished(self, joules: Mapping[int, float]) -> Measurement:
        for number, rows in self._rows.items():
            sites, ticks, values = zip(*rows, strict=True)
            names = [channel.attribute for channel in self._samplings[number].channels]
            columns = zip(*values, strict=True) if names else ()
            lanes = {name: _lane(column) for name, column in zip(names, columns, strict=True)}
            self.account.made.setdefault(self._samplings[number].extent, []).append(
                ExtentReadings(_whole(sites), _whole(ticks), lanes)
            )
        for extent, places in self._heard.items():
            self.account.heard.setdefault(extent, []).append(tuple(map(_whole, zip(*places, strict=True))))
        return self.account.finished(joules)


def _whole(values: Iterable[int]) -> np.ndarray:
    return np.array(tuple(values), np.int64)


def _lane(column: Iterable[int | None]) -> ValueColumn:
    column = tuple(column)
    return ValueColumn(_whole(value or 0 for value in column), np.array([value is not None for value in column]))

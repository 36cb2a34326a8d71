"""The measurements and computations of motes in some rounds: all sites and ticks of a sampling at once.

All samplings are measured before any program runs: a program may read what its mote measured of another sampling at the same
tick.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.schedule import Sampling, sensor_code
from innet.costs.hardware import Hardware
from innet.operators.column_evaluation import Mask, ValueColumn, choose_values
from innet.program.batch_interpreter import ProgramOutcomes, SampleColumns, run_batch
from innet.program.mote_program import MoteProgram
from simulator.kernel import MS
from simulator.mote import compute_time_us, count_steps
from simulator.mote_config import MoteConfig
from simulator.sensor import Sensor
from simulator.vector_engine.layout import NetworkLayout, NotVectorisableError


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """The motes that run the same code for the same sampling. `mote` has their positions in the layout."""

    sampling: Sampling
    program: MoteProgram | None
    sensors: tuple[Sensor | None, ...]
    mote: IntArray
    sampled_nc: int  # charge of one sample
    steps: int  # instructions of one run
    computing_us: IntArray  # of one run, by mote of the batch


@dataclass(frozen=True, slots=True)
class SampledRows:
    """One row for each mote and tick, by mote and then by tick. `round` is the round in which its reading is due."""

    batch: SamplingBatch
    mote: IntArray
    tick: IntArray
    round: IntArray
    values: tuple[ValueColumn, ...]
    outcomes: ProgramOutcomes | None

    @property
    def computed(self) -> ProgramOutcomes:
        """The outcomes of rows that a program was run for."""
        if self.outcomes is None:
            raise ValueError(f"sampling {self.batch.sampling.number} has no program")
        return self.outcomes


def group_motes(configs: Mapping[int, MoteConfig], sensors: Mapping[int, Sequence[Sensor]], layout: NetworkLayout,
            kinds: Mapping[int, Hardware]) -> list[SamplingBatch]:  # fmt: skip
    """The motes of each sampling that can be computed together, by the numbers of the samplings: motes send in that order."""
    place = {number: at for at, number in enumerate(layout.number.tolist())}
    alike: dict[tuple[Hashable, ...], list[tuple[int, Sampling, MoteProgram | None, tuple[Sensor | None, ...]]]] = {}
    for number in sorted(configs):
        by_code = {sensor_code(sensor.name): sensor for sensor in sensors[number]}
        for sampling in configs[number].schedule.samplings:
            program = next((p for p in configs[number].orders.programs if p.sampling == sampling.number), None)
            own = tuple(by_code.get(channel.sensor) for channel in sampling.channels)
            key = (
                sampling,
                program and (program.body, tuple(t.shape for t in program.tables)),
                tuple(map(id, own)),
            )
            alike.setdefault(key, []).append((number, sampling, program, own))
    found = []
    for members in alike.values():
        _, sampling, program, own = members[0]
        steps = count_steps(program) if program else 0
        us = [compute_time_us(steps, kinds[number]) for number, *_ in members]
        mote = np.array([place[number] for number, *_ in members], np.int64)
        drawn = sum(sensor.sample_nc for sensor in own if sensor)
        found.append(SamplingBatch(sampling, program, own, mote, drawn, steps, np.array(us, np.int64)))
    return sorted(found, key=lambda batch: batch.sampling.number)


def sample(
    batches: Sequence[SamplingBatch], layout: NetworkLayout, rounds: range, tick_ms: int, alive: BoolArray
) -> list[SampledRows]:
    """Measure and compute all that is due in some rounds, in the order of the batches.

    `alive` is (motes, rounds): whether the mote lives.
    """
    measured = [_measure(batch, layout, rounds, tick_ms, alive) for batch in batches]
    return [replace(each, outcomes=_compute(each, measured, layout)) for each in measured]


def _measure(batch: SamplingBatch, layout: NetworkLayout, rounds: range, tick_ms: int, alive: BoolArray) -> SampledRows:
    epochs, tick_us = batch.sampling.epochs, tick_ms * MS
    begin, end = (-(-edge * layout.round_us // tick_us) for edge in (rounds.start, rounds.stop))
    first = epochs.start + max(0, -(-(begin - epochs.start) // epochs.interval)) * epochs.interval
    ticks = np.arange(first, end, epochs.interval, dtype=np.int64)
    mote, tick = np.repeat(batch.mote, len(ticks)), np.tile(ticks, len(batch.mote))
    round_ = tick * tick_us // layout.round_us
    if (tick * tick_us - round_ * layout.round_us > layout.send_begin[mote]).any():
        raise NotVectorisableError(f"sampling {batch.sampling.number} is due after the slot in which it is sent")
    here = alive[mote, round_ - rounds.start]
    mote, tick, round_ = mote[here], tick[here], round_[here]
    site, ms = layout.number[mote], tick * tick_ms
    return SampledRows(batch, mote, tick, round_, tuple(_read(sensor, site, ms) for sensor in batch.sensors), None)


def _compute(sampled: SampledRows, measured: Sequence[SampledRows], layout: NetworkLayout) -> ProgramOutcomes | None:
    program = sampled.batch.program
    if program is None:
        return None
    peers = {number: _look_up(sampled, number, measured) for number in program.peers}
    return run_batch(program, SampleColumns(layout.number[sampled.mote], sampled.tick, sampled.values, peers))


def _look_up(sampled: SampledRows, number: int, measured: Sequence[SampledRows]) -> tuple[Mask, list[ValueColumn]]:
    """A mask of the rows at which the motes measured another sampling, too, and its values there."""
    here = np.zeros(len(sampled.mote), bool)
    lanes: list[ValueColumn] = []
    for other in (each for each in measured if each.batch.sampling.number == number and len(each.mote)):
        row, found = _find_rows(other, sampled)
        here |= found
        lanes = lanes or [ValueColumn.constant(None, len(here))] * len(other.values)
        looked_up = [ValueColumn(lane.values[row], lane.valid[row]) for lane in other.values]
        lanes = [choose_values(found, *pair) for pair in zip(looked_up, lanes, strict=True)]
    return here, lanes


def _find_rows(other: SampledRows, sampled: SampledRows) -> tuple[IntArray, Mask]:
    """The row of each (mote, tick) in another sampling, and a mask of those that have one."""
    ticks = np.concatenate([other.tick, sampled.tick])
    first, span = ticks.min(), np.ptp(ticks) + 1
    known, sought = (each.mote * span + each.tick - first for each in (other, sampled))
    row = np.minimum(np.searchsorted(known, sought), len(known) - 1)
    return row, known[row] == sought


def _read(sensor: Sensor | None, site: IntArray, ms: IntArray) -> ValueColumn:
    if sensor is None:
        return ValueColumn(np.zeros(len(site), np.int64), np.zeros(len(site), bool))
    values, nulls = sensor.read_many(site, ms)
    return ValueColumn.of(values, ~nulls)

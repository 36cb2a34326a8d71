"""What motes measure and compute in some rounds: all sites and ticks of a sampling at once.

All is measured before anything is computed: a program may look at what its mote measured of another sampling at the same tick.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acquisition.schedule import Sampling, sensor_code
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
    """Sites that run the same code for the same sampling. `mote` is their place in the layout."""

    sampling: Sampling
    program: MoteProgram | None
    sensors: tuple[Sensor | None, ...]
    mote: np.ndarray
    sampled_nc: int
    steps: int  # of one run
    computing_us: np.ndarray


@dataclass(frozen=True, slots=True)
class SampledRows:
    """One row for each mote and tick, by mote and then by tick. `round` is that in which it is told."""

    batch: SamplingBatch
    mote: np.ndarray
    tick: np.ndarray
    round: np.ndarray
    values: tuple[ValueColumn, ...]
    outcomes: ProgramOutcomes | None


def group_motes(configs: Mapping[int, MoteConfig], sensors: Mapping[int, Sequence[Sensor]], layout: NetworkLayout,
            kinds: Mapping) -> list[SamplingBatch]:  # fmt: skip
    """Who can be computed together; by the numbers of their samplings, in the order of which a mote sends its readings."""
    place = {number: at for at, number in enumerate(layout.number.tolist())}
    alike: dict[tuple, list[tuple[int, Sampling, MoteProgram | None, tuple]]] = {}
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
    batches: Sequence[SamplingBatch], layout: NetworkLayout, rounds: range, tick_ms: int, there: np.ndarray
) -> list[SampledRows]:
    """All that is due in some rounds at the motes that are there, by (mote, round); in the order of the batches."""
    measured = [_measured(batch, layout, rounds, tick_ms, there) for batch in batches]
    return [replace(each, outcomes=_computed(each, measured, layout)) for each in measured]


def _measured(
    batch: SamplingBatch, layout: NetworkLayout, rounds: range, tick_ms: int, there: np.ndarray
) -> SampledRows:
    epochs, tick_us = batch.sampling.epochs, tick_ms * MS
    begin, end = (-(-edge * layout.round_us // tick_us) for edge in (rounds.start, rounds.stop))
    first = epochs.start + max(0, -(-(begin - epochs.start) // epochs.interval)) * epochs.interval
    ticks = np.arange(first, end, epochs.interval, dtype=np.int64)
    mote, tick = np.repeat(batch.mote, len(ticks)), np.tile(ticks, len(batch.mote))
    round_ = tick * tick_us // layout.round_us
    if (tick * tick_us - round_ * layout.round_us > layout.send_begin[mote]).any():
        raise NotVectorisableError(f"sampling {batch.sampling.number} goes on after a slot in which it is to be sent")
    here = there[mote, round_ - rounds.start]
    mote, tick, round_ = mote[here], tick[here], round_[here]
    site, ms = layout.number[mote], tick * tick_ms
    return SampledRows(batch, mote, tick, round_, tuple(_lane(sensor, site, ms) for sensor in batch.sensors), None)


def _computed(sampled: SampledRows, measured: Sequence[SampledRows], layout: NetworkLayout) -> ProgramOutcomes | None:
    program = sampled.batch.program
    if program is None:
        return None
    peers = {number: _beside(sampled, number, measured) for number in program.peers}
    return run_batch(program, SampleColumns(layout.number[sampled.mote], sampled.tick, sampled.values, peers))


def _beside(sampled: SampledRows, number: int, measured: Sequence[SampledRows]) -> tuple[Mask, list[ValueColumn]]:
    """Where the same motes measured another sampling at the same ticks, and what that was."""
    here, lanes = np.zeros(len(sampled.mote), bool), []
    for other in (each for each in measured if each.batch.sampling.number == number and len(each.mote)):
        row, found = _rows(other, sampled)
        here |= found
        lanes = lanes or [ValueColumn.constant(None, len(here))] * len(other.values)
        looked_up = [ValueColumn(lane.values[row], lane.valid[row]) for lane in other.values]
        lanes = [choose_values(found, *pair) for pair in zip(looked_up, lanes, strict=True)]
    return here, lanes


def _rows(other: SampledRows, sampled: SampledRows) -> tuple[np.ndarray, Mask]:
    """The row of each (mote, tick) in another sampling, and whether it has one."""
    ticks = np.concatenate([other.tick, sampled.tick])
    first, span = ticks.min(), np.ptp(ticks) + 1
    known, wanted = (each.mote * span + each.tick - first for each in (other, sampled))
    row = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return row, known[row] == wanted


def _lane(sensor: Sensor | None, site: np.ndarray, ms: np.ndarray) -> ValueColumn:
    if sensor is None:
        return ValueColumn(np.zeros(len(site), np.int64), np.zeros(len(site), bool))
    values, nulls = sensor.read_many(site, ms)
    return ValueColumn.of(values, ~nulls)

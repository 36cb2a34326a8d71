"""What motes measure and compute in some rounds: one sampling at a time, all its sites and ticks at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.schedule import Sampling, sensor_code
from innet.operators.lanes import Lane
from innet.program.program import MoteProgram
from innet.program.vectorised import Columns, Outcomes, run_many
from simulator.kernel import MS
from simulator.mote import computing_us
from simulator.sensor import Sensor
from simulator.standing import Standing
from simulator.sweep.layout import CannotSweep, Layout


@dataclass(frozen=True, slots=True)
class Batch:
    """Sites that run the same code for the same sampling. `mote` is their place in the layout."""

    sampling: Sampling
    program: MoteProgram | None
    sensors: tuple[Sensor | None, ...]
    mote: np.ndarray
    sampled_nc: int
    computing_us: np.ndarray


@dataclass(frozen=True, slots=True)
class Sampled:
    """One row for each mote and tick, by mote and then by tick. `round` is that in which it is told."""

    batch: Batch
    mote: np.ndarray
    tick: np.ndarray
    round: np.ndarray
    values: tuple[Lane, ...]
    outcomes: Outcomes | None


def batches(standing: Mapping[int, Standing], sensors: Mapping[int, Sequence[Sensor]], layout: Layout,
            kinds: Mapping) -> list[Batch]:  # fmt: skip
    """Who can be computed together."""
    place = {number: at for at, number in enumerate(layout.number.tolist())}
    alike: dict[tuple, list[tuple[int, Sampling, MoteProgram | None, tuple]]] = {}
    for number in sorted(standing):
        by_code = {sensor_code(sensor.name): sensor for sensor in sensors[number]}
        for sampling in standing[number].schedule.samplings:
            program = next((p for p in standing[number].orders.programs if p.sampling == sampling.number), None)
            _check(program)
            own = tuple(by_code.get(channel.sensor) for channel in sampling.channels)
            key = (
                sampling.number,
                program and (program.body, tuple(t.shape for t in program.tables)),
                tuple(map(id, own)),
            )
            alike.setdefault(key, []).append((number, sampling, program, own))
    found = []
    for members in alike.values():
        _, sampling, program, own = members[0]
        us = [computing_us(program, kinds[number]) if program else 0 for number, *_ in members]
        mote = np.array([place[number] for number, *_ in members], np.int64)
        drawn = sum(sensor.sample_nc for sensor in own if sensor)
        found.append(Batch(sampling, program, own, mote, drawn, np.array(us, np.int64)))
    return found


def _check(program: MoteProgram | None) -> None:
    if program and program.peers:
        raise CannotSweep("a program looks at another sampling")


def sample(batch: Batch, layout: Layout, rounds: range, tick_ms: int, there: np.ndarray) -> Sampled:
    """All that is due in some rounds at the motes that are there, by (mote, round)."""
    epochs, tick_us = batch.sampling.epochs, tick_ms * MS
    begin, end = (-(-edge * layout.round_us // tick_us) for edge in (rounds.start, rounds.stop))
    first = epochs.start + max(0, -(-(begin - epochs.start) // epochs.interval)) * epochs.interval
    ticks = np.arange(first, end, epochs.interval, dtype=np.int64)
    mote, tick = np.repeat(batch.mote, len(ticks)), np.tile(ticks, len(batch.mote))
    round_ = tick * tick_us // layout.round_us
    if (tick * tick_us - round_ * layout.round_us > layout.send_begin[mote]).any():
        raise CannotSweep(f"sampling {batch.sampling.number} goes on after a slot in which it is to be sent")
    here = there[mote, round_ - rounds.start]
    mote, tick, round_ = mote[here], tick[here], round_[here]
    site, ms = layout.number[mote], tick * tick_ms
    lanes = tuple(_lane(sensor, site, ms) for sensor in batch.sensors)
    outcomes = run_many(batch.program, Columns(site, tick, lanes)) if batch.program else None
    return Sampled(batch, mote, tick, round_, lanes, outcomes)


def _lane(sensor: Sensor | None, site: np.ndarray, ms: np.ndarray) -> Lane:
    if sensor is None:
        return Lane(np.zeros(len(site), np.int64), np.zeros(len(site), bool))
    values, nulls = sensor.reads(site, ms)
    return Lane.of(values, ~nulls)

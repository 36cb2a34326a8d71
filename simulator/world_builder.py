"""Builds the world of a scenario: the physical fields, the radio medium, motes with their sensors, gateways."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.schedule import sensor_code
from acquisition.schema import Attribute, Type
from acquisition.sources.column_conversion import convert_column
from acquisition.sources.input_format import TimeFormat
from acquisition.sources.python_values import read_file
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.times import TimeConversion
from gateway.source import did_you_mean
from innet.costs.hardware import Hardware, load_hardware
from innet.deployment import Deployment, SensorSpec
from simulator.counter_rng import Purpose, draw, uniform
from simulator.energy import Timing
from simulator.kernel import MS, Kernel
from simulator.mote import Mote
from simulator.network import Gateway
from simulator.partial_aggregates import Provenance
from simulator.physical_fields import FailingSensor, Noise, PhysicalField, RecordedField, SiteOffsets, SumField, Wave
from simulator.radio_medium import LossyChannel, RadioMedium
from simulator.scenario import Quantity, RecordedValues, Scenario
from simulator.sensor import Sensor
from simulator.tally import Tally
from simulator.trace import Trace


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """The parts of a scenario, before any mote is switched on."""

    kernel: Kernel
    trace: Trace
    tally: Tally
    declared: dict[tuple[int, int], float]  # the ratios of links at the beginning
    channel: LossyChannel
    medium: RadioMedium
    motes: dict[int, Mote]
    gateways: list[Gateway]


def build_world(
    scenario: Scenario, seed: int, sink: Callable[[str], object] | None = None, traced: bool = True, boot: int = 1
) -> SimulatedWorld:
    """Build motes that are simulated event by event.

    The trace goes to `sink`, or stays in memory without one. If it is not `traced`, its events are only counted.
    `boot` is the number of this start of all motes and gateways: frames of another start are other frames.
    """
    tally = Tally()
    kernel, trace, provenance = Kernel(scenario.begin_ms * MS), Trace(sink, tally.watch, traced), Provenance()
    channel = make_channel(scenario, seed)
    medium = RadioMedium(kernel, trace, channel)
    kinds, sensors = hardware_by_mote(scenario.deployment), make_sensors(scenario, seed)
    motes = {
        number: Mote(number, boot, kernel, medium, trace, sensors[number], kind=kinds[number], battery=site.battery,
                     ppm=_ppm(scenario.ppm, seed, number), provenance=provenance)
        for number, site in sorted(scenario.deployment.motes.items())
    }  # fmt: skip
    timing = Timing.of(next(iter(kinds.values())))
    gateways = [
        Gateway(number, timing, kernel, medium, trace, provenance, boot)
        for number in sorted(scenario.deployment.gateways)
    ]
    return SimulatedWorld(kernel, trace, tally, dict(channel.ratios), channel, medium, motes, gateways)


def make_channel(scenario: Scenario, seed: int) -> LossyChannel:
    return LossyChannel(scenario.links, seed, scenario.bursts, scenario.deployment.mtu)


def hardware_by_mote(deployment: Deployment) -> dict[int, Hardware]:
    return {number: load_hardware(site.hardware) for number, site in sorted(deployment.motes.items())}


def make_sensors(scenario: Scenario, seed: int) -> dict[int, tuple[Sensor, ...]]:
    """The sensors of each mote. Equal sensors are one object, so that they can be read together."""
    zero = Wave(0.0)
    world = {name: make_field(name, quantity, scenario, seed) for name, quantity in scenario.world.items()}
    for fault in scenario.faults:
        if fault.what == "sensor_fails":
            begin = scenario.begin_ms + fault.at_ms
            end = 2**62 if fault.until_ms is None else scenario.begin_ms + fault.until_ms
            for mote in fault.motes:
                world[fault.sensor] = FailingSensor(world.get(fault.sensor, zero), mote, begin, end)
    made: dict[tuple[str, SensorSpec], Sensor] = {}
    for site in scenario.deployment.motes.values():
        for name, spec in site.sensors.items():
            if (name, spec) not in made:
                made[name, spec] = Sensor(name, world.get(name, zero), spec.scale, spec.raw_min, spec.raw_max,
                                          round(spec.sample_ma * spec.sample_ms * 1_000))  # fmt: skip
    return {
        number: tuple(made[name, spec] for name, spec in site.sensors.items())
        for number, site in scenario.deployment.motes.items()
    }


def make_field(name: str, quantity: Quantity, scenario: Scenario, seed: int) -> PhysicalField:
    """The physical field of a quantity."""
    if quantity.recording is not None:
        return _read_recording(quantity.recording, quantity.column, scenario)
    places = {
        number: quantity.east * site.position[0] + quantity.north * site.position[1] + quantity.up * site.position[2]
        for number, site in scenario.deployment.motes.items()
    }
    cycles = tuple(Wave(0.0, cycle.swing, cycle.period_ms, phase_ms=cycle.phase_ms) for cycle in quantity.cycles)
    noise = (Noise(quantity.noise, seed, sensor_code(name)),) if quantity.noise else ()
    return SumField((Wave(quantity.mean), SiteOffsets(places), *cycles, *noise))


def _read_recording(recording: RecordedValues, column: str, scenario: Scenario) -> RecordedField:
    recorded = read_file(recording.file)
    tick_ms = scenario.deployment.tick_ms
    for name in (recording.time_column, recording.site_column, column):
        if name not in recorded.columns:
            found = did_you_mean(name, recorded.columns) or f"there are {', '.join(map(str, recorded.columns))}"
            raise InputError("SN505", f"a recorded quantity needs the column `{name}`", recorded.name, help=found)
    tick = recorded_ticks(recorded, recording, tick_ms)
    site, _ = convert_column(recorded, recording.site_column, Attribute(recording.site_column, Type.INTEGER), tick_ms)
    values, mask = convert_column(recorded, column, Attribute(column, Type.FLOAT), tick_ms)
    there = np.ones(len(tick), bool) if mask is None else mask
    order = np.argsort(tick, kind="stable")
    tick, site, values = tick[order], site[order], np.where(there, values, np.nan)[order]
    sites = np.unique(site).tolist()
    return RecordedField(
        {s: tick[site == s] * tick_ms for s in sites}, {s: values[site == s] for s in sites}, recording.hold_ms
    )


def recorded_ticks(recorded: RecordedTable, recording: RecordedValues, tick_ms: int) -> IntArray:
    """The tick of each row. Raises InputError for a row without a time."""
    ticks = TimeConversion(TimeFormat(recording.zone), tick_ms).ticks(recorded, recording.time_column)
    if ticks.null_count:
        row = int(np.flatnonzero(ticks.is_null().to_numpy(zero_copy_only=False))[0]) + 1
        raise InputError("SN505", "there is no time", recorded.name, row, recording.time_column)
    found: IntArray = ticks.to_numpy()
    return found


def _ppm(most: int, seed: int, mote: int) -> int:
    """The error of a mote's crystal in millionths: uniform from -`most` to `most`."""
    return round((2 * uniform(draw(seed, Purpose.DRIFT, mote)) - 1) * most)

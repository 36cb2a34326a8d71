"""Mote-epochs a second at both speeds: a network that collects, of 54 motes at both, of 1,000 motes for a day swept.

python bench/simulation.py [small]
"""

import time
from dataclasses import replace
from math import ceil

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from bench import record
from gateway.frame import COORDINATOR
from innet.costs.hardware import load_hardware
from innet.payload import MoteAssignment, RadioSchedule
from innet.placement.agenda import Activity, Slot
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import assemble
from simulator.energy import Timing
from simulator.kernel import MS, Kernel
from simulator.mote import Mote
from simulator.mote_config import MoteConfig
from simulator.network import Gateway
from simulator.physical_fields import Noise, SumField, Wave
from simulator.radio_medium import LossyChannel as Links
from simulator.radio_medium import RadioMedium
from simulator.sensor import Sensor
from simulator.trace import Trace
from simulator.vector_engine.engine import VectorEngine

TICK_MS, EPOCH_S = 1_000, 30
KIND = load_hardware("telosb")
SENSORS = (Sensor("temperature", SumField((Wave(20.0, 3.0), Noise(0.2, seed=1))), scale=2, sample_nc=176_000),)
CODE = b"".join((assemble("WANT"), assemble("LOAD", 0), assemble("OUT", 0), assemble("SEND"), assemble("HALT")))


def network(motes, loss):
    """A tree in which each mote has four children; slots as long as their frames need, the deepest first."""
    parents = {mote: (mote - 1) // 4 for mote in range(1, motes + 1)}
    below = dict.fromkeys(parents, 1)
    for mote in sorted(parents, reverse=True):
        if parents[mote] != COORDINATOR:
            below[parents[mote]] += below[mote]
    ratios = {}
    for mote, parent in parents.items():
        ratios[mote, parent] = ratios[parent, mote] = 1 - loss
    # A level has its slots at the same time: here only parent and child hear each other.
    attempt = Timing.of(KIND).attempt(21) / MS
    send, at = {}, 0
    for level in levels(parents):
        for family in {parents[mote]: [m for m in level if parents[m] == parents[mote]] for mote in level}.values():
            begin = at
            for mote in family:
                send[mote] = Slot(begin, ceil(below[mote] * 3 * attempt), Activity.SEND, parents[mote])
                begin = send[mote].end_ms
        at = max(send[mote].end_ms for mote in level)
    round_ms = EPOCH_S * 1_000
    assert at <= round_ms, f"{at / 1e3} s do not fit"
    sampling = Sampling(0, "", EpochGrid(0, EPOCH_S), (SensorChannel("", sensor_code("temperature"), 16),))
    children = {}
    for mote, parent in parents.items():
        children.setdefault(parent, []).append(replace(send[mote], activity=Activity.RECEIVE, peer=mote))
    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, (sampling,)),
            MoteAssignment(
                (MoteProgram(mote, 0, 1, 1, CODE),),
                parents[mote],
                RadioSchedule(round_ms, (*children.get(mote, ()), send[mote])),
            ),
            TICK_MS,
        )
        for mote in parents
    }
    return configs, ratios


def levels(parents):
    """The motes by their distance, the farthest first."""
    depth = {}
    for mote in sorted(parents):
        depth[mote] = depth.get(parents[mote], 0) + 1
    return [[mote for mote in parents if depth[mote] == hops] for hops in range(max(depth.values()), 0, -1)]


def one_by_one(motes, epochs, loss):
    configs, ratios = network(motes, loss)
    kernel, trace = Kernel(0), Trace(sink=lambda text: None)
    medium = RadioMedium(kernel, trace, Links(ratios, seed=1))
    Gateway(COORDINATOR, Timing.of(KIND), kernel, medium, trace)
    for site, config in configs.items():
        Mote(site, 1, kernel, medium, trace, SENSORS, kind=KIND).install(config)
    begun = time.perf_counter()
    for epoch in range(1, epochs + 1):
        kernel.run_until(epoch * EPOCH_S * 1_000 * MS - 1)
        trace.flush(kernel.now)
    return time.perf_counter() - begun


def swept(motes, epochs, loss, chunk=240):
    configs, ratios = network(motes, loss)
    sweep = VectorEngine(configs, dict.fromkeys(configs, SENSORS), dict.fromkeys(configs, KIND), Links(ratios, 1), 0)
    begun = time.perf_counter()
    for first in range(0, epochs, chunk):
        sweep.advance(min(chunk, epochs - first))
    return time.perf_counter() - begun


RUNS = (
    ("one by one", one_by_one, 54, 120),
    ("swept", swept, 54, 2_880),
    ("swept", swept, 1_000, 2_880),
)


def main():
    figures, speeds = [], {}
    for name, run, motes, epochs in RUNS:
        for loss in (0.0, 0.2):
            seconds = run(motes, epochs, loss)
            case = f"{name}, {motes} motes, {epochs} epochs, {loss:.0%} loss"
            speeds[name, motes, loss] = motes * epochs / seconds
            figures += [(case, "time", round(seconds, 2), "s")]
            figures += [(case, "speed", round(motes * epochs / seconds), "mote-epochs a second")]
            print(f"{case:<46}{seconds:8.2f} s{motes * epochs / seconds:12,.0f} mote-epochs a second", flush=True)
    for loss in (0.0, 0.2):
        faster = speeds["swept", 54, loss] / speeds["one by one", 54, loss]
        figures.append((f"54 motes, {loss:.0%} loss", "swept to one by one", round(faster, 1), "times"))
    record.keep_figures("simulation", "default", figures)


if __name__ == "__main__":
    main()

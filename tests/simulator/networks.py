"""Small networks under agendas that are made up: for tests that compare the two speeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from hypothesis import strategies as st

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from gateway.frame import MAX_FRAME
from innet.costs.hardware import MAX_ATTEMPTS, Hardware, load_hardware
from innet.payload import MoteAssignment, RadioSchedule
from innet.placement.agenda import Activity, Slot
from innet.placement.round_pattern import EVERY_ROUND, RoundPattern
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import NO_SLOT, assemble
from innet.program.opcodes import StateKind as ALL_KINDS
from simulator.energy import Timing
from simulator.kernel import MS, Kernel
from simulator.mote import Mote
from simulator.mote_config import MoteConfig
from simulator.network import Gateway
from simulator.partial_aggregates import Provenance
from simulator.physical_fields import FailingSensor, Noise, SumField, Wave
from simulator.radio_medium import Bursts, RadioMedium
from simulator.radio_medium import LossyChannel as Links
from simulator.sensor import Sensor
from simulator.trace import Trace
from simulator.vector_engine.engine import VectorEngine
from simulator.vector_engine.trace_writer import write_trace

LOSS = st.sampled_from((1.0, 0.9, 0.6, 0.3))
TICK_MS = 1_000
GATEWAY = 0
KIND = load_hardware("telosb")
SENSORS = (
    Sensor("temperature", SumField((Wave(20.0, 3.0, 60_000, 0.5), Noise(0.4, seed=9))), scale=2, sample_nc=176_000),
    Sensor("voltage", FailingSensor(Wave(2_950.0, 40.0, 7_000), site=2, begin=0, end=40_000), sample_nc=12),
)


@dataclass(frozen=True)
class Made:
    """The configuration of a network for both engines."""

    configs: dict[int, MoteConfig]
    links: dict[tuple[int, int], float]
    seed: int
    bursts: Bursts | None
    begin: int  # the first tick
    rounds: int
    batteries: Mapping[int, float] = field(default_factory=dict)  # joules; of a mote that is not here, endless
    sensors: Mapping[int, Sequence[Sensor]] = field(default_factory=dict)  # SENSORS, where there are no others
    kinds: Mapping[int, Hardware] = field(default_factory=dict)  # KIND, where there is no other
    mtu: int = MAX_FRAME

    @property
    def round_us(self):
        return next(iter(self.configs.values())).slots.round_us

    @property
    def begin_us(self):
        return self.begin * TICK_MS * MS

    @property
    def end_us(self):
        return self.begin_us + self.rounds * self.round_us

    def channel(self):
        return Links(self.links, self.seed, self.bursts, self.mtu)

    def one_by_one(self):
        """The trace, and the joules of each mote."""
        kernel, trace, provenance = Kernel(self.begin_us), Trace(), Provenance()
        medium = RadioMedium(kernel, trace, self.channel())
        Gateway(GATEWAY, Timing.of(KIND), kernel, medium, trace, provenance)
        sensors, kinds, batteries = self._motes()
        motes = [Mote(site, 1, kernel, medium, trace, sensors[site], kind=kinds[site], battery=batteries[site],
                      provenance=provenance) for site in self.configs]  # fmt: skip
        for mote in motes:
            mote.install(self.configs[mote.site])
        kernel.run_until(self.end_us - 1)
        return trace, {mote.site: mote.spent for mote in motes}

    def swept(self, chunks=1):
        sensors, kinds, batteries = self._motes()
        sweep = VectorEngine(self.configs, sensors, kinds, self.channel(), self.begin_us)
        trace, batteries = Trace(), np.array([batteries[number] for number in sweep.layout.number.tolist()])
        for size in (self.rounds // chunks,) * (chunks - 1) + (self.rounds - self.rounds // chunks * (chunks - 1),):
            for swept in sweep.advance_on_batteries(size, batteries):
                write_trace(swept, sweep.layout, trace, TICK_MS)
        for number, died in zip(sweep.layout.number.tolist(), sweep.died_us.tolist(), strict=True):
            if died < self.end_us:
                trace.record(died, number, "died", why="battery")
        spent = sweep.spent(self.end_us - 1)
        return trace, dict(zip(sweep.layout.number.tolist(), spent.tolist(), strict=True))

    def _motes(self):
        usual = (SENSORS, self.sensors), (KIND, self.kinds), (inf, self.batteries)
        return tuple(dict.fromkeys(self.configs, each) | own for each, own in usual)


def duties_along(parents, round_ms, share, begin_ms, rounds=EVERY_ROUND):
    """Slots one after the other, the deepest first; each long enough for all frames of its subtree, times `share`.
    They may come again when the last is over."""
    depth = {}
    for mote in parents:
        at, hops = mote, 0
        while at != GATEWAY:
            at, hops = parents[at], hops + 1
        depth[mote] = hops
    below = {mote: 1 for mote in parents}
    order = sorted(parents, key=lambda mote: (-depth[mote], mote))
    for mote in order:
        if parents[mote] != GATEWAY:
            below[parents[mote]] += below[mote]
    attempt = Timing.of(KIND).attempt(50) / MS
    length = {mote: max(1, int(below[mote] * MAX_ATTEMPTS * attempt * share)) for mote in order}
    start, first_ms = {}, begin_ms
    for mote in order:
        start[mote] = begin_ms
        begin_ms += length[mote]
    assert begin_ms <= round_ms
    return {
        mote: RadioSchedule(
            round_ms,
            (
                *(
                    Slot(start[child], length[child], Activity.RECEIVE, child)
                    for child in order
                    if parents[child] == mote
                ),
                Slot(start[mote], length[mote], Activity.SEND, parents[mote]),
            ),
            repeat_ms=begin_ms - first_ms,
            rounds=rounds,
            poll_phase=rounds.poll_phase(depth[mote]),
        )
        for mote in parents
    }


def collecting(channels, threshold=None):
    """A program that sends all channels; with a threshold, only where the first is above it."""
    code = assemble("WANT")
    body = b"".join(assemble("LOAD", c) + assemble("OUT", c) for c in range(channels)) + assemble("SEND")
    if threshold is not None:
        code += assemble("LOAD", 0) + assemble("LIT16", threshold) + assemble("GT") + assemble("SKIP", len(body))
    return code + body + assemble("HALT")


def skipping(condition, body):
    """The body where the condition holds."""
    return condition + assemble("SKIP", len(body)) + body if condition else body


RARELY = st.sampled_from((
    b"", b"", assemble("EVERY", 20), assemble("EVERY", 30), assemble("WITHIN", 40, 10, 20), assemble("WITHIN", 60, 5, 45),
))  # fmt: skip
"""At which ticks readings are wanted; at all, where there is no condition."""


@dataclass(frozen=True)
class Table:
    """The folds of motes: SUM and MAX of a value, by groups of it if there are keys."""

    sites: tuple[int, ...]
    period: int
    edges: tuple[int, int]
    grouped: bool
    threshold: int | None

    @property
    def every(self):
        """(in one of how many rounds of ten ticks slices end, the number of the first such); each round where that is not one."""
        if self.period % 10 or self.edges[0] != self.edges[1]:
            return 1, 0
        every = self.period // 10
        return every, (-(-self.edges[0] // 10) - 1) % every

    def code(self, site):
        slot = self.sites.index(site) if site in self.sites else NO_SLOT
        declared = assemble("TABLE", 5, len(self.sites), slot, int(self.grouped), 40, self.period, *self.edges)
        return declared + b"".join(assemble("KEEP", ALL_KINDS[kind].value) for kind in ("SUM", "MAX"))

    def folding(self, value=assemble("LOAD", 0)):
        body = value + assemble("LIT16", 150) + assemble("DIV") + assemble("KEY") if self.grouped else b""
        body += assemble("ENTER", 5)
        body += b"".join(value + assemble("FOLD", place) for place in (0, 1))
        code = assemble("MARK", 5)
        if self.threshold is not None:
            code += value + assemble("LIT16", self.threshold) + assemble("GT") + assemble("SKIP", len(body))
        return code + body


@st.composite
def tables(draw, motes):
    period = draw(st.sampled_from((5, 10, 20, 30)))
    first = draw(st.integers(0, period - 1))
    edges = first, draw(st.sampled_from((first, draw(st.integers(first, period - 1)))))
    sites = tuple(sorted(draw(st.sets(st.sampled_from(motes), min_size=1))))
    return Table(sites, period, edges, draw(st.booleans()), draw(st.sampled_from((None, 2_100, 2_600))))


@st.composite
def trees(draw, loss):
    """The parent of each mote, and the links between them."""
    motes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True))
    parents = {mote: draw(st.sampled_from([GATEWAY, *motes[:at]])) for at, mote in enumerate(motes)}
    links = {}
    for mote, parent in parents.items():
        links[mote, parent], links[parent, mote] = draw(loss), draw(loss)
    return parents, links


@st.composite
def networks(draw, loss=LOSS):
    parents, links = draw(trees(loss))
    motes = list(parents)
    interval = draw(st.sampled_from((5, 10, 20)))
    # The slots come after all samples of a round.
    share, begin_ms = draw(st.sampled_from((1.0, 0.2, 0.05))), 20 if interval > 5 else 5_500
    channels = (SensorChannel("", sensor_code("temperature"), draw(st.sampled_from((16, 8)))),
                SensorChannel("", sensor_code("voltage"), 16))[: draw(st.integers(1, 2))]  # fmt: skip
    begin = 10 * draw(st.integers(0, 100))
    sampling = Sampling(3, "", EpochGrid(begin, interval), channels)
    read = skipping(draw(RARELY), collecting(len(channels), draw(st.sampled_from((None, 2_100, 2_600))))[:-1])
    table = draw(st.none() | tables(motes))
    sends = table is None or draw(st.booleans())
    rounds = RoundPattern(*(table.every if table and not sends else (1, 0)), draw(st.integers(0, 3)))
    slots = duties_along(parents, 10 * TICK_MS, share, begin_ms, rounds)
    keepers = draw(st.sets(st.sampled_from(motes))) | set(table.sites) if table else ()

    def code(mote):
        """Sites of the table fold and perhaps send as well; some others merge what passes through them."""
        if mote not in keepers:
            return (read if sends else b"") + assemble("HALT")
        body = read if sends else b""
        return table.code(mote) + body + (table.folding() if mote in table.sites else b"") + assemble("HALT")

    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, (sampling,)),
            MoteAssignment((MoteProgram(mote, 3, 1, len(channels), code(mote)),), parents[mote], slots[mote]),
            TICK_MS,
        )
        for mote in parents
    }
    bursts = draw(st.sampled_from((None, Bursts(0.1, 0.3, 0.2))))
    battery = draw(st.sampled_from((inf, 0.01, 0.003))) if interval > 5 else inf
    batteries = dict.fromkeys(parents, battery)
    seed, rounds, mtu = draw(st.integers(0, 2**32)), draw(st.integers(1, 30)), draw(st.sampled_from((MAX_FRAME, 250)))
    return Made(configs, links, seed, bursts, begin, rounds, batteries, mtu=mtu)

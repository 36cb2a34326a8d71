"""Small networks whose motes look at two of their samplings together: pairs that are delivered, and that are folded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from hypothesis import strategies as st

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from innet.payload import MoteAssignment
from innet.placement.round_pattern import RoundPattern
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import assemble
from simulator.mote_config import MoteConfig
from simulator.physical_fields import FailingSensor
from simulator.radio_medium import Bursts
from tests.simulator.networks import (
    KIND,
    LOSS,
    RARELY,
    SENSORS,
    TICK_MS,
    Made,
    Table,
    duties_along,
    skipping,
    tables,
    trees,
)

SLOW = replace(KIND, processor=replace(KIND.processor, instruction_us=3 * KIND.processor.instruction_us))
TEMPERATURE = SensorChannel("", sensor_code("temperature"), 16)
VOLTAGE = SensorChannel("", sensor_code("voltage"), 16)


@dataclass(frozen=True)
class Side:
    """One of two samplings that look at each other, and what is asked of its readings."""

    own: Sampling
    other: int
    sends: bool
    here: bool  # whether only what has a partner is sent
    threshold: int | None  # of the sum with it
    rarely: bytes = b""  # at which ticks it is sent

    @property
    def sum(self):
        return assemble("LOAD", 0) + assemble("PEER", self.other, 0) + assemble("ADD")

    def delivering(self):
        if not self.sends:
            return b""
        body = b"".join(assemble("LOAD", c) + assemble("OUT", c) for c in range(len(self.own.channels)))
        body += assemble("SEND")
        if self.threshold is not None:
            body = skipping(self.sum + assemble("LIT16", self.threshold) + assemble("GT"), body)
        body = assemble("WANT") + (skipping(assemble("HERE", self.other), body) if self.here else body)
        return skipping(self.rarely, body)

    def folding(self, table: Table):
        return skipping(assemble("HERE", self.other), table.folding(self.sum))

    def program(self, mote, samples, table):
        """Where a table is kept, but nothing sampled, what children fold is merged."""
        code = table.code(mote) if table else b""
        if samples:
            code += self.delivering() + (self.folding(table) if table and mote in table.sites else b"")
        channels = len(self.own.channels) if samples else 0
        return MoteProgram(mote, self.own.number, 1, channels, code + assemble("HALT"))


@st.composite
def sides(draw, begin) -> tuple[Side, Side]:
    """One of temperatures, and one of voltages, whose number may be smaller."""
    numbers = draw(st.sampled_from(((3, 1), (3, 7))))
    channels = draw(st.sampled_from(((TEMPERATURE,), (TEMPERATURE, VOLTAGE)))), (VOLTAGE,)
    starts, intervals = st.sampled_from((0, 0, 5, 20)), st.sampled_from((5, 10, 10, 20))
    return tuple(
        Side(
            Sampling(number, "", EpochGrid(begin + draw(starts), draw(intervals)), sampled),
            other,
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.sampled_from((None, 4_800, 5_100))),
            draw(RARELY),
        )
        for number, other, sampled in zip(numbers, numbers[::-1], channels, strict=True)
    )


@st.composite
def joining_networks(draw):
    """Some motes take only one of the samplings, or none; some take samplings without a program."""
    parents, links = draw(trees(LOSS))
    motes, begin = list(parents), 10 * draw(st.integers(0, 100))
    both = draw(sides(begin))
    taken = st.sampled_from((*[both] * 6, both[:1], both[1:], ()))
    taking: dict[int, Sequence[Side]] = {mote: draw(taken) for mote in motes}
    table = draw(st.none() | tables(motes))
    if table:
        table = replace(table, threshold=draw(st.sampled_from((None, 4_800, 5_100))))
    keepers = draw(st.sets(st.sampled_from(motes))) | set(table.sites) if table else set()
    idle = draw(st.booleans()) and not both[1].sends  # what only the others look at needs no program

    def programs(mote):
        left, right = both
        for side, its in ((left, table if mote in keepers else None), (right, None)):
            if (side in taking[mote] and not (idle and side is right)) or its:
                yield side.program(mote, side in taking[mote], its)

    every = table.every if table and not any(side.sends for side in both) else (1, 0)
    rounds = RoundPattern(*every, draw(st.integers(0, 3)))
    epochs = [side.own.epochs for side in both]
    whole = all(each.interval % 10 == each.start % 10 == 0 for each in epochs)  # no mote wakes within a round
    duties = duties_along(
        parents, 10 * TICK_MS, draw(st.sampled_from((1.0, 0.2, 0.05))), 20 if whole else 5_500, rounds
    )
    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, tuple(sorted((side.own for side in taking[mote]), key=lambda own: own.number))),
            MoteAssignment(tuple(programs(mote)), parents[mote], duties[mote]),
            TICK_MS,
        )
        for mote in motes
    }
    batteries = st.sampled_from((inf, 0.01, 0.003)) if whole else st.just(inf)
    return Made(
        configs, links, draw(st.integers(0, 2**32)), draw(st.sampled_from((None, Bursts(0.1, 0.3, 0.2)))), begin,
        draw(st.integers(1, 30)),
        {mote: draw(batteries) for mote in motes},
        {mote: draw(st.sampled_from((SENSORS, SENSORS[:1], failing(mote, begin)))) for mote in motes},
        {mote: draw(st.sampled_from((KIND, SLOW))) for mote in motes},
    )  # fmt: skip


def failing(mote, begin):
    """A voltage that is dearer, and null at first."""
    temperature, voltage = SENSORS
    begin_ms = begin * TICK_MS
    return temperature, replace(
        voltage, field=FailingSensor(voltage.field, mote, begin_ms, begin_ms + 60_000), sample_nc=90_000
    )

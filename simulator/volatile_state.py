"""Volatile state: what a mote keeps in its memory and loses when it is switched off."""

from dataclasses import dataclass, field

from acquisition.schedule import Schedule
from gateway.installer import Installer
from gateway.link import SequenceSet
from innet.payload import MoteAssignment
from innet.program.mote_program import MoteProgram
from simulator.association import Association
from simulator.clock import SkewDetector
from simulator.duplicate_filter import DuplicateFilter
from simulator.outbox import Outbox
from simulator.partial_aggregates import PartialAggregates
from simulator.reading_counters import ReadingCounters
from simulator.sample_buffer import SampleBuffer


@dataclass(slots=True)
class VolatileState:
    """The state that a mote loses when it is switched off."""

    schedule: Schedule  # in effect
    partials: PartialAggregates
    outbox: Outbox
    duplicates: DuplicateFilter
    association: Association
    next_schedule: Schedule | None = None  # received, and not in effect yet
    orders: MoteAssignment = field(default_factory=MoteAssignment)
    version: int = 0  # of the orders, and of the schedule that belongs to them
    programs: tuple[MoteProgram, ...] = ()  # of the orders, and earlier ones for samplings that still need them
    installer: Installer = field(default_factory=Installer)
    chunks: int = 0  # received
    tick_ms: int = 0
    samples: SampleBuffer = field(default_factory=SampleBuffer)
    counters: ReadingCounters = field(default_factory=ReadingCounters)
    skew_detector: SkewDetector = field(default_factory=SkewDetector)
    received: dict[int, SequenceSet] = field(default_factory=dict)  # frames from the station, by its boot

    def first_tick(self, schedule: Schedule) -> int:
        """The tick from which on a schedule replaces the one in effect: the first of its new samplings."""
        taken = self.schedule.samplings
        return min((each.epochs.start for each in schedule.samplings if each not in taken), default=0)

    def choose_programs(self) -> None:
        """Choose the program of each sampling.

        A new program arrives before its schedule. As long as the mote samples by the old schedule it runs the old program,
        also if the new program reads another sampling that the mote does not take yet.
        """
        still: tuple[MoteProgram, ...] = ()
        if self.schedule.version != self.version:
            sampled = {sampling.number for sampling in self.schedule.samplings}
            ready = {program.sampling for program in self.orders.programs if program.peers <= sampled}
            still = tuple(program for program in self.programs if program.sampling in sampled - ready)
        kept = {program.sampling for program in still}
        self.programs = (*still, *(program for program in self.orders.programs if program.sampling not in kept))
        self.partials.install(self.programs)

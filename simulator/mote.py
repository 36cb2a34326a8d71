"""A simulated mote: keeps its clock by TIME, wakes by its SCHEDULE, measures, runs its PROGRAM, sends what that gives.

It speaks the frames of a real mote and knows as little: no extent's name, no query.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

from acquisition.errors import PayloadError as AcquisitionPayloadError
from acquisition.payload import Row, decode_schedule, decode_time, encode_readings, epochs_per_frame
from acquisition.schedule import Sampling, Schedule, sensor_code
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, FrameKind, payload_room
from gateway.image import Image, decode_chunk
from gateway.installer import Installer
from gateway.link import SequenceSet
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedCopy,
    EventPayload,
    Hello,
    HelloReason,
    RefusedImage,
    encode_event,
    encode_hello,
)
from innet.costs.hardware import Hardware, load_hardware
from innet.errors import PayloadError as InnetPayloadError
from innet.payload import MoteAssignment, decode_assignment
from innet.program.interpreter import TickSample, run
from innet.program.mote_program import MoteProgram, decode_instructions
from innet.program.opcodes import DECLARING
from simulator.association import CALL_PAUSE_US, Association
from simulator.clock import Clock, SkewDetector
from simulator.duplicate_filter import DuplicateFilter
from simulator.energy import Timing, spent
from simulator.forwarder import Forwarder
from simulator.kernel import MS, Kernel
from simulator.mac import RetryPolicy
from simulator.mote_config import MoteConfig
from simulator.outbox import Outbox
from simulator.partial_aggregates import PartialAggregates, Provenance
from simulator.radio_medium import RadioMedium
from simulator.radio_slots import RadioSlots, make_radio_slots
from simulator.reading_counters import ReadingCounters
from simulator.sample_buffer import SampleBuffer
from simulator.sensor import Sensor
from simulator.trace import Trace


@dataclass(slots=True)
class VolatileState:
    """What a mote forgets when it is switched off."""

    schedule: Schedule  # that it keeps to
    partials: PartialAggregates
    outbox: Outbox
    copies: DuplicateFilter
    association: Association
    coming: Schedule | None = None  # that it was told of, and that has not begun
    orders: MoteAssignment = field(default_factory=MoteAssignment)
    version: int = 0  # of the orders: that of the schedule that they are for
    programs: tuple[MoteProgram, ...] = ()  # of the orders, and those before for what is still sampled by them
    installer: Installer = field(default_factory=Installer)
    chunks: int = 0  # that came
    tick_ms: int = 0
    samples: SampleBuffer = field(default_factory=SampleBuffer)
    counters: ReadingCounters = field(default_factory=ReadingCounters)
    skew_detector: SkewDetector = field(default_factory=SkewDetector)
    received: dict[int, SequenceSet] = field(default_factory=dict)  # what came from above, by its boot


class Mote:
    """One mote. `boot` is how often it was started; its frames carry it. That number and the last tick that it has measured are
    all that it keeps when it is switched off."""

    def __init__(self, site: int, boot: int, kernel: Kernel, medium: RadioMedium, trace: Trace, sensors: Iterable[Sensor],
                 retry: RetryPolicy | None = None, kind: Hardware | None = None, ppm: int = 0, battery: float = inf,
                 provenance: Provenance | None = None) -> None:  # fmt: skip
        self.site, self.clock, self.battery = site, Clock(ppm), battery
        self.kind = kind or load_hardware("telosb")
        self._kernel, self._medium, self._trace = kernel, medium, trace
        self._sensors: Mapping[int, Sensor] = {sensor_code(sensor.name): sensor for sensor in sensors}
        self._provenance = Provenance() if provenance is None else provenance
        self.forwarder = Forwarder(site, Timing.of(self.kind), kernel, medium, trace, self, retry or RetryPolicy())  # fmt: skip
        self.alive = False
        self._measured = -1
        self._born = kernel.now
        self._spent_before = 0.0  # in earlier lives
        self._plans = 0  # what was planned under an earlier schedule or clock, or before a reboot, is void
        self._slots: RadioSlots | None = None
        self._memory = self._empty(boot, None)
        medium.join(self.forwarder)

    # --- its life ---

    def start(self) -> None:
        """Switch on, say hello, and tell who is heard as soon as everybody is there."""
        self.alive, self._born = True, self._kernel.now
        self.forwarder.switch_on()
        reason = HelloReason.RESET if self._plans else HelloReason.SWITCHED_ON
        self._memory.association.begin(0, reason, CALL_PAUSE_US)

    def die(self, why: str) -> None:
        """Switch off for good."""
        self._trace.record(self._kernel.now, self.site, "died", why=why)
        self._stop()

    def reboot(self) -> None:
        """Lose all memory and start again."""
        self._trace.record(self._kernel.now, self.site, "rebooted")
        if self.alive:
            self._stop()
        self.start()

    def hang(self) -> None:
        """Its processor stands still; the radio goes on to acknowledge."""
        self._plans += 1
        self._slots = None
        self.forwarder.hang()

    def jump(self, by_ms: int) -> None:
        """Its clock goes wrong."""
        self.clock.jump(self._kernel.now, by_ms)
        self._arm()

    def install(self, config: MoteConfig) -> None:
        """Begin as if all had been told before, with a clock that is right."""
        self.alive, self._born = True, self._kernel.now
        self.forwarder.switch_on()
        self._memory.schedule, self._memory.tick_ms = config.schedule, config.tick_ms
        self._obey(config.orders, config.schedule.version)
        self.clock.set(self._kernel.now, self._kernel.now // MS)
        self._arm()

    @property
    def spent(self) -> float:
        """Joules so far, in all its lives."""
        if not self.alive:
            return self._spent_before
        self.forwarder.settle()
        return self._spent_before + spent(self.kind, self._kernel.now - self._born, self.forwarder.account)

    def _stop(self) -> None:
        self.forwarder.switch_off()
        self._spent_before = self.spent
        self.alive, self._slots = False, None
        self.forwarder.account.clear()
        self.clock.stop()
        self._plans += 1
        self._memory.outbox.end()
        self._memory.association.end()
        self._memory = self._empty(self.boot + 1, self._kernel.now)

    def _empty(self, boot: int, forgot: int | None) -> VolatileState:
        outbox = Outbox(self.site, boot, self.forwarder, self._kernel, self._trace, self._handed_over)
        association = Association(
            self.site, self._kernel, self._medium, self.forwarder, outbox, self._hello, lambda: self._slots is not None
        )
        return VolatileState(
            Schedule(self.site, 0, ()),
            PartialAggregates(self.site, self._provenance),
            outbox,
            DuplicateFilter(forgot),
            association,
        )

    @property
    def boot(self) -> int:
        return self._memory.outbox.boot

    # --- what comes in ---

    def receive(self, frame: Frame) -> bool:
        """Do what a frame says, once; say whether it made sense, however often it comes."""
        try:
            if frame.kind is FrameKind.ACK:
                self._account(frame)
                return True
            obey = self._understand(frame)
            if self._memory.received.setdefault(frame.boot, SequenceSet()).add(frame.seq):
                self._trace.record(self._kernel.now, self.site, "received", kind=frame.kind.name, seq=frame.seq)
                obey()
        except (FrameError, AcquisitionPayloadError, InnetPayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            return False
        return True

    def _understand(self, frame: Frame) -> Callable[[], None]:
        """What a frame asks for, still to be done."""
        match frame.kind:
            case FrameKind.TIME:
                return partial(self._set_clock, *decode_time(frame.payload, self.site))
            case FrameKind.SCHEDULE | FrameKind.PROGRAM:
                decode_chunk(frame.payload)
                return partial(self._take_chunk, frame)
            case FrameKind.HELLO:
                return partial(self._memory.association.send_hello, HelloReason.ASKED)
        raise FrameError("kind", f"a mote does not know what to do with {frame.kind.name}")

    def _set_clock(self, ms: int, tick_ms: int) -> None:
        before = self.clock.local_time(self._kernel.now) if self.clock.is_set else None
        self.clock.set(self._kernel.now, ms)
        self._memory.tick_ms = tick_ms
        self._arm()
        if before is not None and abs(by := ms - before // MS) > tick_ms:
            self._say(ClockMoved(by))

    def _take_chunk(self, frame: Frame) -> None:
        """Install an image when it is whole, and as a whole; say so, also to somebody who does not know."""
        memory = self._memory
        if memory.installer.has(frame.kind, decode_chunk(frame.payload)):
            self._memory.association.send_hello(HelloReason.INSTALLED)
            return
        if image := memory.installer.take(frame):
            self._install(frame.kind, image)
        memory.chunks += 1
        self._kernel.after(CHUNK_WAIT, partial(self._say_wants, memory, memory.chunks))

    def _install(self, kind: FrameKind, image: Image) -> None:
        try:
            if kind is FrameKind.PROGRAM:
                self._obey(decode_assignment(image, self.site), image.version)
            else:
                self._memory.coming = decode_schedule(image, self.site)
                if self.clock.is_set:
                    self._change_schedule(self._earliest)
        except (AcquisitionPayloadError, InnetPayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            self._say(RefusedImage(kind, image.stamp))
            return
        self._memory.installer.install(kind, image)
        self._arm()
        self._memory.association.send_hello(HelloReason.INSTALLED)
        if self._slots:
            self._memory.association.begin(CALL_PAUSE_US, HelloReason.INSTALLED, 2 * CALL_PAUSE_US)

    def _account(self, frame: Frame) -> None:
        """The base station misses some of our frames."""
        if (lost := self._memory.outbox.account(frame)).gaps:
            self._say(lost)

    def _obey(self, orders: MoteAssignment, version: int) -> None:
        self._memory.orders, self._memory.version = orders, version
        self._take_programs()
        self.forwarder.adopt(orders.parent)
        self._slots = make_radio_slots(orders)

    def _change_schedule(self, tick: int) -> None:
        """Keep to the schedule that is coming, if it has begun at a tick."""
        memory = self._memory
        if memory.coming and tick >= self._begin(memory.coming):
            memory.schedule, memory.coming = memory.coming, None
            self._take_programs()
            self._say_counts()

    def _begin(self, coming: Schedule) -> int:
        """With the first of those samplings that we do not take yet, a schedule takes the place of the one before."""
        taken = self._memory.schedule.samplings
        return min((each.epochs.start for each in coming.samplings if each not in taken), default=0)

    def _take_programs(self) -> None:
        """A new program comes before its schedule: as long as we sample by the old one, the old program runs.

        Also where the new one looks at another sampling that we do not take yet.
        """
        memory = self._memory
        still: tuple[MoteProgram, ...] = ()
        if memory.schedule.version != memory.version:
            sampled = {sampling.number for sampling in memory.schedule.samplings}
            told = {program.sampling for program in memory.orders.programs if program.peers <= sampled}
            still = tuple(program for program in memory.programs if program.sampling in sampled - told)
        kept = {program.sampling for program in still}
        memory.programs = (*still, *(program for program in memory.orders.programs if program.sampling not in kept))
        memory.partials.install(memory.programs)

    def merge(self, frame: Frame) -> bool:
        """Take the partials of a child into our own, where we keep such and will send some; else they are passed on.

        A copy of what was taken, or passed on, goes nowhere: whatever we have been told since, it would count twice. What
        may be one, of before we lost our memory, is dropped as well, and told.
        """
        if frame.kind is not FrameKind.PARTIAL:
            return False
        copies, now = self._memory.copies, self._kernel.now
        if copies.is_known(frame.identity):
            return True
        if frame.repeated and copies.may_be_forgotten(frame.identity, now):
            self._drop(frame)
            return True
        merges = (self._slots or self._memory.schedule.samplings) and self._memory.partials.merge(frame)
        if merges or self.forwarder.parent != BROADCAST:
            copies.remember(frame.identity, now)
        elif not frame.repeated:
            copies.refuse(frame.identity)
        if merges and self._memory.skew_detector.detect_skew(self.clock, now, self._stamp(frame)):
            self._say(ClocksDiffer(frame.mote))
        return bool(merges)

    def _stamp(self, frame: Frame) -> int:
        return self._memory.partials.first_tick(frame) * self._memory.tick_ms * MS

    def _drop(self, frame: Frame) -> None:
        self._memory.copies.remember(frame.identity, self._kernel.now)
        self._trace.record(self._kernel.now, self.site, "dropped", kind=frame.kind.name, origin=frame.mote,
                           boot=frame.boot, seq=frame.seq, why="it may be a copy")  # fmt: skip
        self._say(DroppedCopy(*frame.identity))

    # --- what happens by the clock ---

    def _arm(self) -> None:
        """Plan the next wake-up, and the slots, once clock and schedule are known."""
        self._plans += 1
        if self.clock.is_set:
            self._change_schedule(self._earliest)
            self._plan_wake()
            self.forwarder.follow(self._slots, self.clock)

    def _plan_wake(self) -> None:
        """Plan the first tick from now on at which a sampling is due, or another schedule begins."""
        memory = self._memory
        ticks = [self._next_tick()] if memory.schedule.samplings else []
        if memory.coming:
            ticks.append(self._begin(memory.coming))
        if ticks:
            tick = min(ticks)
            time = max(self.clock.true_time(tick * self._memory.tick_ms * MS), self._kernel.now)
            self._kernel.at(time, partial(self._wake, self._plans, tick))

    @property
    def _earliest(self) -> int:
        """None is measured twice: not where the clock is set back, and not where all that was sampled is forgotten. What was
        folded of it may be on its way, or wait for its time somewhere."""
        now = -(-self.clock.local_time(self._kernel.now) // (self._memory.tick_ms * MS))
        return max(now, self._measured + 1)

    def _next_tick(self) -> int:
        """The first at which a sampling is due."""
        return min(each.epochs.first_from(self._earliest) for each in self._memory.schedule.samplings)

    def _wake(self, plans: int, tick: int) -> None:
        """Measure, compute, send."""
        if plans != self._plans:
            return
        if self.spent >= self.battery:
            self.die("battery")
            return
        self._change_schedule(tick)
        due = [each for each in self._memory.schedule.samplings if each.epochs.epoch(tick) is not None]
        self._measured = tick
        measured = {sampling.number: self._measure(sampling) for sampling in due}
        for sampling in due:
            self._compute(sampling, tick, measured)
        self._plan_wake()
        self._say_counts()
        if not self._slots:
            self._send_readings()
            self._send_partials(self._next_tick())

    def _measure(self, sampling: Sampling) -> Row:
        found = []
        for channel in sampling.channels:
            sensor = self._sensors.get(channel.sensor)
            if sensor:
                self.forwarder.account.sampled_nc += sensor.sample_nc
            found.append(sensor.read(self.site, self._kernel.now // MS) if sensor else None)
        return tuple(found)

    def _compute(self, sampling: Sampling, tick: int, measured: Mapping[int, Row]) -> None:
        memory = self._memory
        program = next((p for p in memory.programs if p.sampling == sampling.number), None)
        own = measured[sampling.number]
        if program is None:
            self._trace.record(self._kernel.now, self.site, "wasted", sampling=sampling.number, tick=tick, values=own)
            return
        outcome, steps = run(program, TickSample(tick, own, measured), memory.partials.at(tick)), count_steps(program)
        if not self.forwarder.is_always_on:  # else the processor is active anyway
            self.forwarder.account.compute_us += compute_time_us(steps, self.kind)
        self._trace.record(
            self._kernel.now, self.site, "produced", sampling=sampling.number, tick=tick, values=own,
            sent=int(outcome.reading is not None), filtered=int(outcome.filtered), steps=steps,
        )  # fmt: skip
        epoch = sampling.epochs.epoch(tick)
        dropped = memory.samples.keep(sampling, epoch, outcome.reading) if outcome.wanted else 0
        memory.counters.count(sampling, epoch, outcome, dropped)

    # --- what goes out ---

    def on_slot_begin(self, next_round: int) -> None:
        """Our slot begins; all that waits goes out, as far as no more comes to it before the next round."""
        self._post_waiting()
        self._send_partials(next_round // (self._memory.tick_ms * MS))

    def _send_readings(self) -> None:
        """Readings wait while a frame is on its way, so that a slow link gets fewer, fuller frames."""
        if self._memory.outbox.idle:
            self._post_waiting()

    def _post_waiting(self) -> None:
        for sampling, first, rows in self._memory.samples.take(self._memory.schedule.samplings):
            self._post_readings(sampling, first, rows)

    def _post_readings(self, sampling: Sampling, first: int, rows: list[Row | None]) -> None:
        room = epochs_per_frame(sampling, payload_room(self._medium.mtu))
        for at in range(0, len(rows), room):
            some = rows[at : at + room]
            frame = self._post(FrameKind.READING, encode_readings(sampling, first + at, some))
            self._trace.record(self._kernel.now, self.site, "posted", kind="READING", boot=frame.boot, seq=frame.seq,
                               sampling=sampling.number, first=first + at, count=len(some))  # fmt: skip

    def _send_partials(self, tick: int) -> None:
        """Those of slices that are over at a tick; of who has no parent they wait, so that no two can have them."""
        if self.forwarder.parent == BROADCAST:
            return
        for payload, parts in self._memory.partials.take(tick, payload_room(self._medium.mtu)):
            self._provenance.carry(self._post(FrameKind.PARTIAL, payload), parts)

    def report_neighbours(self) -> None:
        self._memory.association.report_neighbours()

    def orphaned(self) -> None:
        """Our parent takes nothing: say hello as one that has no program, so as to be told another (SPEC.md: HELLO)."""
        if self._memory.association.has_reported_links and not self.forwarder.orphaned:
            self._trace.record(self._kernel.now, self.site, "forsaken", by=self.forwarder.parent)
            self.forwarder.leave_parent()
            self._slots = None
            self._memory.installer.forget(FrameKind.PROGRAM)
            self._memory.association.begin(0, HelloReason.FORSAKEN, CALL_PAUSE_US)

    def _hello(self, reason: HelloReason) -> bytes:
        has, clock = self._memory.installer.installed, self.clock
        now_ms = clock.local_time(self._kernel.now) // MS if clock.is_set else None
        hello = Hello(reason, sensor_code(self.kind.name), 0, has[FrameKind.SCHEDULE], has[FrameKind.PROGRAM], now_ms,
                      tuple(sorted(self._sensors)))  # fmt: skip
        return encode_hello(hello)

    def _say_wants(self, memory: VolatileState, chunks: int) -> None:
        """No chunk came for a while: say which are missing."""
        if memory is self._memory and memory.chunks == chunks:
            for wants in list(memory.installer.missing_blocks()):
                self._say(wants)
                self._kernel.after(CHUNK_WAIT, partial(self._say_wants, memory, chunks))

    def _say_counts(self) -> None:
        for counts in (
            self._memory.counters.due(self._memory.schedule.samplings)
            if self._memory.association.has_reported_links
            else ()
        ):
            self._say(counts)

    def _say(self, event: EventPayload) -> None:
        self._post(FrameKind.EVENT, encode_event(event))

    def _post(self, kind: FrameKind, payload: bytes) -> Frame:
        return self._memory.outbox.post(kind, payload)

    def _handed_over(self) -> None:
        """A frame of ours has left."""
        if not self._slots:
            self._send_readings()


CHUNK_WAIT = 20_000 * MS
"""So long after the last chunk of an image a mote says which are missing, and again."""


def count_steps(program: MoteProgram) -> int:
    """The instructions of one run; what a SKIP leaves out counts too."""
    return sum(opcode.name not in DECLARING for _, opcode, _ in decode_instructions(program.code))


def compute_time_us(steps: int, kind: Hardware) -> int:
    """How long they take."""
    return round(steps * kind.processor.instruction_us)

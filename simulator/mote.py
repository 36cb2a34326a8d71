"""A simulated mote: keeps its clock by TIME, wakes by its SCHEDULE, measures, runs its PROGRAM, sends what that gives.

It speaks the frames of a real mote and knows as little: no extent's name, no query.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

from acquisition.errors import PayloadError as AcquisitionPayloadError
from acquisition.payload import Row, capacity, decode_schedule, decode_time, encode_readings
from acquisition.schedule import Sampling, Schedule, sensor_code
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, Kind, payload_room
from gateway.image import Image, decode_chunk
from gateway.installer import Installer
from gateway.link import Numbers
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedCopy,
    EventPayload,
    Hello,
    Reason,
    RefusedImage,
    encode_event,
    encode_hello,
)
from innet.costs.hardware import Hardware, hardware
from innet.errors import PayloadError as InnetPayloadError
from innet.payload import Orders, decode_orders
from innet.program.interpreter import Sampled, run
from innet.program.mote_program import MoteProgram, instructions
from innet.program.opcodes import DECLARING
from simulator.association import ALONE, Calling
from simulator.clock import Clock, Comparing
from simulator.duplicate_filter import Copies
from simulator.energy import Timing, spent
from simulator.forwarder import Relay
from simulator.kernel import MS, Kernel
from simulator.mac import Patience
from simulator.mote_config import Standing
from simulator.outbox import Outgoing
from simulator.partial_aggregates import Folding, Provenance
from simulator.radio_medium import Air
from simulator.radio_slots import Slots, slots_of
from simulator.reading_counters import Counting
from simulator.sample_buffer import Waiting
from simulator.sensor import Sensor
from simulator.trace import Trace


@dataclass(slots=True)
class Memory:
    """What a mote forgets when it is switched off."""

    schedule: Schedule  # that it keeps to
    folding: Folding
    out: Outgoing
    copies: Copies
    calling: Calling
    coming: Schedule | None = None  # that it was told of, and that has not begun
    orders: Orders = field(default_factory=Orders)
    version: int = 0  # of the orders: that of the schedule that they are for
    programs: tuple[MoteProgram, ...] = ()  # of the orders, and those before for what is still sampled by them
    installer: Installer = field(default_factory=Installer)
    chunks: int = 0  # that came
    tick_ms: int = 0
    waiting: Waiting = field(default_factory=Waiting)
    counting: Counting = field(default_factory=Counting)
    comparing: Comparing = field(default_factory=Comparing)
    received: dict[int, Numbers] = field(default_factory=dict)  # what came from above, by its boot


class Mote:
    """One mote. `boot` is how often it was started; its frames carry it. That number and the last tick that it has measured are
    all that it keeps when it is switched off."""

    def __init__(self, site: int, boot: int, kernel: Kernel, air: Air, trace: Trace, sensors: Iterable[Sensor],
                 patience: Patience | None = None, kind: Hardware | None = None, ppm: int = 0, battery: float = inf,
                 provenance: Provenance | None = None) -> None:  # fmt: skip
        self.site, self.clock, self.battery = site, Clock(ppm), battery
        self.kind = kind or hardware("telosb")
        self._kernel, self._air, self._trace = kernel, air, trace
        self._sensors: Mapping[int, Sensor] = {sensor_code(sensor.name): sensor for sensor in sensors}
        self._provenance = Provenance() if provenance is None else provenance
        self.relay = Relay(site, Timing.of(self.kind), kernel, air, trace, self, patience or Patience())  # fmt: skip
        self.alive = False
        self._measured = -1
        self._born = kernel.now
        self._spent_before = 0.0  # in earlier lives
        self._plans = 0  # what was planned under an earlier schedule or clock, or before a reboot, is void
        self._slots: Slots | None = None
        self._memory = self._empty(boot, None)
        air.join(self.relay)

    # --- its life ---

    def start(self) -> None:
        """Switch on, say hello, and tell who is heard as soon as everybody is there."""
        self.alive, self._born = True, self._kernel.now
        self.relay.switch_on()
        reason = Reason.RESET if self._plans else Reason.SWITCHED_ON
        self._memory.calling.begin(0, reason, ALONE)

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
        self.relay.hang()

    def jump(self, by_ms: int) -> None:
        """Its clock goes wrong."""
        self.clock.jump(self._kernel.now, by_ms)
        self._arm()

    def install(self, standing: Standing) -> None:
        """Begin as if all had been told before, with a clock that is right."""
        self.alive, self._born = True, self._kernel.now
        self.relay.switch_on()
        self._memory.schedule, self._memory.tick_ms = standing.schedule, standing.tick_ms
        self._obey(standing.orders, standing.schedule.version)
        self.clock.set(self._kernel.now, self._kernel.now // MS)
        self._arm()

    @property
    def spent(self) -> float:
        """Joules so far, in all its lives."""
        if not self.alive:
            return self._spent_before
        self.relay.settle()
        return self._spent_before + spent(self.kind, self._kernel.now - self._born, self.relay.account)

    def _stop(self) -> None:
        self.relay.switch_off()
        self._spent_before = self.spent
        self.alive, self._slots = False, None
        self.relay.account.clear()
        self.clock.stop()
        self._plans += 1
        self._memory.out.end()
        self._memory.calling.end()
        self._memory = self._empty(self.boot + 1, self._kernel.now)

    def _empty(self, boot: int, forgot: int | None) -> Memory:
        out = Outgoing(self.site, boot, self.relay, self._kernel, self._trace, self._handed_over)
        calling = Calling(
            self.site, self._kernel, self._air, self.relay, out, self._hello, lambda: self._slots is not None
        )
        return Memory(Schedule(self.site, 0, ()), Folding(self.site, self._provenance), out, Copies(forgot), calling)

    @property
    def boot(self) -> int:
        return self._memory.out.boot

    # --- what comes in ---

    def receive(self, frame: Frame) -> bool:
        """Do what a frame says, once; say whether it made sense, however often it comes."""
        try:
            if frame.kind is Kind.ACK:
                self._account(frame)
                return True
            obey = self._understand(frame)
            if self._memory.received.setdefault(frame.boot, Numbers()).add(frame.seq):
                self._trace.record(self._kernel.now, self.site, "received", kind=frame.kind.name, seq=frame.seq)
                obey()
        except (FrameError, AcquisitionPayloadError, InnetPayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            return False
        return True

    def _understand(self, frame: Frame) -> Callable[[], None]:
        """What a frame asks for, still to be done."""
        match frame.kind:
            case Kind.TIME:
                return partial(self._set_clock, *decode_time(frame.payload, self.site))
            case Kind.SCHEDULE | Kind.PROGRAM:
                decode_chunk(frame.payload)
                return partial(self._take_chunk, frame)
            case Kind.HELLO:
                return partial(self._memory.calling.say_hello, Reason.ASKED)
        raise FrameError("kind", f"a mote does not know what to do with {frame.kind.name}")

    def _set_clock(self, ms: int, tick_ms: int) -> None:
        before = self.clock.reads(self._kernel.now) if self.clock.runs else None
        self.clock.set(self._kernel.now, ms)
        self._memory.tick_ms = tick_ms
        self._arm()
        if before is not None and abs(by := ms - before // MS) > tick_ms:
            self._say(ClockMoved(by))

    def _take_chunk(self, frame: Frame) -> None:
        """Install an image when it is whole, and as a whole; say so, also to somebody who does not know."""
        memory = self._memory
        if memory.installer.has(frame.kind, decode_chunk(frame.payload)):
            self._memory.calling.say_hello(Reason.INSTALLED)
            return
        if image := memory.installer.take(frame):
            self._install(frame.kind, image)
        memory.chunks += 1
        self._kernel.after(CHUNK_WAIT, partial(self._say_wants, memory, memory.chunks))

    def _install(self, kind: Kind, image: Image) -> None:
        try:
            if kind is Kind.PROGRAM:
                self._obey(decode_orders(image, self.site), image.version)
            else:
                self._memory.coming = decode_schedule(image, self.site)
                if self.clock.runs:
                    self._change_schedule(self._earliest)
        except (AcquisitionPayloadError, InnetPayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            self._say(RefusedImage(kind, image.stamp))
            return
        self._memory.installer.install(kind, image)
        self._arm()
        self._memory.calling.say_hello(Reason.INSTALLED)
        if self._slots:
            self._memory.calling.begin(ALONE, Reason.INSTALLED, 2 * ALONE)

    def _account(self, frame: Frame) -> None:
        """The base station misses some of our frames."""
        if (lost := self._memory.out.account(frame)).gaps:
            self._say(lost)

    def _obey(self, orders: Orders, version: int) -> None:
        self._memory.orders, self._memory.version = orders, version
        self._take_programs()
        self.relay.adopt(orders.parent)
        self._slots = slots_of(orders)

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
        memory.folding.install(memory.programs)

    def merge(self, frame: Frame) -> bool:
        """Take the partials of a child into our own, where we keep such and will send some; else they are passed on.

        A copy of what was taken, or passed on, goes nowhere: whatever we have been told since, it would count twice. What
        may be one, of before we lost our memory, is dropped as well, and told.
        """
        if frame.kind is not Kind.PARTIAL:
            return False
        copies, now = self._memory.copies, self._kernel.now
        if copies.knows(frame.identity):
            return True
        if frame.repeated and copies.doubts(frame.identity, now):
            self._drop(frame)
            return True
        merges = (self._slots or self._memory.schedule.samplings) and self._memory.folding.merge(frame)
        if merges or self.relay.parent != BROADCAST:
            copies.remember(frame.identity, now)
        elif not frame.repeated:
            copies.refuse(frame.identity)
        if merges and self._memory.comparing.differs(self.clock, now, self._stamp(frame)):
            self._say(ClocksDiffer(frame.mote))
        return bool(merges)

    def _stamp(self, frame: Frame) -> int:
        return self._memory.folding.begins(frame) * self._memory.tick_ms * MS

    def _drop(self, frame: Frame) -> None:
        self._memory.copies.remember(frame.identity, self._kernel.now)
        self._trace.record(self._kernel.now, self.site, "dropped", kind=frame.kind.name, origin=frame.mote,
                           boot=frame.boot, seq=frame.seq, why="it may be a copy")  # fmt: skip
        self._say(DroppedCopy(*frame.identity))

    # --- what happens by the clock ---

    def _arm(self) -> None:
        """Plan the next wake-up, and the slots, once clock and schedule are known."""
        self._plans += 1
        if self.clock.runs:
            self._change_schedule(self._earliest)
            self._plan_wake()
            self.relay.follow(self._slots, self.clock)

    def _plan_wake(self) -> None:
        """Plan the first tick from now on at which a sampling is due, or another schedule begins."""
        memory = self._memory
        ticks = [self._next_tick()] if memory.schedule.samplings else []
        if memory.coming:
            ticks.append(self._begin(memory.coming))
        if ticks:
            tick = min(ticks)
            time = max(self.clock.when(tick * self._memory.tick_ms * MS), self._kernel.now)
            self._kernel.at(time, partial(self._wake, self._plans, tick))

    @property
    def _earliest(self) -> int:
        """None is measured twice: not where the clock is set back, and not where all that was sampled is forgotten. What was
        folded of it may be on its way, or wait for its time somewhere."""
        now = -(-self.clock.reads(self._kernel.now) // (self._memory.tick_ms * MS))
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
                self.relay.account.sampled_nc += sensor.sample_nc
            found.append(sensor.read(self.site, self._kernel.now // MS) if sensor else None)
        return tuple(found)

    def _compute(self, sampling: Sampling, tick: int, measured: Mapping[int, Row]) -> None:
        memory = self._memory
        program = next((p for p in memory.programs if p.sampling == sampling.number), None)
        own = measured[sampling.number]
        if program is None:
            self._trace.record(self._kernel.now, self.site, "wasted", sampling=sampling.number, tick=tick, values=own)
            return
        outcome, steps = run(program, Sampled(tick, own, measured), memory.folding.at(tick)), steps_of(program)
        if not self.relay.stays_on:  # else the processor is active anyway
            self.relay.account.compute_us += computing_us(steps, self.kind)
        self._trace.record(
            self._kernel.now, self.site, "produced", sampling=sampling.number, tick=tick, values=own,
            sent=int(outcome.reading is not None), filtered=int(outcome.filtered), steps=steps,
        )  # fmt: skip
        epoch = sampling.epochs.epoch(tick)
        dropped = memory.waiting.keep(sampling, epoch, outcome.reading) if outcome.wanted else 0
        memory.counting.count(sampling, epoch, outcome, dropped)

    # --- what goes out ---

    def in_slot(self, next_round: int) -> None:
        """Our slot begins; all that waits goes out, as far as no more comes to it before the next round."""
        self._post_waiting()
        self._send_partials(next_round // (self._memory.tick_ms * MS))

    def _send_readings(self) -> None:
        """Readings wait while a frame is on its way, so that a slow link gets fewer, fuller frames."""
        if self._memory.out.idle:
            self._post_waiting()

    def _post_waiting(self) -> None:
        for sampling, first, rows in self._memory.waiting.take(self._memory.schedule.samplings):
            self._post_readings(sampling, first, rows)

    def _post_readings(self, sampling: Sampling, first: int, rows: list[Row | None]) -> None:
        room = capacity(sampling, payload_room(self._air.mtu))
        for at in range(0, len(rows), room):
            some = rows[at : at + room]
            frame = self._post(Kind.READING, encode_readings(sampling, first + at, some))
            self._trace.record(self._kernel.now, self.site, "posted", kind="READING", boot=frame.boot, seq=frame.seq,
                               sampling=sampling.number, first=first + at, count=len(some))  # fmt: skip

    def _send_partials(self, tick: int) -> None:
        """Those of slices that are over at a tick; of who has no parent they wait, so that no two can have them."""
        if self.relay.parent == BROADCAST:
            return
        for payload, parts in self._memory.folding.take(tick, payload_room(self._air.mtu)):
            self._provenance.carry(self._post(Kind.PARTIAL, payload), parts)

    def notice(self) -> None:
        self._memory.calling.notice()

    def forsaken(self) -> None:
        """Our parent takes nothing: say hello as one that has no program, so as to be told another (SPEC.md: HELLO)."""
        if self._memory.calling.has_told and not self.relay.forsaken:
            self._trace.record(self._kernel.now, self.site, "forsaken", by=self.relay.parent)
            self.relay.leave()
            self._slots = None
            self._memory.installer.forget(Kind.PROGRAM)
            self._memory.calling.begin(0, Reason.FORSAKEN, ALONE)

    def _hello(self, reason: Reason) -> bytes:
        has, clock = self._memory.installer.installed, self.clock
        now_ms = clock.reads(self._kernel.now) // MS if clock.runs else None
        hello = Hello(reason, sensor_code(self.kind.name), 0, has[Kind.SCHEDULE], has[Kind.PROGRAM], now_ms,
                      tuple(sorted(self._sensors)))  # fmt: skip
        return encode_hello(hello)

    def _say_wants(self, memory: Memory, chunks: int) -> None:
        """No chunk came for a while: say which are missing."""
        if memory is self._memory and memory.chunks == chunks:
            for wants in list(memory.installer.wants()):
                self._say(wants)
                self._kernel.after(CHUNK_WAIT, partial(self._say_wants, memory, chunks))

    def _say_counts(self) -> None:
        for counts in (
            self._memory.counting.due(self._memory.schedule.samplings) if self._memory.calling.has_told else ()
        ):
            self._say(counts)

    def _say(self, event: EventPayload) -> None:
        self._post(Kind.EVENT, encode_event(event))

    def _post(self, kind: Kind, payload: bytes) -> Frame:
        return self._memory.out.post(kind, payload)

    def _handed_over(self) -> None:
        """A frame of ours has left."""
        if not self._slots:
            self._send_readings()


CHUNK_WAIT = 20_000 * MS
"""So long after the last chunk of an image a mote says which are missing, and again."""


def steps_of(program: MoteProgram) -> int:
    """The instructions of one run; what a SKIP leaves out counts too."""
    return sum(opcode.name not in DECLARING for _, opcode, _ in instructions(program.code))


def computing_us(steps: int, kind: Hardware) -> int:
    """How long they take."""
    return round(steps * kind.processor.instruction_us)

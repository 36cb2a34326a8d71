"""A simulated mote: sets its clock by TIME, wakes by its SCHEDULE, measures, runs its PROGRAM and sends the output.

It speaks the frames of a real mote and knows no more than one: no name of an extent, and no query.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf

from acquisition.errors import PayloadError
from acquisition.payload import Row, decode_schedule, decode_time, encode_readings, epochs_per_frame
from acquisition.schedule import Sampling, Schedule, sensor_code
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, FrameKind, payload_room
from gateway.image import Image, decode_chunk
from gateway.link import SequenceSet
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedPartial,
    EventPayload,
    Hello,
    HelloReason,
    RefusedImage,
    encode_event,
    encode_hello,
)
from innet.costs.hardware import Hardware, load_hardware
from innet.payload import MoteAssignment, decode_assignment
from innet.program.interpreter import TickSample, run
from innet.program.mote_program import MoteProgram, decode_instructions
from innet.program.opcodes import DECLARING
from simulator.association import CALL_PAUSE_US, Association
from simulator.clock import Clock
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
from simulator.sensor import Sensor
from simulator.trace import Trace
from simulator.volatile_state import VolatileState


class Mote:
    """One mote. `boot` counts its starts, and its frames carry it.

    When it is switched off it keeps that number and the last tick that it has measured, and loses the rest.
    """

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
        self._plans = 0  # events scheduled under an earlier schedule, clock or boot are void
        self._slots: RadioSlots | None = None
        self._memory = self._empty(boot, None)
        medium.join(self.forwarder)

    # --- start and stop ---

    def start(self) -> None:
        """Switch on and announce the mote; it reports its links when all motes are there."""
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
        """Stop the processor; the radio goes on to acknowledge frames."""
        self._plans += 1
        self._slots = None
        self.forwarder.hang()

    def jump(self, by_ms: int) -> None:
        """Add an error to the clock."""
        self.clock.jump(self._kernel.now, by_ms)
        self._arm()

    def install(self, config: MoteConfig) -> None:
        """Switch on with a configuration and the right time, as if the station had sent them before."""
        self.alive, self._born = True, self._kernel.now
        self.forwarder.switch_on()
        self._memory.schedule, self._memory.tick_ms = config.schedule, config.tick_ms
        self._adopt(config.orders, config.schedule.version)
        self.clock.set(self._kernel.now, self._kernel.now // MS)
        self._arm()

    @property
    def spent(self) -> float:
        """Joules so far, since it was first switched on."""
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

    # --- frames of the station, partials of children ---

    def receive(self, frame: Frame) -> bool:
        """Carry out a frame of the station, once; returns whether it is valid, however often it comes."""
        try:
            if frame.kind is FrameKind.ACK:
                self._process_ack(frame)
                return True
            execute = self._interpret(frame)
            if self._memory.received.setdefault(frame.boot, SequenceSet()).add(frame.seq):
                self._trace.record(self._kernel.now, self.site, "received", kind=frame.kind.name, seq=frame.seq)
                execute()
        except (FrameError, PayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            return False
        return True

    def _interpret(self, frame: Frame) -> Callable[[], None]:
        """The action that a frame stands for. Raises FrameError or PayloadError if it is invalid."""
        match frame.kind:
            case FrameKind.TIME:
                return partial(self._set_clock, *decode_time(frame.payload, self.site))
            case FrameKind.SCHEDULE | FrameKind.PROGRAM:
                decode_chunk(frame.payload)
                return partial(self._take_chunk, frame)
            case FrameKind.HELLO:
                return partial(self._memory.association.send_hello, HelloReason.ASKED)
        raise FrameError("kind", f"a mote does not process frames of kind {frame.kind.name}")

    def _set_clock(self, ms: int, tick_ms: int) -> None:
        before = self.clock.local_time(self._kernel.now) if self.clock.is_set else None
        self.clock.set(self._kernel.now, ms)
        self._memory.tick_ms = tick_ms
        self._arm()
        if before is not None and abs(by := ms - before // MS) > tick_ms:
            self._send_event(ClockMoved(by))

    def _take_chunk(self, frame: Frame) -> None:
        """Install an image when all its chunks are there, and confirm it, again if the station repeats a chunk."""
        memory = self._memory
        if memory.installer.has(frame.kind, decode_chunk(frame.payload)):
            self._memory.association.send_hello(HelloReason.INSTALLED)
            return
        if image := memory.installer.take(frame):
            self._install(frame.kind, image)
        memory.chunks += 1
        self._kernel.after(CHUNK_WAIT, partial(self._request_chunks, memory, memory.chunks))

    def _install(self, kind: FrameKind, image: Image) -> None:
        try:
            if kind is FrameKind.PROGRAM:
                self._adopt(decode_assignment(image, self.site), image.version)
            else:
                self._memory.next_schedule = decode_schedule(image, self.site)
                if self.clock.is_set:
                    self._change_schedule(self._earliest)
        except PayloadError as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            self._send_event(RefusedImage(kind, image.stamp))
            return
        self._memory.installer.install(kind, image)
        self._arm()
        self._memory.association.send_hello(HelloReason.INSTALLED)
        if self._slots:
            self._memory.association.begin(CALL_PAUSE_US, HelloReason.INSTALLED, 2 * CALL_PAUSE_US)

    def _process_ack(self, frame: Frame) -> None:
        """Send the frames that the station misses again; report those that are lost."""
        if (lost := self._memory.outbox.account(frame)).gaps:
            self._send_event(lost)

    def _adopt(self, orders: MoteAssignment, version: int) -> None:
        self._memory.orders, self._memory.version = orders, version
        self._memory.choose_programs()
        self.forwarder.adopt(orders.parent)
        self._slots = make_radio_slots(orders)

    def _change_schedule(self, tick: int) -> None:
        """Switch to the next schedule if it has begun at a tick."""
        memory = self._memory
        if memory.next_schedule and tick >= memory.first_tick(memory.next_schedule):
            memory.schedule, memory.next_schedule = memory.next_schedule, None
            self._memory.choose_programs()
            self._send_counts()

    def merge(self, frame: Frame) -> bool:
        """Merge the partials of a child with the mote's own; False if it keeps no such table: they are forwarded then.

        A copy of partials that the mote merged or forwarded is dropped, even if its orders have changed since: it would count
        twice. A frame that may be such a copy, from before the mote lost its memory, is dropped and reported.
        """
        if frame.kind is not FrameKind.PARTIAL:
            return False
        duplicates, now = self._memory.duplicates, self._kernel.now
        if duplicates.is_known(frame.identity):
            return True
        if frame.repeated and duplicates.may_be_forgotten(frame.identity, now):
            self._drop(frame)
            return True
        merges = (self._slots or self._memory.schedule.samplings) and self._memory.partials.merge(frame)
        if merges or self.forwarder.parent != BROADCAST:
            duplicates.remember(frame.identity, now)
        elif not frame.repeated:
            duplicates.refuse(frame.identity)
        if merges and self._memory.skew_detector.detect_skew(self.clock, now, self._stamp(frame)):
            self._send_event(ClocksDiffer(frame.mote))
        return bool(merges)

    def _stamp(self, frame: Frame) -> int:
        return self._memory.partials.first_tick(frame) * self._memory.tick_ms * MS

    def _drop(self, frame: Frame) -> None:
        self._memory.duplicates.remember(frame.identity, self._kernel.now)
        self._trace.record(self._kernel.now, self.site, "dropped", kind=frame.kind.name, origin=frame.mote,
                           boot=frame.boot, seq=frame.seq, why="it may be a copy")  # fmt: skip
        self._send_event(DroppedPartial(*frame.identity))

    # --- by the clock ---

    def _arm(self) -> None:
        """Schedule the next wake-up, and the radio slots, once clock and schedule are known."""
        self._plans += 1
        if self.clock.is_set:
            self._change_schedule(self._earliest)
            self._schedule_wake()
            self.forwarder.follow(self._slots, self.clock)

    def _schedule_wake(self) -> None:
        """Wake at the first tick from now on at which a sampling is due or another schedule begins."""
        memory = self._memory
        ticks = [self._next_tick()] if memory.schedule.samplings else []
        if memory.next_schedule:
            ticks.append(memory.first_tick(memory.next_schedule))
        if ticks:
            tick = min(ticks)
            time = max(self.clock.true_time(tick * self._memory.tick_ms * MS), self._kernel.now)
            self._kernel.at(time, partial(self._wake, self._plans, tick))

    @property
    def _earliest(self) -> int:
        """The first tick that may be measured.

        No tick is measured twice, not even after the clock was set back or the mote lost its memory: partials with its
        readings may be on their way, or wait in a mote above.
        """
        now = -(-self.clock.local_time(self._kernel.now) // (self._memory.tick_ms * MS))
        return max(now, self._measured + 1)

    def _next_tick(self) -> int:
        """The first tick at which a sampling is due."""
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
        self._schedule_wake()
        self._send_counts()
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
        epoch = (tick - sampling.epochs.start) // sampling.epochs.interval
        dropped = memory.samples.keep(sampling, epoch, outcome.reading) if outcome.is_due else 0
        memory.counters.count(sampling, epoch, outcome, dropped)

    # --- outgoing frames ---

    def on_slot_begin(self, next_round: int) -> None:
        """The mote's slot begins: send all readings, and the partials that are complete before the next round."""
        self._post_waiting()
        self._send_partials(next_round // (self._memory.tick_ms * MS))

    def _send_readings(self) -> None:
        """Send readings unless others are under way: a slow link gets fewer and fuller frames."""
        if not self._memory.outbox.has_readings_under_way:
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
        """Send the partials of slices that are over at a tick.

        Without a parent they wait: a broadcast would give them to several motes.
        """
        if self.forwarder.parent == BROADCAST:
            return
        for payload, parts in self._memory.partials.take(tick, payload_room(self._medium.mtu)):
            self._provenance.carry(self._post(FrameKind.PARTIAL, payload), parts)

    def report_neighbours(self) -> None:
        self._memory.association.report_neighbours()

    def orphaned(self) -> None:
        """The parent takes nothing: announce the mote as one without a program, to get another parent (SPEC.md: HELLO)."""
        if self._memory.association.has_reported_links and not self.forwarder.orphaned:
            self._trace.record(self._kernel.now, self.site, "forsaken", by=self.forwarder.parent)
            self.forwarder.leave_parent()
            self._slots = None
            self._memory.installer.forget(FrameKind.PROGRAM)
            self._memory.association.begin(0, HelloReason.ORPHANED, CALL_PAUSE_US)

    def _hello(self, reason: HelloReason) -> bytes:
        has, clock = self._memory.installer.installed, self.clock
        now_ms = clock.local_time(self._kernel.now) // MS if clock.is_set else None
        hello = Hello(reason, sensor_code(self.kind.name), 0, has[FrameKind.SCHEDULE], has[FrameKind.PROGRAM], now_ms,
                      tuple(sorted(self._sensors)))  # fmt: skip
        return encode_hello(hello)

    def _request_chunks(self, memory: VolatileState, chunks: int) -> None:
        """Request the missing chunks if none has arrived for a while."""
        if memory is self._memory and memory.chunks == chunks:
            for missing in list(memory.installer.missing_blocks()):
                self._send_event(missing)
                self._kernel.after(CHUNK_WAIT, partial(self._request_chunks, memory, chunks))

    def _send_counts(self) -> None:
        for counts in (
            self._memory.counters.due(self._memory.schedule.samplings)
            if self._memory.association.has_reported_links
            else ()
        ):
            self._send_event(counts)

    def _send_event(self, event: EventPayload) -> None:
        self._post(FrameKind.EVENT, encode_event(event))

    def _post(self, kind: FrameKind, payload: bytes) -> Frame:
        return self._memory.outbox.post(kind, payload)

    def _handed_over(self) -> None:
        """A frame of this mote has left, or was given up."""
        if not self._slots:
            self._send_readings()


CHUNK_WAIT = 20_000 * MS
"""The time after the last chunk of an image after which a mote requests those that are missing, again and again."""


def count_steps(program: MoteProgram) -> int:
    """The instructions of one run of a program. Instructions that a SKIP leaves out count, too."""
    return sum(opcode.name not in DECLARING for _, opcode, _ in decode_instructions(program.code))


def compute_time_us(steps: int, kind: Hardware) -> int:
    """The time in microseconds that so many instructions take."""
    return round(steps * kind.processor.instruction_us)

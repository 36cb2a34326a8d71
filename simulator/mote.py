"""A simulated mote: keeps its clock by TIME, wakes by its SCHEDULE, measures, runs its PROGRAM, sends READINGs.

It speaks the frames of a real mote and knows as little: no extent's name, no query.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from acquisition.errors import PayloadError as AcquisitionPayloadError
from acquisition.instants import grid_at_or_after
from acquisition.payload import Row, capacity, decode_schedule, decode_time, encode_readings
from acquisition.schedule import Sampling, Schedule, sensor_code
from gateway.errors import FrameError
from gateway.frame import Frame, Kind, MoteId
from gateway.image import Arriving, Chunk, decode_chunk
from gateway.link import Numbers
from innet.costs.hardware import Hardware, hardware
from innet.errors import PayloadError as InnetPayloadError
from innet.payload import Orders, decode_orders, encode_links
from innet.program.interpreter import Sampled, run
from innet.program.memory import Memory as Partials
from innet.routing.topology import Heard, LinksReport
from simulator.carrier import Patience
from simulator.clock import Clock
from simulator.energy import Timing, spent
from simulator.kernel import MS, Kernel
from simulator.radio import Air
from simulator.relay import Relay
from simulator.sensor import Sensor
from simulator.trace import Trace


@dataclass(slots=True)
class Memory:
    """What a mote forgets when it is switched off."""

    schedule: Schedule
    orders: Orders = field(default_factory=Orders)
    arriving: Arriving = field(default_factory=Arriving)
    tick_ms: int = 0
    sampled: dict[int, int] = field(default_factory=dict)  # the last tick of each sampling
    waiting: dict[int, tuple[Sampling, int, list[Row]]] = field(
        default_factory=dict
    )  # the first epoch, and the readings
    received: dict[int, Numbers] = field(default_factory=dict)  # what came from above, by its boot
    outstanding: set[int] = field(default_factory=set)  # numbers of our own frames that are not handed over yet
    next_seq: int = 0


class Mote:
    """One mote. `boot` is how often it was started; its frames carry it."""

    def __init__(self, site: int, boot: int, kernel: Kernel, air: Air, trace: Trace, sensors: Iterable[Sensor],
                 patience: Patience | None = None, kind: Hardware | None = None, ppm: int = 0) -> None:  # fmt: skip
        self.site, self.boot, self.clock = site, boot, Clock(ppm)
        self.kind = kind or hardware("telosb")
        self._kernel, self._air, self._trace = kernel, air, trace
        self._sensors: Mapping[int, Sensor] = {sensor_code(sensor.name): sensor for sensor in sensors}
        self.relay = Relay(site, Timing.of(self.kind), kernel, air, trace, self._receive, lambda frame: False,
                           patience or Patience())  # fmt: skip
        self._memory = Memory(Schedule(site, 0, ()))
        self._born = kernel.now
        self._plans = 0  # what was planned under an earlier schedule or clock is void
        air.join(self.relay)

    def start(self) -> None:
        """Switch on, and tell who is heard as soon as everybody is there."""
        self.relay.switch_on()
        self._kernel.after(0, self._report_links, priority=1)

    @property
    def spent(self) -> float:
        """Joules so far."""
        self.relay.settle()
        return spent(self.kind, self._kernel.now - self._born, self.relay.account)

    # --- what comes in ---

    def _receive(self, frame: Frame) -> bool:
        """Do what a frame says, once; say whether it made sense, however often it comes."""
        try:
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
                return partial(self._take_chunk, frame.kind, decode_chunk(frame.payload))
        raise FrameError("kind", f"a mote does not know what to do with {frame.kind.name}")

    def _set_clock(self, ms: int, tick_ms: int) -> None:
        self.clock.set(self._kernel.now, ms)
        self._memory.tick_ms = tick_ms
        self._arm()

    def _take_chunk(self, kind: Kind, chunk: Chunk) -> None:
        """Install an image when it is whole, and as a whole."""
        if (image := self._memory.arriving.take(kind, chunk)) is None:
            return
        if kind is Kind.PROGRAM:
            self._memory.orders = decode_orders(image, self.site)
            self.relay.parent = self._memory.orders.parent
        else:
            self._memory.schedule = decode_schedule(image, self.site)
            self._arm()

    # --- what happens by the clock ---

    def _arm(self) -> None:
        """Plan the next wake-up of every sampling, once clock and schedule are known."""
        self._plans += 1
        if self.clock.runs:
            for sampling in self._memory.schedule.samplings:
                self._arm_one(sampling)

    def _arm_one(self, sampling: Sampling) -> None:
        """Plan the first epoch from now on. None is sampled twice, not even where the clock is set back."""
        tick_us = self._memory.tick_ms * MS
        done = self._memory.sampled.get(sampling.number, -1)
        earliest = max(-(-self.clock.reads(self._kernel.now) // tick_us), sampling.epochs.start, done + 1)
        tick = sampling.epochs.start + grid_at_or_after(earliest - sampling.epochs.start, sampling.epochs.interval)
        due = max(self.clock.when(tick * tick_us), self._kernel.now)
        self._kernel.at(due, partial(self._wake, self._plans, sampling, tick))

    def _wake(self, plans: int, sampling: Sampling, tick: int) -> None:
        """Measure, compute, send."""
        if plans != self._plans:
            return
        memory = self._memory
        memory.sampled[sampling.number] = tick
        self._arm_one(sampling)
        if (program := next((p for p in memory.orders.programs if p.sampling == sampling.number), None)) is None:
            return
        sampled = Sampled(tick, [self._measure(channel.sensor) for channel in sampling.channels])
        if (row := run(program, sampled, Partials()).reading) is None:
            return
        self._trace.record(self._kernel.now, self.site, "produced", sampling=sampling.number, tick=tick, values=row)
        self._keep(sampling, sampling.epochs.epoch(tick), row)
        self._send_waiting()

    def _measure(self, code: int) -> int | None:
        if (sensor := self._sensors.get(code)) is None:
            return None
        self.relay.account.sampled_nc += sensor.sample_nc
        return sensor.read(self.site, self._kernel.now // MS)

    # --- what goes out ---

    def _keep(self, sampling: Sampling, epoch: int, row: Row) -> None:
        waiting = self._memory.waiting
        _, first, rows = waiting.setdefault(sampling.number, (sampling, epoch, []))
        if first + len(rows) != epoch:  # readings of one frame are of consecutive epochs
            self._send_readings(sampling, first, rows)
            rows = []
            waiting[sampling.number] = (sampling, epoch, rows)
        rows.append(row)

    def _send_waiting(self) -> None:
        """Readings wait while a frame is on its way, so that a slow link gets fewer, fuller frames."""
        waiting = self._memory.waiting
        if not self._memory.outstanding:
            for sampling, first, rows in waiting.values():
                self._send_readings(sampling, first, rows)
            waiting.clear()

    def _send_readings(self, sampling: Sampling, first: int, rows: list[Row]) -> None:
        room = capacity(sampling)
        for at in range(0, len(rows), room):
            self._send(Kind.READING, encode_readings(sampling, first + at, rows[at : at + room]))

    def _report_links(self) -> None:
        heard = tuple(Heard(number, quality) for number, quality in self._air.neighbours(self.site))
        self._send(Kind.LINKS, encode_links(LinksReport(self.site, heard)))

    def _send(self, kind: Kind, payload: bytes) -> None:
        memory = self._memory
        frame = Frame(kind, MoteId(self.site), self.boot, memory.next_seq, payload)
        memory.next_seq += 1
        if memory.next_seq > 0xFFFF:
            self.boot, memory.next_seq = self.boot + 1, 0  # SPEC.md: numbers never repeat
        memory.outstanding.add(frame.seq)
        self.relay.rise(frame, partial(self._handed_over, frame))

    def _handed_over(self, frame: Frame, taken: bool) -> None:
        if not taken:
            self._trace.record(self._kernel.now, self.site, "given_up", kind=frame.kind.name, seq=frame.seq)
        self._memory.outstanding.discard(frame.seq)
        self._send_waiting()

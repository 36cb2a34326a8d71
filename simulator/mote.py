"""A simulated mote: keeps its clock by TIME, wakes by its SCHEDULE, measures, runs its PROGRAM, sends READINGs.

It speaks the frames of a real mote and knows as little: no extent's name, no query.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from acquisition.errors import PayloadError as AcquisitionPayloadError
from acquisition.instants import grid_at_or_after
from acquisition.payload import Row, capacity, decode_schedule, decode_time, encode_readings
from acquisition.schedule import Sampling, Schedule, sensor_code
from gateway.codec import decode, encode
from gateway.errors import FrameError
from gateway.frame import COORDINATOR, Frame, Kind, Message, MoteId
from gateway.image import Arriving, Chunk, decode_chunk
from gateway.link import Link, Policy, acknowledgement
from innet.errors import PayloadError as InnetPayloadError
from innet.payload import decode_orders, encode_links
from innet.program.interpreter import run
from innet.program.program import MoteProgram
from innet.routing.topology import Heard, LinksReport
from simulator.field import Field
from simulator.kernel import Kernel
from simulator.radio import NullAir
from simulator.trace import Trace


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor of a mote: what it measures, given out as whole multiples of 10^-scale."""

    name: str
    field: Field
    scale: int = 0

    def read(self, site: int, ms: int) -> int | None:
        value = self.field.value(site, ms)
        if value is None:
            return None
        multiple = abs(value) * 10**self.scale
        return int(multiple + 0.5) * (1 if value >= 0 else -1)  # halves away from zero, as in SEMANTICS 13


class Mote:
    """One mote. `boot` is how often it was started; its frames carry it."""

    def __init__(self, site: int, boot: int, kernel: Kernel, air: NullAir, trace: Trace, sensors: tuple[Sensor, ...],
                 policy: Policy | None = None) -> None:  # fmt: skip
        self.site = site
        self._kernel, self._air, self._trace = kernel, air, trace
        self._sensors: Mapping[int, Sensor] = {sensor_code(sensor.name): sensor for sensor in sensors}
        self._link = Link(MoteId(site), boot, down=False, policy=policy or Policy())
        self._schedule = Schedule(site, 0, ())
        self._programs: dict[int, MoteProgram] = {}
        self._arriving = Arriving()
        self._clock: tuple[int, int] | None = None  # (what to add to our own time, milliseconds per tick)
        self._sampled: dict[int, int] = {}  # the last tick of each sampling
        self._waiting: dict[int, tuple[Sampling, int, list[Row]]] = {}  # the first epoch, and its reading and the next

    def start(self) -> None:
        """Switch on: join the air, and tell who is heard as soon as everybody is there."""
        self._air.join(self.site, self.receive)
        self._kernel.after(0, self._report_links, priority=1)

    # --- what comes in ---

    def receive(self, message: bytes) -> None:
        try:
            frame = decode(message)
            if not frame.down or frame.mote != self.site:
                return
            if frame.kind is Kind.ACK:
                self._link.acknowledged(frame)
            else:
                self._take(frame)
        except (FrameError, AcquisitionPayloadError, InnetPayloadError) as error:
            self._trace.record(self._kernel.now, self.site, "rejected", code=error.code)
            return
        self._send_waiting()
        self._flush()

    def _take(self, frame: Frame) -> None:
        """Do what a frame says, once; acknowledge it however often it comes, but never one that makes no sense."""
        obey = self._understand(frame)
        if self._link.accept(frame):
            self._trace.record(self._kernel.now, self.site, "received", kind=frame.kind.name, seq=frame.seq)
            obey()
        if frame.want_ack:
            self._put_on_air(acknowledgement(frame))

    def _understand(self, frame: Frame) -> Callable[[], None]:
        """What a frame asks for, still to be done."""
        match frame.kind:
            case Kind.TIME:
                return partial(self._set_clock, *decode_time(frame.payload, self.site))
            case Kind.SCHEDULE | Kind.PROGRAM:
                return partial(self._take_chunk, frame.kind, decode_chunk(frame.payload))
        raise FrameError("kind", f"a mote does not know what to do with {frame.kind.name}")

    def _set_clock(self, ms: int, tick_ms: int) -> None:
        self._clock = (ms - self._kernel.now, tick_ms)
        self._arm()

    def _take_chunk(self, kind: Kind, chunk: Chunk) -> None:
        """Install an image when it is whole, and as a whole."""
        if (image := self._arriving.take(kind, chunk)) is None:
            return
        if kind is Kind.PROGRAM:
            orders = decode_orders(image, self.site)
            self._programs = {program.sampling: program for program in orders.programs}
        else:
            self._schedule = decode_schedule(image, self.site)
            self._arm()

    # --- what happens by the clock ---

    def _arm(self) -> None:
        """Plan the next wake-up of every sampling, once clock and schedule are known."""
        if self._clock:
            for sampling in self._schedule.samplings:
                self._arm_one(sampling)

    def _arm_one(self, sampling: Sampling) -> None:
        """Plan the first epoch from now on. None is sampled twice, not even where the clock is set back."""
        offset, tick_ms = self._clock
        done = self._sampled.get(sampling.number, -1)
        earliest = max(-(-self._ms() // tick_ms), sampling.epochs.start, done + 1)
        tick = sampling.epochs.start + grid_at_or_after(earliest - sampling.epochs.start, sampling.epochs.interval)
        self._kernel.at(tick * tick_ms - offset, partial(self._wake, self._schedule, self._clock, sampling, tick))

    def _wake(self, schedule: Schedule, clock: tuple[int, int], sampling: Sampling, tick: int) -> None:
        """Measure, compute, send. Plans made under an earlier schedule or clock are void."""
        if schedule is not self._schedule or clock is not self._clock:
            return
        self._sampled[sampling.number] = tick
        self._arm_one(sampling)
        if (program := self._programs.get(sampling.number)) is None:
            return
        sampled = [self._measure(channel.sensor) for channel in sampling.channels]
        row = run(program, sampled)
        epoch = sampling.epochs.epoch(tick)
        self._trace.record(self._kernel.now, self.site, "produced", sampling=sampling.number, tick=tick, values=row)
        self._keep(sampling, epoch, row)
        self._send_waiting()
        self._flush()

    def _measure(self, code: int) -> int | None:
        sensor = self._sensors.get(code)
        return sensor.read(self.site, self._ms()) if sensor else None

    def _ms(self) -> int:
        """The time as this mote knows it, in milliseconds since tick 0."""
        return self._kernel.now + self._clock[0]

    # --- what goes out ---

    def _keep(self, sampling: Sampling, epoch: int, row: Row) -> None:
        _, first, rows = self._waiting.setdefault(sampling.number, (sampling, epoch, []))
        if first + len(rows) != epoch:  # readings of one frame are of consecutive epochs
            self._post_readings(sampling, first, rows)
            rows = []
            self._waiting[sampling.number] = (sampling, epoch, rows)
        rows.append(row)

    def _send_waiting(self) -> None:
        """Readings wait while a frame is in flight, so that a slow link gets fewer, fuller frames."""
        if self._link.idle:
            for sampling, first, rows in self._waiting.values():
                self._post_readings(sampling, first, rows)
            self._waiting.clear()

    def _post_readings(self, sampling: Sampling, first: int, rows: list[Row]) -> None:
        room = capacity(sampling)
        for at in range(0, len(rows), room):
            payload = encode_readings(sampling, first + at, rows[at : at + room])
            self._link.post(Message(Kind.READING, MoteId(self.site), payload))

    def _report_links(self) -> None:
        heard = tuple(Heard(number, quality) for number, quality in self._air.neighbours(self.site))
        self._link.post(Message(Kind.LINKS, MoteId(self.site), encode_links(LinksReport(self.site, heard))))
        self._flush()

    def _flush(self) -> None:
        """Send what is due, and look again when an answer is overdue."""
        given_up = len(self._link.given_up)
        for frame in self._link.due(self._kernel.now):
            self._trace.record(self._kernel.now, self.site, "sent", kind=frame.kind.name, seq=frame.seq)
            self._put_on_air(frame)
        for frame in self._link.given_up[given_up:]:
            self._trace.record(self._kernel.now, self.site, "given_up", kind=frame.kind.name, seq=frame.seq)
        if (deadline := self._link.next_deadline()) is not None:
            self._kernel.at(deadline, self._look_again)

    def _look_again(self) -> None:
        deadline = self._link.next_deadline()
        if deadline is not None and deadline <= self._kernel.now:
            self._flush()

    def _put_on_air(self, frame: Frame) -> None:
        self._air.send(self.site, COORDINATOR, encode(frame))

"""A simulated mote behaves like one: it samples by its schedule, repeats what nobody answers, and obeys only sense."""

import pytest

from acquisition.instants import Epochs
from acquisition.payload import decode_readings, encode_schedule, encode_time
from acquisition.schedule import Channel, Sampling, Schedule, sensor_code
from gateway.codec import decode, encode
from gateway.frame import COORDINATOR, MAX_PAYLOAD, Frame, Kind
from gateway.image import chunks, encode_chunk
from gateway.link import Policy, acknowledgement
from innet.payload import Orders, decode_links, encode_orders
from innet.program.program import MoteProgram
from simulator.field import Failing, Wave
from simulator.kernel import Kernel
from simulator.mote import Mote, Sensor
from simulator.radio import NullAir
from simulator.trace import Trace

SAMPLING = Sampling(0, "", Epochs(100, 10), (Channel("", sensor_code("temperature"), 16),))
[SCHEDULE] = map(encode_chunk, chunks(encode_schedule(Schedule(3, 1, (SAMPLING,))), MAX_PAYLOAD))
ORDERS = Orders((MoteProgram(3, 0, 1, 1, bytes.fromhex("0100 0200 00")),))
[PROGRAM] = map(encode_chunk, chunks(encode_orders(1, ORDERS), MAX_PAYLOAD))


class Base:
    """The other end of the air, which answers unless told not to. Tick 0 is 95 s before the mote starts."""

    def __init__(self, sensors=(Sensor("temperature", Wave(20.0), scale=1),)):
        self.kernel, self.trace = Kernel(), Trace()
        self.air = NullAir(self.kernel, self.trace, delay_ms=2)
        self.received, self.answering, self.seq = [], True, 0
        self.air.join(COORDINATOR, self.receive)
        self.mote = Mote(3, 1, self.kernel, self.air, self.trace, sensors, Policy(timeout_ms=3000, attempts=3))
        self.mote.start()

    def receive(self, message):
        frame = decode(message)
        self.received.append((self.kernel.now, frame))
        if frame.want_ack and self.answering:
            self.air.send(COORDINATOR, 3, encode(acknowledgement(frame)))

    def tell(self, kind, payload, want_ack=True, seq=None):
        frame = Frame(kind, 3, 1, self.seq if seq is None else seq, payload, down=True, want_ack=want_ack)
        self.seq += 1
        self.air.send(COORDINATOR, 3, encode(frame))
        self.kernel.run_until(self.kernel.now + 10)

    def deploy(self):
        self.tell(Kind.TIME, encode_time(self.kernel.now + 95_000, 1000), want_ack=False)
        self.tell(Kind.PROGRAM, PROGRAM)
        self.tell(Kind.SCHEDULE, SCHEDULE)

    def readings(self):
        """(tick, value) in the order of arrival, duplicates left in."""
        frames = [frame for _, frame in self.received if frame.kind is Kind.READING]
        found = [decode_readings([frame], {0: SAMPLING})[0][0] for frame in frames]
        return [pair for r in found for pair in zip(r.tick.tolist(), r.value[:, 0].tolist(), strict=True)]

    def run_until_tick(self, tick):
        self.kernel.run_until((tick - 95) * 1000)


def test_it_reports_whom_it_hears_when_it_starts():
    base = Base()
    base.kernel.run_until(5)
    [(_, frame)] = base.received
    assert frame.kind is Kind.LINKS
    assert [(h.neighbour, h.quality) for h in decode_links(frame.payload, 3).heard] == [(COORDINATOR, 255)]


def test_it_samples_at_the_ticks_of_its_schedule():
    base = Base()
    base.deploy()
    base.run_until_tick(125)
    assert base.readings() == [(100, 200), (110, 200), (120, 200)]
    # 2 ms through the air, and the mote's clock is 2 ms slow: that long the time was on its way to it.
    assert [now for now, frame in base.received if frame.kind is Kind.READING] == [5004, 15004, 25004]


@pytest.mark.parametrize("missing", [Kind.TIME, Kind.PROGRAM, Kind.SCHEDULE])
def test_it_does_nothing_without_clock_program_or_schedule(missing):
    base = Base()
    for kind, payload in ((Kind.TIME, encode_time(95_000, 1000)), (Kind.PROGRAM, PROGRAM), (Kind.SCHEDULE, SCHEDULE)):
        if kind is not missing:
            base.tell(kind, payload)
    base.run_until_tick(125)
    assert base.readings() == []


def test_unanswered_readings_are_kept_and_sent_together():
    base = Base()
    base.deploy()
    base.run_until_tick(101)
    base.answering = False
    base.run_until_tick(118)
    base.answering = True
    base.run_until_tick(145)
    ticks = [tick for tick, _ in base.readings()]
    assert sorted(set(ticks)) == [100, 110, 120, 130, 140]
    assert ticks.count(110) == 3  # as often as the policy allows, then given up: the mote cannot know it arrived
    assert len(base.trace.of("given_up")) == 1


def test_what_waits_while_a_frame_is_in_flight_goes_into_one_frame():
    base = Base()
    base.mote._link.policy = Policy(timeout_ms=25_000, attempts=5)
    base.deploy()
    base.answering = False
    base.run_until_tick(124)
    base.answering = True
    base.run_until_tick(128)
    frames = [frame for _, frame in base.received if frame.kind is Kind.READING]
    counts = [len(decode_readings([frame], {0: SAMPLING})[0][0].tick) for frame in frames]
    assert counts == [1, 1, 2]
    assert [tick for tick, _ in base.readings()] == [100, 100, 110, 120]


def test_a_clock_set_back_samples_no_epoch_twice():
    base = Base()
    base.deploy()
    base.run_until_tick(111)
    base.tell(Kind.TIME, encode_time(109_000, 1000), want_ack=False)
    base.run_until_tick(135)
    ticks = [tick for tick, _ in base.readings()]
    assert ticks[:3] == [100, 110, 120]
    assert len(set(ticks)) == len(ticks)


def test_a_second_copy_is_answered_and_not_obeyed_again():
    base = Base()
    base.deploy()
    base.tell(Kind.SCHEDULE, SCHEDULE, seq=2)
    acks = [frame.seq for _, frame in base.received if frame.kind is Kind.ACK]
    assert acks == [1, 2, 2]
    assert [dict(e.details)["seq"] for e in base.trace.of("received")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [(Kind.SCHEDULE, b"\x01"), (Kind.PROGRAM, PROGRAM + b"\xee"), (Kind.TIME, b""), (Kind.HELLO, b"")],
)
def test_nonsense_is_neither_obeyed_nor_answered(kind, payload):
    base = Base()
    base.tell(kind, payload)
    base.tell(kind, payload, seq=0)  # not even as a duplicate
    assert not [frame for _, frame in base.received if frame.kind is Kind.ACK]
    assert len(base.trace.of("rejected")) == 2


def test_frames_for_others_are_left_alone():
    base = Base()
    base.mote.receive(encode(Frame(Kind.TIME, 4, 1, 0, encode_time(1, 1), down=True)))
    base.mote.receive(encode(Frame(Kind.READING, 3, 1, 0)))
    assert not base.trace.events


@pytest.mark.parametrize(("true", "read"), [(20.05, 201), (-20.05, -201), (20.04, 200), (0.0, 0)])
def test_sensors_round_halves_away_from_zero(true, read):
    assert Sensor("temperature", Wave(true), scale=1).read(3, 0) == read


def test_fields():
    wave = Wave(mean=10.0, swing=2.0, period_ms=4000, per_site=0.5)
    assert [wave.value(2, ms) for ms in (0, 1000)] == [11.0, 13.0]
    failing = Failing(wave, site=2, begin=1000, end=2000)
    assert [failing.value(site, ms) for site, ms in ((2, 999), (2, 1000), (1, 1000), (2, 2000))] == [
        wave.value(2, 999), None, wave.value(1, 1000), wave.value(2, 2000)]  # fmt: skip


def test_a_mote_without_the_sensor_reads_null():
    base = Base(sensors=())
    base.deploy()
    base.run_until_tick(105)
    [frame] = [frame for _, frame in base.received if frame.kind is Kind.READING]
    [readings], _ = decode_readings([frame], {0: SAMPLING})
    assert readings.null.tolist() == [[True]]


def test_two_motes_cannot_have_one_number():
    base = Base()
    with pytest.raises(ValueError, match="two motes with the number 3"):
        base.air.join(3, lambda message: None)

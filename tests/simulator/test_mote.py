"""A simulated mote behaves like one: it samples by its schedule, repeats unanswered frames, and executes valid ones only."""

from dataclasses import replace

import pytest

from acquisition.payload import decode_readings, encode_schedule, encode_time
from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from gateway.codec import decode
from gateway.frame import COORDINATOR, MAX_PAYLOAD, Frame, FrameKind
from gateway.image import Image, encode_chunk, split_into_chunks
from gateway.payload import (
    ClockMoved,
    Hello,
    HelloReason,
    LostFrames,
    MissingBlocks,
    ReadingCounts,
    RefusedImage,
    decode_event,
    decode_hello,
    encode_selective_ack,
)
from gateway.payload import SelectiveAck as BaseAccount
from innet.costs.hardware import load_hardware
from innet.payload import MoteAssignment, decode_links, encode_assignment
from innet.program.mote_program import MoteProgram
from simulator.energy import EnergyAccount, Timing
from simulator.kernel import Kernel
from simulator.mac import MacLayer, RetryPolicy
from simulator.mote import Mote
from simulator.physical_fields import FailingSensor, Wave
from simulator.radio_medium import NullChannel, RadioMedium
from simulator.sensor import Sensor
from simulator.trace import Trace

SAMPLING = Sampling(0, "", EpochGrid(100, 10), (SensorChannel("", sensor_code("temperature"), 16),))
[SCHEDULE] = map(encode_chunk, split_into_chunks(encode_schedule(Schedule(3, 1, (SAMPLING,))), MAX_PAYLOAD))
ORDERS = MoteAssignment((MoteProgram(3, 0, 1, 1, bytes.fromhex("0100 0200 03 04 00")),))
[PROGRAM] = map(encode_chunk, split_into_chunks(encode_assignment(1, ORDERS), MAX_PAYLOAD))


BEGIN_US = 95_000_000


class Base:
    """The other radio, which acknowledges unless `answering` is off. It is 95 s after tick 0 when the mote starts."""

    number, on, listening = COORDINATOR, True, True

    def __init__(self, sensors=(Sensor("temperature", Wave(20.0), scale=1),)):
        self.kernel, self.trace = Kernel(BEGIN_US), Trace()
        self.medium = RadioMedium(self.kernel, self.trace, NullChannel())
        self.account, self.timing = EnergyAccount(), Timing.of(load_hardware("telosb"))
        self.received, self.answering, self.seq = [], True, 0
        self.medium.join(self)
        self.mac = MacLayer(self, self.kernel, self.medium, self.trace, RetryPolicy(again=0))
        retry = RetryPolicy(again=2, pause_ms=3_000, longest_ms=3_000)
        self.mote = Mote(3, 1, self.kernel, self.medium, self.trace, sensors, retry)
        self.mote.start()

    def accept(self, message):
        self.received.append((self.kernel.now, decode(message)))
        return self.answering

    def has_frames_for(self, number):
        return False

    def report_neighbours(self):
        """It does not mind."""

    def tell(self, kind, payload, want_ack=True, seq=None):
        """Send a frame; whether it was acknowledged."""
        frame = Frame(kind, 3, 1, self.seq if seq is None else seq, payload, True, want_ack, receiver=3)
        self.seq += 1
        taken = []
        self.mac.hand_over(frame, taken.append)
        self.run_for(200)
        return taken == [True]

    def run_for(self, ms):
        self.kernel.run_until(self.kernel.now + ms * 1_000)

    def deploy(self):
        self.tell(FrameKind.TIME, encode_time(self.kernel.now // 1_000, 1000), want_ack=False)
        self.tell(FrameKind.PROGRAM, PROGRAM)
        self.tell(FrameKind.SCHEDULE, SCHEDULE)

    def readings(self):
        """(tick, value) in the order of arrival."""
        frames = list({frame.seq: frame for _, frame in self.received if frame.kind is FrameKind.READING}.values())
        found = [decode_readings([frame], {0: SAMPLING})[0][0] for frame in frames]
        return [pair for r in found for pair in zip(r.tick.tolist(), r.value[:, 0].tolist(), strict=True)]

    def run_until_tick(self, tick):
        self.kernel.run_until(tick * 1_000_000)


def test_it_says_hello_and_whom_it_hears_when_it_starts():
    base = Base()
    base.run_for(25)
    (_, hello), (_, frame) = base.received
    assert (hello.kind, frame.kind) == (FrameKind.HELLO, FrameKind.LINKS)
    assert decode_hello(hello.payload) == Hello(
        HelloReason.SWITCHED_ON, sensor_code("telosb"), 0, sensors=(sensor_code("temperature"),)
    )
    assert [(h.neighbour, h.quality) for h in decode_links(frame.payload, 3).links] == [(COORDINATOR, 255)]


def test_it_samples_at_the_ticks_of_its_schedule():
    base = Base()
    base.deploy()
    base.run_until_tick(125)
    assert base.readings() == [(100, 200), (110, 200), (120, 200)]
    # From waking to the last bit: a turn round and 17 + 21 bytes; the clock is slow by what TIME took on its way.
    heard = [now for now, frame in base.received if frame.kind is FrameKind.READING]
    assert [now - tick * 1_000_000 for now, tick in zip(heard, (100, 110, 120), strict=True)] == pytest.approx(
        [192 + 38 * 32] * 3, abs=1_500
    )


@pytest.mark.parametrize("missing", [FrameKind.TIME, FrameKind.PROGRAM, FrameKind.SCHEDULE])
def test_it_does_nothing_without_clock_program_or_schedule(missing):
    base = Base()
    for kind, payload in (
        (FrameKind.TIME, encode_time(95_000, 1000)),
        (FrameKind.PROGRAM, PROGRAM),
        (FrameKind.SCHEDULE, SCHEDULE),
    ):
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
    assert [tick for tick, _ in base.readings()] == [100, 110, 120, 130, 140]
    sent = [e for e in base.trace.of("sent") if e["kind"] == "READING"]
    # As often as the policy allows, then given up: the mote cannot know that it arrived.
    assert [(e["attempts"], e["known"]) for e in sent[:5]] == [(1, 1), (8, 0), (8, 0), (8, 0), (1, 1)]
    assert len(base.trace.of("given_up")) == 1


def test_readings_wait_for_frame_under_way_and_share_one_frame():
    base = Base()
    base.mote.forwarder._mac._retry = RetryPolicy(again=5, pause_ms=25_000)
    base.deploy()
    base.answering = False
    base.run_until_tick(124)
    base.answering = True
    base.run_until_tick(128)
    frames = list({frame.seq: frame for _, frame in base.received if frame.kind is FrameKind.READING}.values())
    counts = [len(decode_readings([frame], {0: SAMPLING})[0][0].tick) for frame in frames]
    assert counts == [1, 2]
    assert [tick for tick, _ in base.readings()] == [100, 110, 120]


def test_readings_do_not_wait_for_unacknowledged_hello():
    base = Base()
    base.mote.forwarder._mac._retry = RetryPolicy(again=5, pause_ms=25_000)
    base.deploy()
    base.run_until_tick(105)
    base.answering = False
    assert base.tell(FrameKind.HELLO, b"")
    assert base.received[-1][1].kind is FrameKind.HELLO
    base.answering = True
    base.run_until_tick(121)
    assert [tick for tick, _ in base.readings()] == [100, 110, 120]


def test_a_clock_set_back_samples_no_epoch_twice():
    base = Base()
    base.deploy()
    base.run_until_tick(111)
    base.tell(FrameKind.TIME, encode_time(109_000, 1000), want_ack=False)
    base.run_until_tick(135)
    ticks = [tick for tick, _ in base.readings()]
    assert ticks[:3] == [100, 110, 120]
    assert len(set(ticks)) == len(ticks)


@pytest.mark.promise("no-double-count")
@pytest.mark.parametrize("ahead, set_to", [(25_000, 0), (0, -25_000), (25_000, -25_000)])
def test_rebooted_mote_measures_no_tick_twice(ahead, set_to):
    base = Base()
    base.deploy()
    base.mote.jump(ahead)
    base.run_until_tick(121)
    base.mote.reboot()
    base.tell(FrameKind.TIME, encode_time(base.kernel.now // 1_000 + set_to, 1000), want_ack=False)
    base.tell(FrameKind.PROGRAM, PROGRAM)
    base.tell(FrameKind.SCHEDULE, SCHEDULE)
    base.run_until_tick(186)
    before, after = (
        [e["tick"] for e in base.trace.of("produced") if (e.time < 121_000_000) == early] for early in (True, False)
    )
    assert before and after == list(range(max(before) + 10, 186 + set_to // 1_000, 10))


@pytest.mark.promise("no-double-count")
def test_a_clock_set_back_samples_no_tick_under_another_number():
    base = Base()
    base.deploy()
    base.mote.jump(25_000)
    base.run_until_tick(121)
    base.tell(FrameKind.TIME, encode_time(base.kernel.now // 1_000, 1000), want_ack=False)
    another = Schedule(3, 2, (replace(SAMPLING, number=1, epochs=EpochGrid(120, 10)),))
    base.tell(FrameKind.SCHEDULE, encode_chunk(*split_into_chunks(encode_schedule(another), MAX_PAYLOAD)))
    base.run_until_tick(165)
    assert [(e["sampling"], e["tick"]) for e in base.trace.of("produced")] == [(0, 130), (0, 140)]
    assert [(e["sampling"], e["tick"]) for e in base.trace.of("wasted")] == [(1, 150), (1, 160)]


def test_a_second_copy_is_answered_and_not_obeyed_again():
    base = Base()
    base.deploy()
    assert base.tell(FrameKind.SCHEDULE, SCHEDULE, seq=2)
    assert [e["seq"] for e in base.trace.of("received")] == [0, 1, 2]


def payloads(base, kind, decode):
    return [decode(frame.payload) for _, frame in base.received if frame.kind is kind]


def test_mote_confirms_installed_image_again_on_repeat():
    base = Base()
    base.deploy()
    base.run_for(100)
    last = payloads(base, FrameKind.HELLO, decode_hello)[-1]
    assert (last.reason, last.schedule, last.program) == (
        HelloReason.INSTALLED, encode_schedule(Schedule(3, 1, (SAMPLING,))).stamp, encode_assignment(1, ORDERS).stamp)  # fmt: skip
    assert base.kernel.now // 1000 - 500 < last.clock_ms < base.kernel.now // 1000  # when it said so
    base.tell(FrameKind.PROGRAM, PROGRAM)
    base.run_for(100)
    again = payloads(base, FrameKind.HELLO, decode_hello)
    assert len(again) == 4
    base.tell(FrameKind.HELLO, b"")
    base.run_for(100)
    assert payloads(base, FrameKind.HELLO, decode_hello)[-1].reason is HelloReason.ASKED


@pytest.mark.promise("delivery")
def test_mote_without_parent_announces_itself_ever_more_slowly():
    base = Base()
    base.run_for(100_000)
    begun = [round((now - BEGIN_US) / 10_000_000) for now, frame in base.received if frame.kind is FrameKind.HELLO]
    assert begun == [0, 1, 3, 7]
    base.deploy()  # the program says who is its parent
    before = len(payloads(base, FrameKind.LINKS, bytes))
    base.run_for(400_000)
    assert before == len(payloads(base, FrameKind.LINKS, bytes)) == 4


def test_it_asks_for_the_blocks_that_did_not_come():
    base = Base()
    image = Image(4, bytes(100))
    _, last = split_into_chunks(image, MAX_PAYLOAD)
    base.tell(FrameKind.PROGRAM, encode_chunk(last))
    base.run_for(45_000)
    assert (
        payloads(base, FrameKind.EVENT, decode_event)
        == [MissingBlocks(FrameKind.PROGRAM, image.stamp, frozenset(range(4)))] * 2
    )


def test_invalid_image_is_rejected_and_the_present_one_kept():
    base = Base()
    base.deploy()
    nonsense = Image(4, b"no program")
    [chunk] = split_into_chunks(nonsense, MAX_PAYLOAD)
    assert base.tell(FrameKind.PROGRAM, encode_chunk(chunk))  # it came; that it is of no use is another matter
    base.run_until_tick(105)
    assert payloads(base, FrameKind.EVENT, decode_event) == [RefusedImage(FrameKind.PROGRAM, nonsense.stamp)]
    assert base.readings() == [(100, 200)]


def test_requested_frame_that_is_gone_is_reported_lost():
    base = Base()
    base.run_for(100)
    account = Frame(
        FrameKind.ACK, 3, 1, 9, encode_selective_ack(BaseAccount(((0, 1), (7, 9)))), True, False, receiver=3
    )
    base.mac.hand_over(account, lambda _: None)
    base.run_for(200)
    assert payloads(base, FrameKind.EVENT, decode_event) == [LostFrames(1, ((7, 9),))]


@pytest.mark.promise("delivery")
def test_mote_resends_requested_frames_and_forgets_acknowledged():
    base = Base()
    base.mote.forwarder.parent = COORDINATOR
    base.deploy()
    base.run_until_tick(155)
    readings = [frame.seq for _, frame in base.received if frame.kind is FrameKind.READING]
    for times, gaps in ((2, ((readings[0], readings[0]), (readings[2], readings[2]))), (1, ((readings[1],) * 2,))):
        account = Frame(
            FrameKind.ACK, 3, 1, readings[-1], encode_selective_ack(BaseAccount(gaps)), True, False, receiver=3
        )
        base.mac.hand_over(account, lambda _: None)
        base.run_for(300)
        again = [frame.seq for _, frame in base.received if frame.kind is FrameKind.READING]
        assert [again.count(seq) for seq in readings[:4]] == [2, 1, 2, 1]
        lost = payloads(base, FrameKind.EVENT, decode_event)
        assert lost == ([] if times == 2 else [LostFrames(1, gaps)])


@pytest.mark.promise("ledger")
def test_mote_reports_counts_and_moved_clock():
    base = Base()
    base.mote.forwarder.parent = COORDINATOR
    base.deploy()
    base.run_until_tick(705)
    assert payloads(base, FrameKind.EVENT, decode_event) == [ReadingCounts(0, 0, 60, 60, 0, 0, 0)]
    for late_ms in (500, 3_000):  # less than a tick is no news
        base.tell(FrameKind.TIME, encode_time(base.kernel.now // 1_000 + late_ms, 1000), want_ack=False)
    [_, moved] = payloads(base, FrameKind.EVENT, decode_event)
    assert isinstance(moved, ClockMoved) and 2_450 <= moved.by_ms <= 2_550


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (FrameKind.SCHEDULE, b"\x01"),
        (FrameKind.PROGRAM, PROGRAM + b"\xee"),
        (FrameKind.TIME, b""),
        (FrameKind.READING, b""),
    ],
)
def test_nonsense_is_neither_obeyed_nor_answered(kind, payload):
    base = Base()
    assert not base.tell(kind, payload)
    assert not base.tell(kind, payload, seq=0)  # not even as a duplicate
    assert base.trace.of("rejected")
    assert not base.trace.of("received")


def test_downward_frames_follow_their_route():
    base = Base()
    other = Mote(4, 1, base.kernel, base.medium, base.trace, ())
    other.start()
    route = Frame(FrameKind.TIME, 4, 1, 0, encode_time(95_000, 1000), down=True, receiver=3, route=(4,))
    base.mac.hand_over(route, lambda _: None)
    base.run_for(100)
    [(mote, kind)] = [(e.mote, e["kind"]) for e in base.trace.of("received")]
    assert (mote, kind) == (4, "TIME")
    # The airtime of the second hop was added, so the clock is slow by the first one only.
    assert base.kernel.now - other.clock.local_time(base.kernel.now) == pytest.approx(192 + 44 * 32, abs=600)


def test_frames_on_their_way_up_are_passed_on_to_the_parent():
    base = Base()
    other = Mote(4, 1, base.kernel, base.medium, base.trace, ())
    base.mote.forwarder.parent, other.forwarder.parent = COORDINATOR, 3
    other.start()
    base.run_for(100)
    assert {(frame.mote, frame.sender, frame.seq) for _, frame in base.received} == {
        (3, 3, 0), (3, 3, 1), (4, 3, 0), (4, 3, 1)}  # fmt: skip


@pytest.mark.parametrize(("true", "read"), [(20.05, 201), (-20.05, -201), (20.04, 200), (0.0, 0)])
def test_sensors_round_halves_away_from_zero(true, read):
    assert Sensor("temperature", Wave(true), scale=1).read(3, 0) == read


def test_fields():
    wave = Wave(mean=10.0, swing=2.0, period_ms=4000, per_site=0.5)
    assert [wave.value(2, ms) for ms in (0, 1000)] == [11.0, 13.0]
    failing = FailingSensor(wave, site=2, begin=1000, end=2000)
    assert [failing.value(site, ms) for site, ms in ((2, 999), (2, 1000), (1, 1000), (2, 2000))] == [
        wave.value(2, 999), None, wave.value(1, 1000), wave.value(2, 2000)]  # fmt: skip


def test_a_mote_without_the_sensor_reads_null():
    base = Base(sensors=())
    base.deploy()
    base.run_until_tick(105)
    [frame] = [frame for _, frame in base.received if frame.kind is FrameKind.READING]
    [readings], _ = decode_readings([frame], {0: SAMPLING})
    assert readings.null.tolist() == [[True]]


def test_two_motes_cannot_have_one_number():
    base = Base()
    with pytest.raises(ValueError, match="two radios with the number 3"):
        Mote(3, 1, base.kernel, base.medium, base.trace, ())

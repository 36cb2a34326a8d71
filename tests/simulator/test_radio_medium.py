"""The air and the carriers, without motes: who hears what, how often it is tried, what it costs."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.codec import decode, encode
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, FrameKind, MoteId
from innet.costs.hardware import MAX_ATTEMPTS, load_hardware
from simulator.counter_rng import Purpose, draw, uniform
from simulator.energy import EnergyAccount, Timing, spent
from simulator.kernel import Kernel
from simulator.mac import MacLayer, RetryPolicy
from simulator.radio_medium import Bursts, LossyChannel, NullChannel, RadioMedium, is_bad, link_of
from simulator.trace import Trace

TELOSB = load_hardware("telosb")
TIMING = Timing.of(TELOSB)


@dataclass
class Ear:
    """A station that keeps what it hears."""

    number: int
    account: EnergyAccount = field(default_factory=EnergyAccount)
    timing: Timing = TIMING
    on: bool = True
    listening: bool = True
    heard: list = field(default_factory=list)

    def accept(self, message):
        self.heard.append(decode(message))
        return True

    def has_frames_for(self, number):
        return False

    def report_neighbours(self):
        """It does not mind."""


class Bench:
    """Stations 1 to n on one air, each with a carrier."""

    def __init__(self, count, channel):
        self.kernel, self.trace = Kernel(), Trace()
        self.medium = RadioMedium(self.kernel, self.trace, channel)
        self.ears = {number: Ear(number) for number in range(1, count + 1)}
        for ear in self.ears.values():
            self.medium.join(ear)
        self.macs = {
            n: MacLayer(ear, self.kernel, self.medium, self.trace, RetryPolicy(again=0)) for n, ear in self.ears.items()
        }

    def send(self, sender, receiver, seq=0, payload=b"x" * 20, repeated=False):
        frame = Frame(FrameKind.READING, MoteId(sender), 1, seq, payload, sender=MoteId(sender), receiver=MoteId(receiver),
                      repeated=repeated)  # fmt: skip
        self.macs[sender].hand_over(frame, lambda known: None)
        return frame

    @property
    def outcomes(self):
        """(attempts, whether it came, whether that is known) of each hand-over that is over."""
        return [(e["attempts"], bool(e["came"]), bool(e["known"])) for e in self.trace.of("sent")]


def test_hand_over_is_received_once_and_acknowledged():
    bench = Bench(2, NullChannel())
    frame = bench.send(1, 2)
    bench.kernel.run_until(10**9)
    assert bench.ears[2].heard == [frame]
    assert bench.outcomes == [(1, True, True)]
    airtime = TIMING.airtime(len(encode(frame)))
    assert airtime == (17 + 32) * 32  # 49 bytes at 250 kbit/s
    assert (bench.ears[1].account.send_us, bench.ears[2].account.send_us) == (airtime, 352)


@pytest.mark.parametrize(
    ("there", "back", "attempts", "came"),
    [(0.0, 1.0, MAX_ATTEMPTS, False), (1.0, 0.0, MAX_ATTEMPTS, True), (1.0, 1.0, 1, True)],
)
def test_frame_is_retried_until_acknowledged_and_taken_once(there, back, attempts, came):
    bench = Bench(2, LossyChannel({(1, 2): there, (2, 1): back}, seed=1))
    bench.send(1, 2)
    bench.kernel.run_until(10**9)
    assert bench.outcomes == [(attempts, came, attempts == 1)]
    assert len(bench.ears[2].heard) == came


@pytest.mark.promise("deterministic")
def test_losses_are_as_frequent_as_the_links_say():
    bench = Bench(2, LossyChannel({(1, 2): 0.7, (2, 1): 0.8}, seed=3))
    for seq in range(4_000):
        bench.send(1, 2, seq)
    bench.kernel.run_until(10**12)
    # Each attempt is known to have come with 0.56; after eight a few are left.
    expected = sum(0.44**n for n in range(MAX_ATTEMPTS))
    assert sum(attempts for attempts, _, _ in bench.outcomes) / 4_000 == pytest.approx(expected, rel=0.05)
    assert sum(not came for _, came, _ in bench.outcomes) <= 10  # 0.3 to the 8th is one in 15,000


@pytest.mark.promise("deterministic")
@given(seed=st.integers(0, 2**32), others=st.lists(st.sampled_from([(1, 3), (3, 2), (2, 1), (3, 1)]), max_size=4))
def test_other_frames_leave_draws_of_a_link_unchanged(seed, others):
    """Before it, in the same second, by the same sender and to the same receiver; in bad times, too."""
    found = []
    for more in ([], others):
        links = {(a, b): 0.6 for a in (1, 2, 3) for b in (1, 2, 3)}
        bench = Bench(3, LossyChannel(links, seed, Bursts(0.2, 0.3, 0.1)))
        for second in range(20):
            for sender, receiver in more:
                bench.send(sender, receiver, second)
            bench.send(1, 2, second)
            bench.kernel.run_until((second + 1) * 1_000_000)
        sent = bench.trace.of("sent")
        assert len(sent) == 20 * (1 + len(more))
        found.append([got for e, got in zip(sent, bench.outcomes, strict=True) if (e.mote, e["to"]) == (1, 2)])
    assert found[0] == found[1]


def test_broadcast_reaches_all_receivers_once():
    bench = Bench(4, LossyChannel({(1, 2): 1.0, (1, 3): 1.0}, seed=1))
    bench.send(1, BROADCAST)
    bench.kernel.run_until(10**9)
    assert [len(bench.ears[n].heard) for n in (2, 3, 4)] == [1, 1, 0]
    assert bench.outcomes[0][0] == 1


def test_receivers_of_one_message_share_its_decoding():
    medium = RadioMedium(Kernel(), Trace(), NullChannel())
    first, other = (encode(Frame(FrameKind.READING, MoteId(1), 1, seq)) for seq in (1, 2))
    frame = medium.decode(first)
    assert medium.decode(bytes(bytearray(first))) is frame == decode(first)
    assert medium.decode(other) == decode(other) != frame
    for _ in range(2):
        with pytest.raises(FrameError, match="version"):
            medium.decode(b"\xff" * 20)
    assert medium.decode(first) == frame


@pytest.mark.promise("deterministic")
@given(
    seed=st.integers(0, 2**32), ratios=st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.0]), min_size=6, max_size=6), epoch=st.integers(-1, 2**40)
)  # fmt: skip
def test_broadcast_draws_as_frames_to_each_receiver(seed, ratios, epoch):
    """Also after a link has changed."""
    others = [2, 3, 4, 5, 6, 7]
    channel = LossyChannel({(1, other): ratio for other, ratio in zip(others, ratios, strict=True)}, seed)
    for changed in ({}, {(1, 4): 1.0 - ratios[2]}):
        channel.ratios |= changed
        channel.note_changed_links()
        for attempt in range(20):
            each = [other for other in others if channel.is_received(Purpose.FRAME, 1, other, epoch, attempt)]
            assert channel.find_receivers(1, others, epoch, attempt) == each
            drawn = [uniform(draw(seed, Purpose.FRAME, link_of(1, other), epoch, attempt)) for other in others]
            assert each == [o for o, luck in zip(others, drawn, strict=True) if luck < channel.ratio(1, o)]


def test_sleeping_or_cut_radio_receives_nothing():
    bench = Bench(3, NullChannel())
    bench.ears[2].listening = False
    bench.medium.cut(3)
    bench.send(1, 2)
    bench.send(1, 3)
    bench.kernel.run_until(10**9)
    assert [came for _, came, _ in bench.outcomes] == [False, False]
    bench.medium.mend(3)
    bench.send(1, 3, 1)
    bench.kernel.run_until(2 * 10**9)
    assert len(bench.ears[3].heard) == 1


def test_overlapping_slots_collide_only_within_earshot():
    def both(links):
        bench = Bench(4, LossyChannel(dict.fromkeys(links, 1.0), seed=1))
        for sender, receiver in ((1, 2), (3, 4)):
            bench.macs[sender].use_slots(True)
            bench.send(sender, receiver)
            bench.macs[sender].open(0, 10_000)
            bench.kernel.at(10_000, bench.macs[sender].close)
        bench.kernel.run_until(10**6)
        return [came for _, came, _ in bench.outcomes], len(bench.trace.of("disturbed"))

    apart = [(1, 2), (2, 1), (3, 4), (4, 3)]
    assert both(apart) == ([True, True], 0)
    assert both([*apart, (3, 2)])[1] == 1  # 2 hears both at once; 1 has to send again


def test_frame_that_does_not_fit_into_slot_is_given_up():
    bench = Bench(2, NullChannel())
    mac = bench.macs[1]
    mac.use_slots(True)
    frames = [bench.send(1, 2, seq) for seq in range(5)]
    bench.kernel.run_until(1_000_000)
    assert bench.outcomes == []
    slot = 3 * TIMING.attempt(len(encode(frames[0])))
    mac.open(epoch=7, until=1_000_000 + slot)
    bench.kernel.at(1_000_000 + slot, mac.close, priority=1)
    bench.kernel.run_until(2_000_000)
    assert bench.outcomes == [(1, True, True)] * 3 + [(0, False, False)] * 2
    assert mac.idle


@pytest.mark.promise("delivery")
def test_resent_frame_takes_room_left_in_slot_or_waits():
    """Slots have room for data that is due. A resent frame would otherwise be given up in each of them, again and again."""
    bench = Bench(2, NullChannel())
    mac = bench.macs[1]
    mac.use_slots(True)
    for seq in range(4):
        bench.send(1, 2, seq, repeated=True)
    for epoch in (1, 2, 3):
        bench.kernel.run_until(epoch * 1_000_000)
        fresh = [bench.send(1, 2, 10 * epoch + n) for n in range(2)]
        slot = 3 * TIMING.attempt(len(encode(fresh[0])))
        mac.open(epoch, until=epoch * 1_000_000 + slot)
        bench.kernel.at(epoch * 1_000_000 + slot, mac.close, priority=1)
    bench.kernel.run_until(9_000_000)
    assert [frame.seq for frame in bench.ears[2].heard] == [10, 11, 0, 20, 21, 1, 30, 31, 2]
    assert not mac.idle  # the fourth still waits


@pytest.mark.promise("deterministic")
@given(seed=st.integers(0, 2**32), link=st.integers(0, 2**32))
def test_bad_times_begin_and_end_as_often_as_they_should(seed, link):
    bursts = Bursts(begin=0.05, end=0.2, left=0.1)
    states = [is_bad(bursts, seed, link, epoch) for epoch in range(2_000)]
    changes = list(pairwise(states))
    good, bad = [b for a, b in changes if not a], [b for a, b in changes if a]
    assert sum(good) / len(good) == pytest.approx(0.05, abs=0.04)
    assert len(bad) < 60 or 1 - sum(bad) / len(bad) == pytest.approx(0.2, abs=0.17)


def test_energy_is_time_in_state_times_current():
    account = EnergyAccount(awake_us=2_000_000, send_us=500_000, compute_us=1_000_000, sampled_nc=176_000)
    expected = 17.4 * 0.5 + 19.7 * 1.5 + 0.0 * 8 + 1.8 * 3 + 0.0051 * 7 + 0.176
    assert spent(TELOSB, 10_000_000, account) == pytest.approx(3.0 * expected * 1e-3)

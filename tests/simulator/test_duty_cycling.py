"""Motes that sleep but for their slots still hear what the base station has to say to them, a hop and a round at a time."""

from dataclasses import replace

import pytest

from acquisition.payload import encode_time
from acquisition.schedule import Schedule
from gateway.frame import Frame, FrameKind, MoteId
from innet.placement.round_pattern import RoundPattern
from simulator.energy import Timing
from simulator.kernel import Kernel
from simulator.mote import Mote
from simulator.network import Gateway
from simulator.radio_medium import RadioMedium
from simulator.trace import Trace
from tests.simulator.networks import GATEWAY, KIND, SENSORS
from tests.simulator.test_vector_engine import collecting_network

PARENTS = {1: GATEWAY, 2: 1, 3: 2}
ROUND_US = 10_000_000


class Line:
    """Three motes in a row, under an agenda; with `rounds` they measure nothing, and have slots in those."""

    def __init__(self, ratio, rounds=None):
        links = {link: ratio for mote, parent in PARENTS.items() for link in ((mote, parent), (parent, mote))}
        made = collecting_network(PARENTS, links, rounds=1)
        self.kernel, self.trace = Kernel(0), Trace()
        medium = RadioMedium(self.kernel, self.trace, made.channel())
        self.gateway = Gateway(GATEWAY, Timing.of(KIND), self.kernel, medium, self.trace)
        self.motes = {n: Mote(n, 1, self.kernel, medium, self.trace, SENSORS, kind=KIND) for n in PARENTS}
        for number, mote in self.motes.items():
            configs = made.configs[number]
            if rounds is not None:
                radio_schedule = replace(
                    configs.orders.radio_schedule, rounds=rounds, poll_phase=rounds.poll_phase(number)
                )
                orders = replace(configs.orders, programs=(), radio_schedule=radio_schedule)
                configs = replace(configs, schedule=Schedule(number, 1, ()), orders=orders)
            mote.install(configs)

    def tell(self, mote, seq, ms):
        hops = [MoteId(n) for n in range(1, mote + 1)]
        payload = encode_time(ms, 1_000)
        self.gateway.send_down(
            Frame(FrameKind.TIME, mote, 1, seq, payload, True, False, receiver=hops[0], route=tuple(hops[1:]))
        )

    def say(self, mote, seq):
        """An event that begins at a mote."""
        frame = Frame(FrameKind.EVENT, MoteId(mote), 1, seq, bytes(40))
        self.motes[mote].forwarder.send_up(frame, lambda taken: None)

    def came(self, kind):
        return [e for e in self.trace.of("delivered") if e["kind"] == kind.name]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("mote", [1, 2, 3])
@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_a_frame_goes_down_a_hop_each_round(mote, ratio):
    line = Line(ratio)
    line.kernel.run_until(ROUND_US * 3 // 2)
    line.tell(mote, 0, 15_000)
    line.kernel.run_until(ROUND_US * (3 + mote))
    [received] = [event for event in line.trace.of("received")]
    assert received.mote == mote
    # The time is right when it arrives, however long it lay about.
    clock = line.motes[mote].clock
    assert clock.local_time(line.kernel.now) == pytest.approx(line.kernel.now, abs=3_000)


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("mote", [1, 2, 3])
@pytest.mark.parametrize("begun", range(2, 7))
@pytest.mark.parametrize("every", [1, 10])
def test_polling_mote_gets_waiting_frame_one_hop_a_round(mote, begun, every):
    rounds = RoundPattern(every, 0, 5)
    line, silent = Line(1.0, rounds), Line(1.0, RoundPattern(every))
    for each in (line, silent):
        each.kernel.run_until(begun * ROUND_US + ROUND_US // 2)
        each.tell(mote, 0, 15_000)
        each.kernel.run_until((begun + 5 + mote) * ROUND_US - 1)
    assert [event.mote for event in line.trace.of("received")] == [mote]
    assert silent.trace.of("received") == silent.trace.of("inquired") == []
    # A mote that received a frame polls in the next round again: the next frame does not wait for its turn.
    now = line.trace.of("received")[0].time // ROUND_US
    follows = Line(1.0, rounds)
    follows.kernel.run_until(begun * ROUND_US + ROUND_US // 2)
    follows.tell(mote, 0, 15_000)
    follows.kernel.run_until((now - mote + 2) * ROUND_US - 1)  # the first hop has taken it
    follows.tell(mote, 1, 15_000)
    follows.kernel.run_until((now + 2) * ROUND_US - 1)
    assert [event["seq"] for event in follows.trace.of("received")] == [0, 1]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_poll_is_sent_in_its_turn_only_and_costs_little(ratio):
    line, silent = Line(ratio, RoundPattern(poll_every=5)), Line(ratio, RoundPattern())
    for each in (line, silent):
        each.kernel.run_until(20 * ROUND_US - 1)
    turns = [(event.mote, event.time // ROUND_US) for event in line.trace.of("inquired")]
    assert sorted(turns) == [(mote, round) for mote in PARENTS for round in range(mote, 20, 5)]
    assert ratio < 1 or {event["attempts"] for event in line.trace.of("inquired")} == {1}
    awake = {each: sum(mote.forwarder.account.awake_us for mote in each.motes.values()) for each in (line, silent)}
    assert 0 < awake[line] - awake[silent] < 0.05 * awake[silent]
    assert line.trace.of("sent") == line.trace.of("asked") == line.trace.of("forsaken") == []


@pytest.mark.promise("agenda")
def test_motes_wake_in_rounds_with_data_and_in_their_turns():
    def awake(rounds):
        line = Line(1.0, rounds=rounds)
        line.kernel.run_until(100 * ROUND_US - 1)
        return {number: mote.forwarder.account.awake_us for number, mote in line.motes.items()}

    each, rarely, turns = awake(RoundPattern()), awake(RoundPattern(10, 9)), awake(RoundPattern(10, 9, 5))
    for number in (1, 2):  # a child each
        assert 10 * rarely[number] == each[number] > 0
        assert 2 * each[number] < 10 * (turns[number] - rarely[number]) < 3 * each[number]  # and their own questions
    assert each[3] == rarely[3] == 0 < turns[3]


@pytest.mark.promise("network-heals")
def test_mote_leaves_parent_after_three_fruitless_rounds():
    line = Line(1.0, RoundPattern(7))
    line.kernel.run_until(ROUND_US)
    line.motes[2].hang()
    line.motes[2].forwarder.switch_off()
    line.motes[3]._memory.association._send_links()
    for seq in range(30):
        line.say(3, 100 + seq)
    line.kernel.run_until(20 * ROUND_US)
    tried = [event.time // ROUND_US for event in line.trace.of("sent") if event.mote == 3 and not event["known"]]
    assert len(tried) > 2 and set(tried) == {7, 14}
    assert line.trace.of("forsaken") == []
    line.kernel.run_until(22 * ROUND_US)
    assert [(event.mote, event.time // ROUND_US) for event in line.trace.of("forsaken")] == [(3, 21)]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_control_frames_of_a_mote_leave_in_one_round(ratio):
    """Its slot has room for some frames more than its readings; it comes again until nothing is left."""
    quiet, talking = Line(ratio), Line(ratio)
    for line in (quiet, talking):
        line.kernel.run_until(ROUND_US * 3 // 2)
    for seq in range(30):
        talking.say(3, 100 + seq)
    for line in (quiet, talking):
        line.kernel.run_until(ROUND_US * 3 - 1)
    assert {e["seq"] for e in talking.came(FrameKind.EVENT)} == set(range(100, 130))
    assert [e.time for e in quiet.came(FrameKind.READING)] == pytest.approx(
        [e.time for e in talking.came(FrameKind.READING)], abs=60_000
    )
    awake = {line: {n: mote.forwarder.account.awake_us for n, mote in line.motes.items()} for line in (quiet, talking)}
    for line in (quiet, talking):
        line.kernel.run_until(ROUND_US * 6 - 1)
    for number in PARENTS:  # who said it and who passed it on was awake for longer, in that round and in no other
        assert 30_000 < awake[talking][number] - awake[quiet][number] < 1_200_000
        later = [line.motes[number].forwarder.account.awake_us - awake[line][number] for line in (quiet, talking)]
        assert later[0] == pytest.approx(later[1], abs=0 if ratio == 1 else 60_000)


@pytest.mark.promise("agenda")
def test_lost_pending_flag_opens_no_further_slot():
    line = Line(1.0)
    line.kernel.run_until(ROUND_US * 3 // 2)
    line.motes[2].hang()
    line.motes[2].forwarder.switch_off()
    for seq in range(30):
        line.say(3, 100 + seq)
    line.kernel.run_until(ROUND_US * 3 - 1)
    attempts = [e["attempts"] for e in line.trace.of("sent") if e.mote == 3 and e.time > 2 * ROUND_US]
    assert 0 < sum(attempts) <= 12  # those for which one slot has room
    assert line.came(FrameKind.EVENT) == []


def test_mote_stays_awake_only_for_frames_of_its_parent():
    quiet, told = Line(1.0), Line(1.0)
    for line in (quiet, told):
        line.kernel.run_until(ROUND_US * 3 // 2)
    told.tell(1, 0, 15_000)
    for line in (quiet, told):
        line.kernel.run_until(ROUND_US * 4 - 1)
    awake = {line: {n: mote.forwarder.account.awake_us for n, mote in line.motes.items()} for line in (quiet, told)}
    assert 100_000 < awake[told][1] - awake[quiet][1] < 250_000
    assert awake[told][2] == awake[quiet][2]
    assert max(awake[quiet].values()) < 0.02 * 4 * ROUND_US

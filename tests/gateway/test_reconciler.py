"""The reconciler brings a mote to its desired images although frames are lost, duplicated, late or forgotten."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.desired_state import DesiredState, ReportedState, is_up_to_date, plan_messages
from gateway.downlink import maintain, send_due
from gateway.errors import FrameError, LinkError
from gateway.frame import Frame, FrameKind
from gateway.image import BLOCK, Image
from gateway.link import Links
from gateway.mote_lifecycle import TRANSITIONS, MoteEvent, MoteState, next_state
from gateway.payload import (
    IMAGES,
    ClockMoved,
    ClocksDiffer,
    DroppedPartial,
    Hello,
    HelloReason,
    LostFrames,
    MissingBlocks,
    ReadingCounts,
    RefusedImage,
    encode_event,
    encode_hello,
)
from gateway.reconciler import MoteReconcilers
from gateway.transports.memory import connected_pair
from tests.gateway.world import MOTE, PACE, POLICY, REFUSED, Mote, World, perfect

SHORT, LONG = Image(1, b"schedule of one chunk"), Image(1, bytes(range(200)) + bytes(100))
DESIRED = DesiredState(SHORT, LONG)

contents = st.binary(min_size=1, max_size=400).map(lambda content: b"x" + content)
images = st.builds(Image, st.integers(1, 3), contents)  # few versions, so that two images have the same one
desires = st.builds(DesiredState, st.none() | images, st.none() | images)


def kinds(world, down=True):
    return [frame.kind for _, frame in world.sent if frame.down is down]


def test_images_are_sent_after_hello_program_first_then_nothing():
    world = World(perfect)
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    assert world.reconciler.state is MoteState.INSTALLED
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: LONG}
    sent = [kind for kind in kinds(world) if kind is not FrameKind.ACK]
    assert sent == [FrameKind.TIME, *[FrameKind.PROGRAM] * 5, FrameKind.SCHEDULE]
    world.mote.measure(b"first")
    world.run(2)
    assert world.reconciler.state is MoteState.RUNNING
    before = len(world.sent)
    world.run(40)
    assert [frame.kind for _, frame in world.sent[before:]] in ([], [FrameKind.TIME])  # nothing else is due


def test_time_is_sent_after_each_hello_and_periodically():
    world = World(perfect)
    world.run(150)
    times = [at for at, _ in world.mote.times]
    assert {later - earlier for earlier, later in pairwise(times)} == {PACE.time_ms}
    assert len(times) >= 3
    assert all(at - 1000 <= time <= at for at, time in world.mote.times)  # it was right when it was sent


@pytest.mark.promise("delivery")
def test_lost_chunk_is_requested_by_its_blocks():
    world = World(lambda frame: [] if frame.down and frame.seq == 3 and frame.kind is FrameKind.PROGRAM else [0])
    world.reconciler.set_desired(DESIRED, 0)
    world.run(60)
    assert is_up_to_date(world.reconciler.desired, world.reconciler.reported)
    first = [frame.seq for _, frame in world.sent if frame.kind is FrameKind.PROGRAM and frame.boot == 1]
    assert first.count(3) == world.policy.max_attempts
    assert len({seq for seq in first if seq > 3}) <= 3  # the next chunk, the gap, and perhaps one more


def test_rebooted_mote_gets_all_images_again():
    world = World(perfect)
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    world.reboot_mote()
    assert world.installed() == {FrameKind.SCHEDULE: None, FrameKind.PROGRAM: None}
    world.run(30)
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: LONG}


def test_mote_with_lost_hello_is_sent_a_request():
    world = World(lambda frame: [] if frame.kind is FrameKind.HELLO and not frame.down and frame.seq == 0 else [0])
    world.reconciler.set_desired(DESIRED, 0)
    world.run(40)
    world.reboot_mote()
    world.mote.link.withdraw(FrameKind.HELLO)  # as if it had been lost
    world.mote.measure(b"data of a boot without hello")
    world.sent.clear()
    world.run(40)
    assert kinds(world)[:2] == [FrameKind.ACK, FrameKind.HELLO]
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: LONG}


@pytest.mark.promise("reconciled")
def test_restarted_base_station_requests_hello_first():
    world = World(perfect)
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    world.restart_base()
    world.sent.clear()
    world.run(30)
    assert kinds(world)[0] is FrameKind.HELLO
    assert not {FrameKind.SCHEDULE, FrameKind.PROGRAM} & set(kinds(world))
    assert world.reconciler.state is MoteState.INSTALLED


def test_chunks_of_a_replaced_image_are_not_sent():
    deaf = [True]
    world = World(lambda frame: [] if deaf and frame.kind is FrameKind.PROGRAM else [0])
    world.reconciler.set_desired(DESIRED, 0)
    world.run(1)
    world.reconciler.set_desired(DesiredState(SHORT, SHORT), world.now)
    deaf.clear()
    world.run(30)
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: SHORT}
    assert kinds(world).count(FrameKind.PROGRAM) < 3


def test_refused_image_is_not_sent_again():
    world = World(perfect)
    world.reconciler.set_desired(DesiredState(SHORT, Image(2, REFUSED)), 0)
    world.run(300)
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: None}
    assert world.reconciler.reported.refused == {RefusedImage(FrameKind.PROGRAM, Image(2, REFUSED).stamp)}
    assert kinds(world).count(FrameKind.PROGRAM) == 1
    world.reconciler.set_desired(DesiredState(SHORT, LONG), world.now)
    world.run(30)
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: LONG}


def test_silent_mote_is_late_then_lost_then_found_again():
    deaf = []
    world = World(lambda frame: [] if deaf else [0])
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    world.mote.measure(b"data")
    world.run(2)
    deaf.append(True)
    world.reconciler.note_overdue(world.now)
    assert world.reconciler.state is MoteState.LATE
    world.run(PACE.silence_ms // 1000)
    assert world.reconciler.state is MoteState.LOST
    requests = kinds(world).count(FrameKind.HELLO)
    world.run(200)
    assert requests + 5 < kinds(world).count(FrameKind.HELLO) < requests + 40  # with growing pauses, without end
    deaf.clear()
    world.mote.measure(b"data")
    world.run(2)
    assert world.reconciler.state is MoteState.INSTALLED
    world.mote.measure(b"data")
    world.run(2)
    assert world.reconciler.state is MoteState.RUNNING


@pytest.mark.promise("delivery")
@pytest.mark.parametrize(("keeps", "found", "lost"), [(8, 1, 0), (0, 0, 1)])
def test_missing_frames_are_requested_then_resent_or_written_off(keeps, found, lost):
    """One mote still has the frame in its resend buffer; another has no buffer and reports the frame as lost."""
    deaf = []
    world = World(lambda frame: [] if deaf and frame.kind is FrameKind.READING else [0])
    world.mote.link.policy = replace(world.mote.link.policy, resend_capacity=keeps)
    world.run(3)
    deaf.append(True)
    world.mote.measure(b"given up")
    world.run(26)
    deaf.clear()
    world.mote.measure(b"there")
    world.run(60)
    assert world.reconciler.link.missing() == {}
    payloads = [frame.payload for frame in world.received if frame.kind is FrameKind.READING]
    assert (payloads.count(b"given up"), payloads.count(b"there"), world.reconciler.link.lost) == (found, 1, lost)


@pytest.mark.promise("ledger")
def test_duplicate_counters_of_motes_are_added_once():
    world = World(lambda frame: [0, 10])  # every frame arrives twice
    world.run(3)
    events = (
        ReadingCounts(0, 0, 60, 58, 3, 2, 1),
        ReadingCounts(1, 60, 7, 7, 0, 0, 0),
        ClockMoved(-5_000),
        DroppedPartial(4, 1, 27),
    )
    for event in events:
        world.mote.event(event)
        world.run(2)
    counts = {"sampled": 65, "filtered": 3, "merged": 2, "dropped": 1}
    assert world.reconciler.event_counts == {**counts, "clock moved": 1, "partials dropped": 1}


def test_mote_with_merged_data_is_not_lost():
    world = World(perfect)
    world.reconciler.note_alive(0)
    assert world.reconciler.state is MoteState.UNKNOWN  # data does not show the installed images
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    for _ in range(5):
        world.run(PACE.silence_ms // 2000)
        world.reconciler.note_alive(world.now)
        assert world.reconciler.state is MoteState.RUNNING
    world.run(PACE.silence_ms // 1000)
    assert world.reconciler.state is not MoteState.RUNNING


def test_sleeping_mote_is_sent_frames_only_after_it_transmits():
    world = World(perfect, listen_window_ms=500)
    world.reconciler.set_desired(DESIRED, 0)
    world.mote.link.withdraw(FrameKind.HELLO)
    world.run(20)
    assert kinds(world) == []
    world.mote.measure(b"I am awake")
    while world.now < 400_000 and not is_up_to_date(DESIRED, world.reconciler.reported):
        world.step(100)
        if world.now % 10_000 == 0:
            world.mote.measure(b"I am awake")
    assert world.installed() == {FrameKind.SCHEDULE: SHORT, FrameKind.PROGRAM: LONG}
    upward = [at for at, frame in world.sent if not frame.down]
    for at, frame in world.sent:
        if frame.down and frame.kind is not FrameKind.ACK:
            assert any(at - 600 <= transmitted <= at for transmitted in upward)


@pytest.mark.parametrize("kind", [FrameKind.HELLO, FrameKind.EVENT])
def test_invalid_payload_changes_nothing(kind):
    reconciler = World(perfect).reconciler
    with pytest.raises(FrameError):
        reconciler.receive(Frame(kind, MOTE, 1, 0, b"\xff"), 5)
    assert reconciler.reported == ReportedState()
    assert reconciler.state is MoteState.UNKNOWN


def test_late_old_hello_is_ignored():
    world = World(perfect)
    world.run(5)
    hello = next(frame for frame in world.received if frame.kind is FrameKind.HELLO)
    world.reconciler.set_desired(DESIRED, world.now)
    world.run(30)
    before = world.reconciler.reported
    world.reconciler.receive(hello, world.now)
    assert world.reconciler.reported is before


def test_lost_frames_event_writes_numbers_off():
    world = World(perfect)
    world.reconciler.receive(Frame(FrameKind.EVENT, MOTE, 1, 5, encode_event(LostFrames(1, ((0, 2), (4, 4))))), 0)
    assert world.reconciler.link.lost == 4


# --- the pure function -----------------------------------------------------------------------------------------------


@given(desires)
def test_no_message_is_planned_when_states_agree(desired):
    installed = {kind: image.stamp for kind in IMAGES if (image := desired.image(kind))}
    reported = ReportedState(1, 0, installed)
    assert is_up_to_date(desired, reported)
    assert plan_messages(desired, reported, MOTE) == []


@pytest.mark.promise("reconciled")
@given(desires, st.integers(7 + BLOCK, 200))
def test_planned_messages_bring_an_empty_mote_up_to_date(desired, room):
    """For any room in a frame, the messages together are the images."""
    world = World(perfect)
    for seq, message in enumerate(plan_messages(desired, ReportedState(1), MOTE, room)):
        assert len(message.payload) <= room
        world.mote.take(Frame(message.kind, MOTE, 1, seq, message.payload, down=True))
    assert {k: i for k, i in world.installed().items() if i} == {k: i for k in IMAGES if (i := desired.image(k))}


def test_missing_blocks_of_another_image_are_ignored():
    few = MissingBlocks(FrameKind.PROGRAM, Image(1, b"other").stamp, frozenset({1}))
    assert plan_messages(DESIRED, ReportedState(1, arriving={FrameKind.PROGRAM: few}), MOTE) == plan_messages(
        DESIRED, ReportedState(1), MOTE
    )


def test_unknown_mote_is_sent_only_a_hello_request():
    [message] = plan_messages(DESIRED, ReportedState(), MOTE)
    assert (message.kind, message.payload) == (FrameKind.HELLO, b"")


# --- chaotic radio channels -------------------------------------------------------------------------------------------


class Chaos:
    """Loses, duplicates and delays frames. When `fair`, every third frame of each direction arrives at once."""

    def __init__(self, random):
        self.random, self.fair, self.count = random, False, {True: 0, False: 0}

    def __call__(self, frame):
        if self.fair:
            self.count[frame.down] += 1
            return [0] if self.count[frame.down] % 3 == 0 else []
        copies = self.random.choice((0, 0, 1, 1, 2))
        return [self.random.choice((0, 0, 500, 3000, 20_000)) for _ in range(copies)]


@pytest.mark.promise("reconciled")
@given(st.lists(desires, min_size=1, max_size=4), st.integers(0, 2**32))
def test_chaotic_link_ends_with_whole_desired_images(states, seed):
    random = Random(seed)
    chaos = Chaos(random)
    world = World(chaos)
    ever = {(kind, image) for desired in states for kind in IMAGES if (image := desired.image(kind))}

    def step():
        world.step()
        for kind, image in world.installed().items():
            assert image is None or (kind, image) in ever  # an image as desired at some time, never a part of one

    for desired in states:
        world.reconciler.set_desired(desired, world.now)
        for _ in range(random.randrange(40)):
            step()
            if random.random() < 0.02:
                world.reboot_mote()
            if random.random() < 0.02:
                world.restart_base()
    chaos.fair = True
    desired = {kind: image for kind in IMAGES if (image := states[-1].image(kind))}
    for _ in range(1000):
        step()
        if is_up_to_date(states[-1], world.reconciler.reported) and desired.items() <= world.installed().items():
            break
    assert is_up_to_date(states[-1], world.reconciler.reported)
    assert desired.items() <= world.installed().items()
    assert {kind: image.stamp for kind, image in desired.items()}.items() <= world.reconciler.reported.installed.items()


# --- the table -------------------------------------------------------------------------------------------------------


def test_every_mote_state_is_reached_and_left():
    reached = {state for state, _ in TRANSITIONS.values()}
    assert reached == set(MoteState) == {state for state, _ in TRANSITIONS}
    assert {event for _, event in TRANSITIONS} == set(MoteEvent)


def test_impossible_mote_event_is_an_error():
    with pytest.raises(LinkError, match="DATA cannot happen to a mote that is IDENTIFIED"):
        next_state(MoteState.IDENTIFIED, MoteEvent.DATA)


@pytest.mark.promise("agenda")
def test_wrong_time_stamps_send_time_at_most_once_per_interval():
    world = World(perfect)
    world.reconciler.set_desired(DESIRED, 0)
    world.run(30)
    times = []
    for _ in range(5):
        world.reconciler.note_clock_wrong(world.now)
        times += [frame for frame in world.reconciler.run_timers(world.now) if frame.kind is FrameKind.TIME]
        world.now += PACE.clock_retry_ms // 2
    assert len(times) == 3


@pytest.mark.promise("agenda")
def test_clocks_differ_event_sends_time_to_both_known_motes():
    reconcilers = MoteReconcilers(Links(1, POLICY), lambda now: now.to_bytes(6, "little"), policy=PACE)
    reconcilers.set_desired(dict.fromkeys((MOTE, 8, 9), DesiredState()), 0)
    for mote in (MOTE, 8, 9):
        reconcilers.receive(
            [Frame(FrameKind.HELLO, mote, 1, 0, encode_hello(Hello(HelloReason.SWITCHED_ON, 1, 3000)))], 0
        )
    assert len(reconcilers.run_timers(0)) == 3
    for number, (now, other) in enumerate(
        ((1_000, 8), (PACE.clock_retry_ms, 8), (2 * PACE.clock_retry_ms, 10)), start=1
    ):
        reconcilers.receive([Frame(FrameKind.EVENT, MOTE, 1, number, encode_event(ClocksDiffer(other)))], now)
        sent = {frame.mote for frame in reconcilers.run_timers(now) if frame.kind is FrameKind.TIME}
        assert sent == (set(), {MOTE, 8}, {MOTE})[number - 1]
    assert 10 not in reconcilers.by_mote


def reconcilers_with(path):
    """Return reconcilers whose mote is, by the routing tree, at the end of `path`, but was received by the gateway itself."""
    reconcilers = MoteReconcilers(
        Links(1, POLICY), lambda now: now.to_bytes(6, "little"), {MOTE: path}.get, PACE, mtu=60
    )
    reconcilers.set_desired({MOTE: DESIRED}, 0)
    mote = Mote(1)
    mote.hello(HelloReason.SWITCHED_ON)
    [hello] = mote.link.due(0)
    reconcilers.receive([replace(hello, sender=MOTE, receiver=0)], 0)
    return reconcilers


def sent_sizes(reconcilers, begin, end):
    """Return the bytes sent in each of these seconds. Raises LinkError if a payload does not fit into a frame."""
    wire, other = connected_pair()
    wire.open()
    other.open()
    lengths = []
    for second in range(begin, end):
        maintain(reconcilers, wire, 1000 * second)
        send_due(reconcilers, wire, 1000 * second)
        lengths.append(len(other.receive()))
    return lengths


FAR = (0, 1, 2, 3, 4, 5, 6, MOTE)


@pytest.mark.promise("delivery")
def test_chunks_are_cut_for_the_path_of_each_attempt():
    """Without answers, attempts alternate between two paths, which have different room in a frame."""
    reconcilers = reconcilers_with(FAR)
    rooms = set()
    for second in range(300):
        sent_sizes(reconcilers, second, second + 1)
        rooms.add((reconcilers.room(MOTE), reconcilers.of(MOTE).link.longest_payload))
    assert {room for room, _ in rooms} == {27, 40}
    assert all(longest <= room for room, longest in rooms)


@pytest.mark.promise("delivery")
def test_queued_chunks_are_cut_again_for_a_longer_path():
    reconcilers = reconcilers_with((0, MOTE))
    sent_sizes(reconcilers, 0, 1)
    assert reconcilers.of(MOTE).link.longest_payload > 27
    reconcilers.paths = {MOTE: FAR}.get
    assert max(sent_sizes(reconcilers, 1, 300)) > 0


@pytest.mark.promise("delivery")
def test_gaps_beyond_the_room_of_a_path_are_requested_in_turn():
    reconcilers = reconcilers_with(FAR)
    mote = reconcilers.links.of(MOTE)
    for seq in range(2, 80, 2):
        mote.accept(Frame(FrameKind.READING, MOTE, 1, seq, b"", down=False))
    assert max(sent_sizes(reconcilers, 0, 60)) > 0

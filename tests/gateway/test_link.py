"""A link retransmits until acknowledged or given up, and recognizes duplicates and gaps."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import LinkError
from gateway.frame import Frame, FrameKind, Message
from gateway.link import TRANSITIONS, Link, LinkPolicy, Links, SendEvent, SendState, SequenceSet, make_ack, next_state
from gateway.payload import LostFrames

POLICY = LinkPolicy(timeout_ms=100, max_attempts=3, max_timeout_ms=300)


def link(boot=1):
    return Link(7, boot, down=True, policy=POLICY)


def message(payload=b"x", want_ack=True):
    return Message(FrameKind.PROGRAM, 7, payload, want_ack)


def test_one_frame_is_in_flight_at_a_time():
    ours = link()
    first, second = ours.post(message(b"1")), ours.post(message(b"2"))
    assert list(ours.due(0)) == [first]
    assert list(ours.due(99)) == []
    assert ours.take_ack(make_ack(first))
    assert list(ours.due(99)) == [second]
    assert ours.take_ack(make_ack(second))
    assert ours.idle


def test_unacknowledged_frame_is_resent_then_given_up():
    ours = link()
    lost, next_ = ours.post(message(b"lost")), ours.post(message(b"next"))
    sent = [(now, frame) for now in range(0, 800, 50) for frame in ours.due(now)]
    assert sent == [(0, lost), (100, lost), (300, lost), (600, next_), (700, next_)]
    assert ours.given_up == [lost]
    assert [*ours.due(899)] == []
    assert [*ours.due(900)] == [next_]


def test_timeout_grows_up_to_a_limit():
    assert [LinkPolicy(timeout_ms=10, max_timeout_ms=50).timeout_of(attempt) for attempt in range(1, 6)] == [
        10,
        20,
        40,
        50,
        50,
    ]


def test_nothing_is_sent_to_a_sleeping_peer():
    ours = Link(7, 1, down=True, policy=LinkPolicy(timeout_ms=100, max_attempts=3, listen_window_ms=50))
    frame = ours.post(message())
    assert list(ours.due(0)) == []
    ours.note_heard(10)
    assert list(ours.due(59)) == [frame]
    assert list(ours.due(1000)) == []  # it sleeps again; this is not an attempt
    ours.note_heard(1000)
    assert list(ours.due(1001)) == [frame]


def test_kept_frame_is_resent_on_request():
    ours = Link(7, 1, down=False, policy=LinkPolicy(timeout_ms=100, max_attempts=1, resend_capacity=2))
    frames = [ours.post(message(bytes([n]), want_ack=False)) for n in range(4)]
    waiting = ours.post(message(b"waiting"))
    assert list(ours.due(0)) == [*frames, waiting]
    assert ours.resend(1, ((0, 0), (2, 2), (4, 4))) == LostFrames(1, ((0, 0),))
    assert ours.take_ack(make_ack(waiting))
    assert list(ours.due(1)) == [frames[2]]
    assert ours.resend(2, ((0, 0),)) == LostFrames(2, ((0, 0),))  # the buffer has nothing of another boot


def test_withdrawn_frame_is_not_sent_and_its_ack_is_ignored():
    ours = link()
    frames = [ours.post(message()), ours.post(Message(FrameKind.SCHEDULE, 7, b"s"))]
    assert list(ours.due(0)) == frames[:1]
    ours.withdraw(FrameKind.PROGRAM)
    assert not ours.take_ack(make_ack(frames[0]))
    assert list(ours.due(0)) == frames[1:]


def test_written_off_frames_are_counted_once():
    ours = link()
    ours.accept(Frame(FrameKind.READING, 7, 1, 4))
    for _ in range(2):
        ours.write_off(LostFrames(1, ((0, 1), (3, 4))))
    assert (ours.missing(), ours.lost) == ({1: ((2, 2),)}, 3)


@pytest.mark.promise("delivery")
def test_written_off_frame_that_arrives_counts_as_arrived():
    ours = link()
    ours.accept(Frame(FrameKind.READING, 7, 1, 2))
    ours.write_off(LostFrames(1, ((0, 1),)))
    assert [ours.accept(Frame(FrameKind.READING, 7, 1, 1)) for _ in range(2)] == [True, False]
    assert (ours.missing(), ours.lost, ours.duplicates) == ({}, 1, 1)


def test_frame_without_ack_is_sent_once_and_does_not_block():
    ours = link()
    frames = [ours.post(message(want_ack=False)), ours.post(message())]
    assert list(ours.due(0)) == frames
    assert list(ours.due(1000)) == frames[1:]


def test_only_the_ack_of_the_frame_in_flight_counts():
    ours = link()
    frame = ours.post(message())
    assert not ours.take_ack(make_ack(frame))  # it was not sent yet
    list(ours.due(0))
    other = Frame(FrameKind.PROGRAM, 7, 1, frame.seq + 1, down=True)
    assert not ours.take_ack(make_ack(other))
    assert ours.take_ack(make_ack(frame))
    assert not ours.take_ack(make_ack(frame))  # a duplicate


def test_numbers_continue_in_the_next_boot():
    ours = link(boot=4)
    ours._next_seq = 0xFFFF
    assert [(f.boot, f.seq) for f in (ours.post(message()), ours.post(message()))] == [(4, 0xFFFF), (5, 0)]


@pytest.mark.promise("delivery")
def test_partials_leave_no_gaps_and_duplicates_are_found():
    ours = link()
    some = [
        Frame(FrameKind.EVENT, 7, 1, 0),
        Frame(FrameKind.PARTIAL, 7, 1, 0xFFFF),
        Frame(FrameKind.PARTIAL, 7, 1, 0xFFF0),
    ]
    assert all(map(ours.accept, some)) and not any(map(ours.accept, some))
    assert (ours.missing(), ours.last_received(1), ours.duplicates, ours.lost) == ({}, 0, 3, 0)
    assert ours.accept(Frame(FrameKind.EVENT, 7, 1, 2))
    assert (ours.missing(), ours.last_received(1)) == ({1: ((1, 1),)}, 2)


def test_duplicates_are_counted_for_each_boot():
    ours = link()
    frame = Frame(FrameKind.READING, 7, 1, 0)
    assert ours.accept(frame)
    assert not ours.accept(frame)
    assert ours.accept(Frame(FrameKind.READING, 7, 2, 0))
    assert ours.accept(Frame(FrameKind.READING, 7, 1, 3))  # a queued frame of an old boot may arrive late
    assert ours.duplicates == 1
    assert ours.missing() == {1: ((1, 2),)}
    assert [ours.last_received(boot) for boot in (1, 2, 3)] == [3, 0, -1]


def test_ack_repeats_the_number_in_the_other_direction():
    frame = Frame(FrameKind.READING, 7, 3, 9, b"payload")
    ack = make_ack(frame)
    assert (ack.kind, ack.identity, ack.down, ack.want_ack) == (FrameKind.ACK, frame.identity, True, False)


@given(st.lists(st.integers(0, 60)))
def test_sequence_set_matches_python_set(numbers):
    found, seen = SequenceSet(), set()
    for number in numbers:
        assert found.add(number) == (number not in seen)
        seen.add(number)
    missing = {n for first, last in found.missing() for n in range(first, last + 1)}
    assert missing == set(range(max(seen, default=-1) + 1)) - seen
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(found.missing()))


RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)))


@given(RANGES, st.integers(0, 70), st.integers(0, 70), st.integers(0, 70))
def test_sequence_set_matches_python_set_for_ranges(ranges, first, last, below):
    found, seen = SequenceSet(), set()
    for begin, length in ranges:
        some = set(range(begin, begin + length + 1))
        assert found.fill(begin, begin + length) == len(some - seen)
        seen |= some
    assert {n for pair in found.ranges() for n in range(pair[0], pair[1] + 1)} == seen
    assert found.pieces == sum(n - 1 not in seen for n in seen)
    assert found.count(first, last) == sum(first <= n <= last for n in seen)
    found.forget(below)
    assert {n for pair in found.ranges() for n in range(pair[0], pair[1] + 1)} == {n for n in seen if n >= below}


def test_impossible_send_event_is_an_error():
    possible = set(TRANSITIONS)
    for pair in itertools.product(SendState, SendEvent):
        if pair not in possible:
            with pytest.raises(LinkError, match=pair[1].name):
                next_state(*pair)


def test_link_is_made_on_first_use():
    links = Links(boot=2)
    assert links.of(7) is links.of(7)
    assert links.of(7) is not links.of(8)
    assert (links.of(7).boot, links.of(7).down) == (2, True)


@pytest.mark.promise("delivery")
@given(st.data())
def test_lossy_link_delivers_each_message_once_or_gives_it_up(data):
    """Two links, and Hypothesis decides which frames are lost: each posted frame is received once, or given up."""
    base, mote = link(), Link(7, 1, down=False, policy=POLICY)
    posted = [base.post(message(bytes([n]))) for n in range(data.draw(st.integers(1, 5)))]
    received = []
    for now in range(0, 600 * len(posted) + 1, 100):
        for frame in base.due(now):
            if data.draw(st.booleans()):
                if mote.accept(frame):
                    received.append(frame)
                if data.draw(st.booleans()):
                    base.take_ack(make_ack(frame))
    assert base.idle
    assert len(set(received)) == len(received)
    assert set(received) | set(base.given_up) == set(posted)

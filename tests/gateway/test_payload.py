"""HELLO, ACK with gaps and EVENT round-trip; other payloads are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import FrameError
from gateway.frame import MAX_PAYLOAD, FrameKind
from gateway.gap_requests import GapRequests, make_selective_ack
from gateway.image import Stamp
from gateway.payload import (
    IMAGES,
    MAX_GAPS,
    MAX_SENSORS,
    ClockMoved,
    ClocksDiffer,
    DroppedPartial,
    Hello,
    HelloReason,
    LostFrames,
    MissingBlocks,
    ReadingCounts,
    RefusedImage,
    SelectiveAck,
    annotate_event,
    annotate_hello,
    annotate_selective_ack,
    decode_event,
    decode_hello,
    decode_selective_ack,
    encode_event,
    encode_hello,
    encode_selective_ack,
)
from tests.gateway.strategies import words

bytes_ = st.integers(0, 255)
stamps = st.builds(Stamp, words, words)
hellos = st.builds(
    Hello, st.sampled_from(HelloReason), words, words, stamps, stamps, st.none() | st.integers(0, 2**48 - 2),
    st.lists(words, max_size=MAX_SENSORS).map(tuple),
)  # fmt: skip
gaps = st.lists(words, max_size=2 * MAX_GAPS, unique=True).map(
    lambda ends: tuple(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
)
kinds = st.sampled_from(IMAGES)
events = st.one_of(
    st.builds(MissingBlocks, kinds, stamps, st.frozensets(bytes_)),
    st.builds(RefusedImage, kinds, stamps),
    st.builds(LostFrames, words, gaps),
    st.builds(ReadingCounts, bytes_, st.integers(0, 2**32 - 1), words, words, words, words, words),
    st.builds(ClockMoved, st.integers(-(2**47), 2**47 - 1)),
    st.builds(DroppedPartial, words, words, words),
    st.builds(ClocksDiffer, words),
)


@given(hellos)
def test_hello_round_trips(hello):
    payload = encode_hello(hello)
    assert len(payload) <= MAX_PAYLOAD
    assert decode_hello(payload) == hello
    assert sum(size for size, _ in annotate_hello(hello)) == len(payload)


@given(events)
def test_event_round_trips(event):
    payload = encode_event(event)
    assert len(payload) <= MAX_PAYLOAD
    assert decode_event(payload) == event
    assert sum(size for size, _ in annotate_event(event)) == len(payload)


@given(gaps)
def test_gaps_round_trip(found):
    payload = encode_selective_ack(SelectiveAck(found))
    assert len(payload) <= MAX_PAYLOAD
    assert decode_selective_ack(payload) == SelectiveAck(found)
    assert sum(size for size, _ in annotate_selective_ack(SelectiveAck(found))) == len(payload)


@pytest.mark.promise("frames")
@pytest.mark.parametrize(
    ("decode", "encode"),
    [(decode_hello, encode_hello), (decode_event, encode_event), (decode_selective_ack, encode_selective_ack)],
)
@given(st.data())
def test_random_payload_round_trips_or_is_refused(decode, encode, data):
    """The invariant: the decoded payload encodes to the same bytes, or the decoder raises FrameError."""
    payload = data.draw(st.binary(max_size=40) | st.builds(lambda head, tail: bytes([head]) + tail,
                                                           st.integers(0, 6), st.binary(max_size=24)))  # fmt: skip
    try:
        found = decode(payload)
    except FrameError as error:
        assert error.code == "payload"
        return
    assert encode(found) == payload


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"\x00", b"\x06", b"\x01\x04" + bytes(4), b"\x01\x03" + bytes(5), b"\x02\x03" + bytes(5), b"\x03\x01\x00",
        b"\x03\x01\x00\x01\x05\x00\x04\x00", b"\x03\x01\x00\x02" + b"\x05\x00\x06\x00" * 2, b"\x05" + bytes(5),
    ],
)  # fmt: skip
def test_invalid_event_is_refused(payload):
    with pytest.raises(FrameError, match=r"not an EVENT|ascending|gaps"):
        decode_event(payload)


def test_gaps_are_requested_with_growing_pauses_up_to_a_limit():
    requests, requested = GapRequests(patience_ms=10, times=3), []
    for now in range(0, 500, 5):
        requested += [(now, gap) for gap in requests.due({1: ((3, 4),)}, now)]
    assert requested == [(10, (1, ((3, 4),))), (30, (1, ((3, 4),))), (70, (1, ((3, 4),)))]
    assert list(requests.due({1: ((3, 3),)}, 500)) == []  # another gap is another request
    assert list(requests.due({1: ((3, 3),)}, 510)) == [(1, ((3, 3),))]
    assert list(requests.due({}, 520)) == []
    assert list(requests.due({1: ((3, 3),)}, 530)) == []


def test_selective_ack_ends_before_the_first_gap_left_out():
    many = tuple((n, n) for n in range(0, 100, 2))
    frame = make_selective_ack(7, 1, 200, many)
    assert (frame.kind, frame.down, frame.want_ack, frame.seq) == (FrameKind.ACK, True, False, many[MAX_GAPS][0] - 1)
    assert decode_selective_ack(frame.payload).gaps == many[:MAX_GAPS]
    assert make_selective_ack(7, 1, 200, many[:3]).seq == 200
    assert decode_selective_ack(encode_selective_ack(SelectiveAck(many))).gaps == many[:MAX_GAPS]  # the oldest ones

"""Any bytes give frames or FrameErrors and nothing else, however they are cut; and what was encoded comes back."""

import pytest
from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from gateway import framing
from gateway.codec import NEED_DATA, FrameDecoder, decode, encode, encode_stream
from gateway.errors import FrameError, LinkError
from gateway.frame import HEADER_SIZE, MAX_FRAME, MAX_PAYLOAD, Frame, Kind
from tests.gateway.strategies import frames


def drain(decoder):
    events = []
    while (event := decoder.next_event()) is not NEED_DATA:
        events.append(event)
    return events


def tell(event):
    return (FrameError, event.code) if isinstance(event, FrameError) else event


def three_ways(stream):
    """The events of a stream; checked to be the same whole, byte by byte, and with the start of more behind it."""
    whole = FrameDecoder()
    whole.receive_bytes(stream)
    expected = [tell(event) for event in drain(whole)]
    single = FrameDecoder()
    found = []
    for at in range(len(stream)):
        single.receive_bytes(stream[at : at + 1])
        found += [tell(event) for event in drain(single)]
    assert found == expected
    assert single.trailing == whole.trailing
    trailing = FrameDecoder()
    trailing.receive_bytes(stream + b"\x00\x05more")
    more = [tell(event) for event in drain(trailing)]
    assert more[: len(expected)] == expected
    assert trailing.trailing == b"\x05more"
    return expected


@given(st.lists(frames, max_size=5))
def test_frames_survive_a_stream(sent):
    assert three_ways(b"".join(encode_stream(frame) for frame in sent)) == sent


@given(frames)
def test_a_frame_survives_a_message(frame):
    assert decode(encode(frame)) == frame


def test_the_header_is_small_and_leaves_room_for_a_seal():
    assert HEADER_SIZE <= 12
    largest = Frame(Kind.READING, 1, 2, 3, bytes(MAX_PAYLOAD), seal=bytes(8))
    assert len(encode(largest)) == MAX_FRAME


@given(st.binary(max_size=300))
def test_fuzz_streams(noise):
    events = three_ways(noise)
    assert all(isinstance(event, Frame) or event[0] is FrameError for event in events)


@given(st.binary(max_size=150))
def test_fuzz_messages(noise):
    """The invariant: a frame that encodes to the very bytes it came from, or FrameError."""
    try:
        frame = decode(noise)
    except FrameError:
        return
    assert encode(frame) == noise


@given(frames, st.data())
def test_one_flipped_bit_is_always_found(frame, data):
    """Before stuffing, where the checksum promises it; on the stuffed stream damage may look like anything."""
    message = encode(frame)
    content = bytearray(message + framing.checksum(message))
    at = data.draw(st.integers(0, len(content) * 8 - 1))
    content[at // 8] ^= 1 << at % 8
    with pytest.raises(FrameError) as caught:
        framing.unstuff(cobs.encode(bytes(content)))
    assert caught.value.code == "checksum"


@given(st.binary(max_size=200).filter(lambda noise: b"\x00" not in noise), frames)
def test_a_good_frame_after_noise_is_found(noise, frame):
    assert three_ways(noise + b"\x00" + encode_stream(frame))[-1] == frame


def test_noise_without_an_end_does_not_fill_the_memory():
    decoder = FrameDecoder()
    for _ in range(1000):
        decoder.receive_bytes(b"\x01" * 100)
        assert len(decoder.trailing) <= FrameDecoder.LIMIT
    decoder.receive_bytes(b"\x00")
    assert [event.code for event in drain(decoder)] == ["long"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (bytes(7), "short"),
        (bytes.fromhex("14 00 0300 0100 0000") + bytes(95), "long"),
        (bytes.fromhex("14 00 0300 0100 0000") + bytes(87), "long"),
        (bytes.fromhex("24 00 0300 0100 0000"), "version"),
        (bytes.fromhex("10 00 0300 0100 0000"), "kind"),
        (bytes.fromhex("1a 00 0300 0100 0000"), "kind"),
        (bytes.fromhex("14 08 0300 0100 0000"), "flags"),
        (bytes.fromhex("14 01 0300 0100 0000 00"), "short"),
    ],
)
def test_what_is_refused(message, code):
    with pytest.raises(FrameError) as caught:
        decode(message)
    assert caught.value.code == code
    assert caught.value.raw == message


@pytest.mark.parametrize(
    ("stuffed", "code"), [(b"\x05a", "stuffing"), (b"\x03ab", "short"), (b"\x05abcd", "checksum")]
)
def test_what_framing_refuses(stuffed, code):
    with pytest.raises(FrameError) as caught:
        framing.unstuff(stuffed)
    assert caught.value.code == code


def test_the_checksum_is_the_standard_one():
    assert framing.checksum(b"123456789") == (0x31C3).to_bytes(2, "little")  # CRC-16/XMODEM's check value


@given(st.binary(min_size=1, max_size=MAX_FRAME))
def test_stuffing_takes_zeros_out_and_no_more_room_than_said(frame):
    stuffed = framing.stuff(frame)
    assert stuffed.index(0) == len(stuffed) - 1 <= framing.stuffed_size(len(frame))
    assert framing.unstuff(stuffed[:-1]) == frame


@pytest.mark.parametrize("wrong", [{"mote": 65536}, {"seq": -1}, {"payload": bytes(MAX_PAYLOAD + 1)}, {"seal": b"12"}])
def test_frames_that_cannot_be(wrong):
    with pytest.raises(LinkError):
        Frame(**{"kind": Kind.READING, "mote": 1, "boot": 1, "seq": 1, **wrong})

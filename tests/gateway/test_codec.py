"""The codec: any bytes, cut anywhere, give frames or FrameErrors, and an encoded frame decodes to itself."""

from dataclasses import replace

import pytest
from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from gateway import framing
from gateway.codec import FrameDecoder, decode, encode, encode_stream
from gateway.errors import FrameError, LinkError
from gateway.frame import COORDINATOR, HEADER_SIZE, MAX_FRAME, MAX_PAYLOAD, Frame, FrameKind, payload_room
from tests.gateway.strategies import frames


def drain(decoder):
    return list(decoder.events())


def comparable(event):
    return (FrameError, event.code) if isinstance(event, FrameError) else event


def three_ways(stream):
    """Return the events of a stream, the same as a whole, byte by byte, and with more bytes behind it."""
    whole = FrameDecoder()
    whole.receive_bytes(stream)
    expected = [comparable(event) for event in drain(whole)]
    single = FrameDecoder()
    found = []
    for at in range(len(stream)):
        single.receive_bytes(stream[at : at + 1])
        found += [comparable(event) for event in drain(single)]
    assert found == expected
    assert single._unfinished == whole._unfinished
    trailing = FrameDecoder()
    trailing.receive_bytes(stream + b"\x00\x05more")
    more = [comparable(event) for event in drain(trailing)]
    assert more[: len(expected)] == expected
    assert trailing._unfinished == b"\x05more"
    return expected


@pytest.mark.promise("frames")
@given(st.lists(frames, max_size=5))
def test_frames_round_trip_on_a_stream(sent):
    assert three_ways(b"".join(encode_stream(frame) for frame in sent)) == sent


@given(frames)
def test_frame_round_trips_as_a_message(frame):
    assert decode(encode(frame)) == frame


@pytest.mark.promise("frames")
def test_largest_frame_has_room_for_a_seal():
    assert HEADER_SIZE <= 12
    largest = Frame(FrameKind.READING, 1, 2, 3, bytes(MAX_PAYLOAD), seal=bytes(8))
    assert len(encode(largest)) == MAX_FRAME


@pytest.mark.promise("frames")
@given(st.binary(max_size=300))
def test_random_stream_gives_frames_or_errors(noise):
    events = three_ways(noise)
    assert all(isinstance(event, Frame) or event[0] is FrameError for event in events)


@pytest.mark.promise("frames")
@given(st.binary(max_size=150))
def test_random_message_round_trips_or_is_refused(noise):
    """The invariant: the decoded frame encodes to the same bytes, or the decoder raises FrameError."""
    try:
        frame = decode(noise)
    except FrameError:
        return
    assert encode(frame) == noise


@pytest.mark.promise("frames")
@given(frames, st.data())
def test_flipped_bit_is_always_detected(frame, data):
    """Before stuffing, where the checksum guarantees it; damage of stuffed bytes may look like any frame."""
    message = encode(frame)
    content = bytearray(message + framing.checksum(message))
    at = data.draw(st.integers(0, len(content) * 8 - 1))
    content[at // 8] ^= 1 << at % 8
    with pytest.raises(FrameError) as caught:
        framing.unstuff(cobs.encode(bytes(content)))
    assert caught.value.code == "checksum"


@pytest.mark.promise("frames")
@given(st.binary(max_size=200).filter(lambda noise: b"\x00" not in noise), frames)
def test_valid_frame_after_noise_is_found(noise, frame):
    assert three_ways(noise + b"\x00" + encode_stream(frame))[-1] == frame


def test_noise_without_delimiter_does_not_fill_memory():
    decoder = FrameDecoder()
    for _ in range(1000):
        decoder.receive_bytes(b"\x01" * 100)
        assert len(decoder._unfinished) <= decoder.limit
    decoder.receive_bytes(b"\x00")
    assert [event.code for event in drain(decoder)] == ["long"]


HEAD = "24 00 0300 0100 0000 0300 0000"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (bytes(11), "short"),
        (bytes.fromhex(HEAD) + bytes(91), "long"),
        (bytes.fromhex(HEAD) + bytes(83), "long"),
        (bytes.fromhex("1" + HEAD[1:]), "version"),
        (bytes.fromhex("20" + HEAD[2:]), "kind"),
        (bytes.fromhex("2a" + HEAD[2:]), "kind"),
        (bytes.fromhex(HEAD.replace("24 00", "24 40")), "flags"),
        (bytes.fromhex(HEAD.replace("24 00", "24 22")), "flags"),
        (bytes.fromhex(HEAD.replace("24 00", "24 12")), "flags"),
        (bytes.fromhex(HEAD.replace("24 00", "27 12") + "00"), "flags"),
        (bytes.fromhex(HEAD.replace("24 00", "24 01") + "00"), "short"),
        (bytes.fromhex(HEAD.replace("24 00", "24 08")), "route"),
        (bytes.fromhex(HEAD.replace("24 00", "24 08") + "00"), "route"),
        (bytes.fromhex(HEAD.replace("24 00", "24 08") + "02 0100 02"), "route"),
        (bytes.fromhex(HEAD.replace("24 00", "24 08") + "11" + 17 * "0100"), "route"),
    ],
)
def test_invalid_message_is_refused_with_its_code(message, code):
    with pytest.raises(FrameError) as caught:
        decode(message)
    assert caught.value.code == code
    assert caught.value.raw == message


@pytest.mark.parametrize(("stuffed", "code"), [(b"\x05a", "stuffing"), (b"\x03ab", "short"), (b"\x05abcd", "checksum")])
def test_damaged_stuffing_is_refused(stuffed, code):
    with pytest.raises(FrameError) as caught:
        framing.unstuff(stuffed)
    assert caught.value.code == code


def test_checksum_is_crc16_xmodem():
    assert framing.checksum(b"123456789") == (0x31C3).to_bytes(2, "little")  # CRC-16/XMODEM's check value


@given(st.binary(min_size=1, max_size=MAX_FRAME))
def test_stuffed_frame_has_no_zeros_and_fits_stuffed_size(frame):
    stuffed = framing.stuff(frame)
    assert stuffed.index(0) == len(stuffed) - 1 <= framing.stuffed_size(len(frame))
    assert framing.unstuff(stuffed[:-1]) == frame


WRONG = [
    {"mote": 65536}, {"seq": -1}, {"payload": bytes(2029)}, {"seal": b"12"}, {"route": (1,) * 17}, {"route": (65536,)},
    {"pending": True, "down": True}, {"pending": True, "down": True, "kind": FrameKind.ACK, "payload": b"0"}, {"sender": -1}, {"receiver": 65536},
    {"repeated": True, "down": True},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_frame_fields_are_refused(wrong):
    with pytest.raises(LinkError):
        Frame(**{"kind": FrameKind.READING, "mote": 1, "boot": 1, "seq": 1, **wrong})


@pytest.mark.promise("frames")
@pytest.mark.parametrize(("mtu", "room"), [(64, 44), (102, 82), (244, 224), (2048, 2028)])
def test_larger_mtu_carries_larger_payload(mtu, room):
    largest = Frame(FrameKind.PROGRAM, 1, 2, 3, bytes(room), down=True, seal=bytes(8))
    message = encode(largest, mtu)
    assert (len(message), decode(message, mtu)) == (mtu, largest)
    with pytest.raises(LinkError, match=r"fits? on no link|does not fit"):
        encode(replace(largest, payload=bytes(room + 1)), mtu)
    with pytest.raises(FrameError):
        decode(message, mtu - 1)
    decoder = FrameDecoder(mtu)
    decoder.receive_bytes(encode_stream(largest, mtu))
    assert drain(decoder) == [largest]


@pytest.mark.parametrize("mtu", [20, 2049])
def test_mtu_out_of_range_is_refused(mtu):
    with pytest.raises(LinkError, match="expected frames of 21 to 2048 bytes"):
        payload_room(mtu)


def test_default_hop_is_between_mote_and_base_station():
    up, down = Frame(FrameKind.READING, 7, 1, 1), Frame(FrameKind.PROGRAM, 7, 1, 1, down=True)
    assert (up.sender, up.receiver, down.sender, down.receiver) == (7, COORDINATOR, COORDINATOR, 7)

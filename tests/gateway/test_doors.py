"""The gateway's two doors over a memory link: duplicates stay out and are answered, noise is counted."""

import pytest

from gateway import downlink, uplink
from gateway.codec import NEED_DATA, FrameDecoder, encode_stream
from gateway.errors import TransportError
from gateway.frame import Frame, Kind, Message
from gateway.link import Links, Policy
from gateway.transports.memory import pair


@pytest.fixture
def ends():
    ours, theirs = pair()
    ours.open()
    theirs.open()
    return ours, theirs


def frames_in(data):
    decoder = FrameDecoder()
    decoder.receive_bytes(data)
    found = []
    while (event := decoder.next_event()) is not NEED_DATA:
        found.append(event)
    return found


def test_up(ends):
    ours, theirs = ends
    links, decoder = Links(boot=1), FrameDecoder()
    reading = Frame(Kind.READING, 3, 1, 0, b"temp")
    quiet = Frame(Kind.EVENT, 3, 1, 1, want_ack=False)
    theirs.send(encode_stream(reading) + b"noise\x00" + encode_stream(quiet))
    first = uplink.rise(ours.receive(), decoder, links)
    assert first.frames == (reading, quiet)
    assert [(ack.kind, ack.identity) for ack in first.answers] == [(Kind.ACK, reading.identity)]
    assert [error.code for error in first.errors] == ["stuffing"]
    theirs.send(encode_stream(reading))
    again = uplink.rise(ours.receive(), decoder, links)
    assert again.frames == ()
    assert again.answers == first.answers  # the first answer may have been lost
    assert links.of(3).duplicates == 1


def test_a_downward_frame_from_below_is_an_error(ends):
    ours, theirs = ends
    theirs.send(encode_stream(Frame(Kind.SCHEDULE, 3, 1, 0, down=True)))
    arrivals = uplink.rise(ours.receive(), FrameDecoder(), Links(boot=1))
    assert arrivals.frames == arrivals.answers == ()
    assert [error.code for error in arrivals.errors] == ["direction"]


def test_down_until_acknowledged(ends):
    ours, theirs = ends
    links = Links(boot=5, policy=Policy(timeout_ms=100))
    posted = downlink.post([Message(Kind.PROGRAM, 3, b"p"), Message(Kind.SCHEDULE, 4, b"s")], links)
    assert downlink.descend(links, ours, 0) == posted
    assert frames_in(theirs.receive()) == posted
    theirs.send(encode_stream(Frame(Kind.ACK, 3, 5, 0, want_ack=False)))
    assert uplink.rise(ours.receive(), FrameDecoder(), links).frames == ()
    assert downlink.descend(links, ours, 100) == posted[1:]


def test_answers_go_down(ends):
    ours, theirs = ends
    ack = Frame(Kind.ACK, 3, 1, 0, down=True, want_ack=False)
    downlink.answer([ack], ours)
    assert frames_in(theirs.receive()) == [ack]


def test_a_memory_link_tells_its_peer_and_ends_when_closed(ends):
    ours, theirs = ends
    heard = []
    theirs.on_data = lambda: heard.append(theirs.receive())
    ours.send(b"ab")
    ours.send(b"c")
    assert heard == [b"ab", b"c"]
    theirs.close()
    theirs.close()
    with pytest.raises(TransportError):
        ours.send(b"d")
    with pytest.raises(TransportError):
        theirs.receive()

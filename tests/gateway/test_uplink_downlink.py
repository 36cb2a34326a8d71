"""Uplink and downlink over a memory transport: duplicates are separated and acknowledged, noise is counted."""

import pytest

from gateway import downlink, uplink
from gateway.codec import FrameDecoder, encode_stream
from gateway.desired_state import DesiredState
from gateway.errors import TransportError
from gateway.frame import MAX_FRAME, Frame, FrameKind
from gateway.image import Image
from gateway.link import LinkPolicy, Links
from gateway.payload import Hello, HelloReason, encode_hello
from gateway.reconciler import MoteReconcilers
from gateway.transports.memory import connected_pair


@pytest.fixture
def ends():
    ours, theirs = connected_pair()
    ours.open()
    theirs.open()
    return ours, theirs


def frames_in(data, mtu=MAX_FRAME):
    decoder = FrameDecoder(mtu)
    decoder.receive_bytes(data)
    found = []
    for event in decoder.events():
        found.append(event)
    return found


def test_uplink_separates_frames_acks_duplicates_and_errors(ends):
    ours, theirs = ends
    links, decoder = Links(boot=1), FrameDecoder()
    reading = Frame(FrameKind.READING, 3, 1, 0, b"temp")
    quiet = Frame(FrameKind.EVENT, 3, 1, 1, want_ack=False)
    theirs.send(encode_stream(reading) + b"noise\x00" + encode_stream(quiet))
    first = uplink.receive(ours.receive(), decoder, links)
    assert first.frames == (reading, quiet)
    assert [(ack.kind, ack.identity) for ack in first.acks] == [(FrameKind.ACK, reading.identity)]
    assert [error.code for error in first.errors] == ["stuffing"]
    theirs.send(encode_stream(reading))
    again = uplink.receive(ours.receive(), decoder, links)
    assert again.frames == ()
    assert again.acks == first.acks  # the first acknowledgement may have been lost
    assert links.of(3).duplicates == 1


def test_downward_frame_from_the_motes_is_an_error(ends):
    ours, theirs = ends
    theirs.send(encode_stream(Frame(FrameKind.SCHEDULE, 3, 1, 0, down=True)))
    arrivals = uplink.receive(ours.receive(), FrameDecoder(), Links(boot=1))
    assert arrivals.frames == arrivals.acks == ()
    assert [error.code for error in arrivals.errors] == ["direction"]


def test_images_are_sent_until_the_mote_reports_them(ends):
    """Images are sent after the mote's HELLO, and again until they are acknowledged."""
    ours, theirs = ends
    links = Links(boot=5, policy=LinkPolicy(timeout_ms=100))
    reconcilers = MoteReconcilers(links, lambda ms: ms.to_bytes(6, "little"))
    downlink.set_desired({3: DesiredState(program=Image(1, b"p"))}, reconcilers, 0)

    def sent_kinds(now):
        downlink.maintain(reconcilers, ours, now)
        downlink.send_due(reconcilers, ours, now)
        return [frame.kind for frame in frames_in(theirs.receive())]

    assert sent_kinds(0) == [FrameKind.HELLO]
    assert reconcilers.up_to_date_motes() == frozenset()
    hello = encode_hello(Hello(HelloReason.ASKED, 1, 3000))
    theirs.send(
        encode_stream(Frame(FrameKind.HELLO, 3, 1, 0, hello)) + encode_stream(Frame(FrameKind.EVENT, 3, 1, 1, b"?"))
    )
    arrivals = uplink.receive(ours.receive(), FrameDecoder(), links)
    assert [error.code for error in reconcilers.receive(arrivals.frames, 10)] == ["payload"]
    assert sent_kinds(10) == [FrameKind.TIME, FrameKind.PROGRAM]
    assert sent_kinds(110) == [FrameKind.PROGRAM]
    theirs.send(encode_stream(Frame(FrameKind.ACK, 3, 5, 1, want_ack=False)))
    assert uplink.receive(ours.receive(), FrameDecoder(), links).frames == ()
    assert sent_kinds(1000) == []
    has = encode_hello(Hello(HelloReason.INSTALLED, 1, 3000, program=Image(1, b"p").stamp))
    theirs.send(encode_stream(Frame(FrameKind.HELLO, 3, 1, 2, has)))
    assert reconcilers.receive(uplink.receive(ours.receive(), FrameDecoder(), links).frames, 1000) == []
    assert reconcilers.up_to_date_motes() == {3}


@pytest.mark.parametrize(("mtu", "blocks"), [(102, 3), (255, 12)])
def test_chunks_fill_the_frames_of_their_path(ends, mtu, blocks):
    """The chunks fill the frames of the path, and each frame carries the path."""
    ours, theirs = ends
    links, image = Links(boot=5), Image(1, bytes(300))
    reconcilers = MoteReconcilers(links, lambda ms: b"", paths=lambda mote: tuple(range(12)), mtu=mtu)
    downlink.set_desired({11: DesiredState(program=image)}, reconcilers, 0)
    hello = Frame(FrameKind.HELLO, 11, 1, 0, encode_hello(Hello(HelloReason.SWITCHED_ON, 1, 3000)), sender=1)
    assert reconcilers.receive([hello], 0) == []
    downlink.maintain(reconcilers, ours, 0)
    downlink.send_due(reconcilers, ours, 0)
    time, chunk = frames_in(theirs.receive(), mtu)
    assert (time.kind, chunk.kind) == (FrameKind.TIME, FrameKind.PROGRAM)
    assert (time.route, chunk.sender, chunk.receiver, chunk.route) == (chunk.route, 0, 1, tuple(range(2, 12)))
    assert len(chunk.payload) == 7 + blocks * 16


def test_mote_without_route_is_reached_by_its_last_path():
    reconcilers = MoteReconcilers(Links(boot=5), lambda ms: b"")
    assert reconcilers.path_to(3) == (0, 3)
    reconcilers.receive([Frame(FrameKind.READING, 3, 1, 0, sender=8)], 0)
    assert reconcilers.path_to(3) == (0, 8)
    sent = Frame(FrameKind.TIME, 3, 5, 0, down=True).along(reconcilers.path_to(3))
    assert (sent.mote, sent.receiver, sent.route) == (3, 8, ())


@pytest.mark.parametrize("length", [0, 1, 2, 3, 18, 30])
def test_frame_takes_a_path_of_any_length(length):
    path = tuple(range(40, 40 + length))
    frame = Frame(FrameKind.HELLO, 39 + length, 1, 0, down=True)
    sent = frame.along(path)
    assert sent.identity == frame.identity
    if length < 2:
        assert sent is frame
    else:
        assert (sent.sender, sent.receiver, *sent.route) == path[:18]
        assert len(encode_stream(sent)) > 12


def test_acks_are_sent_on_the_transport(ends):
    ours, theirs = ends
    ack = Frame(FrameKind.ACK, 3, 1, 0, down=True, want_ack=False)
    downlink.send_acks([ack], ours)
    assert frames_in(theirs.receive()) == [ack]


def test_memory_transport_notifies_its_peer_until_closed(ends):
    ours, theirs = ends
    received = []
    theirs.on_data = lambda: received.append(theirs.receive())
    ours.send(b"ab")
    ours.send(b"c")
    assert received == [b"ab", b"c"]
    theirs.close()
    theirs.close()
    with pytest.raises(TransportError):
        ours.send(b"d")
    with pytest.raises(TransportError):
        theirs.receive()

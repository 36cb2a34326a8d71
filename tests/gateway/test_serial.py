"""A serial line: bytes pass both ways, and a line that goes away is an error that heals."""

import os
import pty
import tty

import pytest

from gateway.codec import FrameDecoder, encode_stream
from gateway.errors import TransportError
from gateway.frame import Frame, FrameKind, MoteId
from gateway.log import configure_logging
from gateway.transports.serial import SerialTransport


@pytest.fixture
def line():
    """(the transport, the file descriptor at the other end)."""
    other, device = pty.openpty()
    tty.setraw(device)
    transport = SerialTransport(os.ttyname(device))
    transport.open()
    yield transport, other
    transport.close()
    os.close(other)
    os.close(device)


def test_frames_pass_both_ways(line, rng):
    transport, other = line
    frames = [Frame(FrameKind.READING, MoteId(7), 1, seq, rng.randbytes(rng.randrange(60))) for seq in range(50)]
    stream = b"".join(map(encode_stream, frames))
    decoder, found = FrameDecoder(), []
    while stream or len(found) < len(frames):
        cut = rng.randrange(1, 200)
        os.write(other, stream[:cut])
        stream = stream[cut:]
        decoder.receive_bytes(transport.receive())
        found += decoder.events()
    assert found == frames
    transport.send(b"down \x00\xff")
    sent = b""
    while len(sent) < 7:  # a terminal passes on what was written in its own time
        sent += os.read(other, 100)
    assert sent == b"down \x00\xff"
    assert transport.receive() == b""


def test_missing_device_is_a_transport_error():
    with pytest.raises(TransportError, match="/dev/there-is-none cannot be opened"):
        SerialTransport("/dev/there-is-none").open()


def test_closed_line_opens_again_by_itself(line):
    transport, other = line
    transport.close()
    transport.close()
    os.write(other, b"again")
    assert b"again".startswith(transport.receive()[:5])


def test_failing_line_is_logged_and_closed(capsys):
    configure_logging("info")
    transport = SerialTransport("loop://")
    transport.open()
    transport._line.close()
    with pytest.raises(TransportError, match="loop:// cannot send"):
        transport.send(b"x")
    lines = capsys.readouterr().err.splitlines()
    assert ['event="transport opened"' in lines[0], "level=warning" in lines[1], "action=send" in lines[1]] == [
        True
    ] * 3

"""Frames that are kept for a while in case they are missing."""

import pytest

from gateway.frame import Frame, FrameKind
from gateway.resend_buffer import ResendBuffer

ROOM = 4


@pytest.mark.promise("delivery")
def test_full_buffer_drops_other_kinds_before_readings():
    """A mote without a parent says hello again and again, and what it measured meanwhile is all that will be asked for."""
    kept = ResendBuffer()
    kinds = [
        FrameKind.READING,
        FrameKind.READING,
        FrameKind.HELLO,
        FrameKind.LINKS,
        FrameKind.HELLO,
        FrameKind.READING,
        FrameKind.EVENT,
    ]
    for seq, kind in enumerate(kinds):
        kept.keep(Frame(kind, 3, 1, seq), ROOM)
    everything = range(100)
    assert [frame.seq for frame in kept.take(1, everything)] == [0, 1, 5, 6]
    assert kept.take(1, everything) == []
    for seq in range(10, 20):
        kept.keep(Frame(FrameKind.READING, 3, 1, seq), ROOM)
    assert [frame.seq for frame in kept.take(1, everything)] == [16, 17, 18, 19]

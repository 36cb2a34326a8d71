"""Frames that are kept for a while in case they are missing."""

from gateway.frame import Frame, Kind
from gateway.resend_buffer import Kept

ROOM = 4


def test_what_was_measured_outlasts_what_is_said_again_anyway():
    """A mote without a parent says hello again and again, and what it measured meanwhile is all that will be asked for."""
    kept = Kept()
    kinds = [Kind.READING, Kind.READING, Kind.HELLO, Kind.LINKS, Kind.HELLO, Kind.READING, Kind.EVENT]
    for seq, kind in enumerate(kinds):
        kept.keep(Frame(kind, 3, 1, seq), ROOM)
    everything = range(100)
    assert [frame.seq for frame in kept.take(1, everything)] == [0, 1, 5, 6]
    assert kept.take(1, everything) == []
    for seq in range(10, 20):
        kept.keep(Frame(Kind.READING, 3, 1, seq), ROOM)
    assert [frame.seq for frame in kept.take(1, everything)] == [16, 17, 18, 19]

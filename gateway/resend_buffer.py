"""The resend buffer: the last frames that a sender sent, in case the receiver requests a gap."""

from collections import deque
from collections.abc import Collection

from gateway.frame import Frame, FrameKind
from gateway.payload import Gaps


def expand_gaps(gaps: Gaps) -> set[int]:
    """Return the sequence numbers in some inclusive ranges."""
    return {number for first, last in gaps for number in range(first, last + 1)}


class ResendBuffer:
    """The youngest frames that a sender sent. READING frames outlast all others.

    The other kinds are repeated anyway, and there are most of them when much goes wrong.
    """

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()

    def keep(self, frame: Frame, room: int) -> None:
        """Add a frame; keep at most `room` frames."""
        self._frames.append(frame)
        while len(self._frames) > room:
            self._frames.remove(next((f for f in self._frames if f.kind is not FrameKind.READING), self._frames[0]))

    def take(self, boot: int, numbers: Collection[int]) -> list[Frame]:
        """Remove and return the frames of a boot that have one of these sequence numbers."""
        found = [frame for frame in self._frames if frame.boot == boot and frame.seq in numbers]
        for frame in found:
            self._frames.remove(frame)
        return found

    def forget(self, boot: int, seq: int, gaps: Gaps) -> None:
        """Remove the frames of a boot up to `seq`, but for the gaps: the receiver has them."""
        missing = expand_gaps(gaps)
        self._frames = deque(f for f in self._frames if f.boot != boot or f.seq > seq or f.seq in missing)

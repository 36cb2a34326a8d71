"""Kept: the last frames that left, should the other end find that one of them is missing."""

from collections import deque
from collections.abc import Collection

from gateway.frame import Frame, FrameKind
from gateway.payload import Gaps


def expand_gaps(gaps: Gaps) -> set[int]:
    return {number for first, last in gaps for number in range(first, last + 1)}


class ResendBuffer:
    """The youngest frames, as many as whoever keeps them has room for; what was measured outlasts all else, which is said
    again in time, and is said most where much goes wrong."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()

    def keep(self, frame: Frame, room: int) -> None:
        self._frames.append(frame)
        while len(self._frames) > room:
            self._frames.remove(next((f for f in self._frames if f.kind is not FrameKind.READING), self._frames[0]))

    def take(self, boot: int, asked: Collection[int]) -> list[Frame]:
        """Those of the numbers asked for that are still here; they are not any more."""
        found = [frame for frame in self._frames if frame.boot == boot and frame.seq in asked]
        for frame in found:
            self._frames.remove(frame)
        return found

    def forget(self, boot: int, seq: int, gaps: Gaps) -> None:
        """All of a boot up to a number have come, but for these."""
        missing = expand_gaps(gaps)
        self._frames = deque(f for f in self._frames if f.boot != boot or f.seq > seq or f.seq in missing)

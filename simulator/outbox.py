"""Outgoing: the frames that begin at a mote: numbered, handed over, and kept for a while in case one is missing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gateway.frame import LAST_SEQ, Frame, FrameKind, MoteId
from gateway.link import SequenceSet
from gateway.payload import LostFrames, decode_selective_ack
from gateway.resend_buffer import ResendBuffer, expand_gaps
from simulator.forwarder import Forwarder
from simulator.kernel import Kernel
from simulator.mac import DATA
from simulator.trace import Trace

CAPACITY = 32
"""A mote has room for so many frames that left; of more, readings stay."""


class Outbox:
    """From one start of a mote to the next. `handed_over` hears when a frame has left, or was given up."""

    def __init__(self, site: int, boot: int, forwarder: Forwarder, kernel: Kernel, trace: Trace,
                 handed_over: Callable[[], None]) -> None:  # fmt: skip
        self.boot = boot
        self._site, self._relay, self._kernel, self._trace = site, forwarder, kernel, trace
        self._handed_over = handed_over
        self._numbered = self._partials = 0  # frames of this boot: partials, and all others
        self._under_way: set[tuple[int, int]] = set()  # not handed over yet
        self._kept = ResendBuffer()
        self._over = False

    @property
    def idle(self) -> bool:
        return not self._under_way

    def end(self) -> None:
        """The mote is switched off: what becomes of its frames is nothing to it any more."""
        self._over = True

    def post(self, kind: FrameKind, payload: bytes) -> Frame:
        seq = self._next(kind)
        frame = Frame(kind, MoteId(self._site), self.boot, seq, payload)
        self._send(frame)
        return frame

    def _next(self, kind: FrameKind) -> int:
        """Partials are numbered from the last number down, all others from 0 up, until they meet (SPEC.md)."""
        if self._numbered + self._partials > LAST_SEQ:
            self.boot, self._numbered, self._partials = self.boot + 1, 0, 0
        if kind is FrameKind.PARTIAL:
            self._partials += 1
            return LAST_SEQ + 1 - self._partials
        self._numbered += 1
        return self._numbered - 1

    def account(self, frame: Frame) -> LostFrames:
        """The base station tells what has come and what has not. What is kept of that is sent again, the rest is lost."""
        gaps = decode_selective_ack(frame.payload).gaps
        self._kept.forget(frame.boot, frame.seq, gaps)
        missing, found = expand_gaps(gaps), SequenceSet()
        for kept in self._kept.take(frame.boot, missing):
            self._send(replace(kept, repeated=True))
        for seq in missing:
            if (frame.boot, seq) not in self._under_way:
                found.add(seq)
        return LostFrames(frame.boot, found.ranges())

    def _send(self, frame: Frame) -> None:
        self._under_way.add((frame.boot, frame.seq))
        called = self._relay.orphaned and frame.kind not in DATA
        (self._relay.broadcast if called else self._relay.send_up)(frame, partial(self._left, frame))

    def _left(self, frame: Frame, taken: bool) -> None:
        if self._over:
            return
        if not taken:
            self._trace.record(self._kernel.now, self._site, "given_up", kind=frame.kind.name, seq=frame.seq)
        self._under_way.discard((frame.boot, frame.seq))
        if frame.kind is not FrameKind.PARTIAL:  # which may have been merged, and must not come twice
            self._kept.keep(frame, CAPACITY)
        self._handed_over()

"""The outbox: frames that a mote originates. It numbers them, hands them over and keeps some for retransmission."""

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
"""The frames that a mote keeps after they left. The buffer prefers readings when it is full."""


class Outbox:
    """The frames of one start of a mote. It calls `handed_over` when a frame has left or was given up."""

    def __init__(self, site: int, boot: int, forwarder: Forwarder, kernel: Kernel, trace: Trace,
                 handed_over: Callable[[], None]) -> None:  # fmt: skip
        self.boot = boot
        self._site, self._forwarder, self._kernel, self._trace = site, forwarder, kernel, trace
        self._handed_over = handed_over
        self._others = self._partials = 0  # frames of this boot: partials, and all others
        self._under_way: dict[tuple[int, int], FrameKind] = {}  # not handed over yet
        self._kept = ResendBuffer()
        self._over = False

    @property
    def has_readings_under_way(self) -> bool:
        """Whether a frame with readings waits to be handed over."""
        return FrameKind.READING in self._under_way.values()

    def end(self) -> None:
        """The mote is switched off: ignore the outcome of frames that are still under way."""
        self._over = True

    def post(self, kind: FrameKind, payload: bytes) -> Frame:
        """Number a frame and send it up; returns it."""
        seq = self._next(kind)
        frame = Frame(kind, MoteId(self._site), self.boot, seq, payload)
        self._send(frame)
        return frame

    def _next(self, kind: FrameKind) -> int:
        """The next sequence number: partials from the last number down, all others from 0 up, until they meet (SPEC.md)."""
        if self._others + self._partials > LAST_SEQ:
            self.boot, self._others, self._partials = self.boot + 1, 0, 0
        if kind is FrameKind.PARTIAL:
            self._partials += 1
            return LAST_SEQ + 1 - self._partials
        self._others += 1
        return self._others - 1

    def account(self, frame: Frame) -> LostFrames:
        """Process a selective acknowledgement: resend the missing frames that are kept; return those that are lost."""
        gaps = decode_selective_ack(frame.payload).gaps
        self._kept.forget(frame.boot, frame.seq, gaps)
        missing, found = expand_gaps(gaps), SequenceSet()
        for each in self._kept.take(frame.boot, missing):
            self._send(replace(each, repeated=True))
        for seq in missing:
            if (frame.boot, seq) not in self._under_way:
                found.add(seq)
        return LostFrames(frame.boot, found.ranges())

    def _send(self, frame: Frame) -> None:
        self._under_way[frame.boot, frame.seq] = frame.kind
        send = self._forwarder.send_up
        if self._forwarder.orphaned and frame.kind not in DATA:
            send = self._forwarder.broadcast
        send(frame, partial(self._end, frame))

    def _end(self, frame: Frame, taken: bool) -> None:
        if self._over:
            return
        if not taken:
            self._trace.record(self._kernel.now, self._site, "given_up", kind=frame.kind.name, seq=frame.seq)
        self._under_way.pop((frame.boot, frame.seq), None)
        if frame.kind is not FrameKind.PARTIAL:  # a parent may have merged it: it must not count twice
            self._kept.keep(frame, CAPACITY)
        self._handed_over()

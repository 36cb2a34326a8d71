"""The MAC layer of a radio: hands frames over to neighbours, one after another, each until it is acknowledged.

Outside of an agenda the radio is always on. The MAC layer sends at once, and tries a frame again after a pause if it is not
acknowledged. Under an agenda it sends in the mote's own slots only, and gives up data that does not fit into the slot of its
round.

Attempts and acknowledgements between neighbours are the radio's own (for example the hardware acknowledgements of IEEE
802.15.4): they are the ACK without payload of gateway/SPEC.md on these hops. So TIME is acknowledged as well, and each attempt
carries the time of its own moment.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from gateway.codec import encode
from gateway.frame import BROADCAST, Frame, FrameKind, MoteId
from innet.costs.hardware import MAX_ATTEMPTS
from simulator.duplicate_filter import REPEAT_US
from simulator.kernel import MS, Kernel
from simulator.radio_medium import ATTEMPT_LIMIT, AttemptKey, RadioMedium, RadioNode
from simulator.trace import Trace

STROBE_US, STROBE_GAP_US = 40_000 * MS, 5 * MS
"""A broadcast frame is repeated for so long, with such gaps, until a neighbour wakes up and takes it."""
DATA = (FrameKind.READING, FrameKind.PARTIAL)
QUEUE_LIMIT = 32
"""The frames that may wait for another slot."""
FREE_EPOCH = 1_000 * MS
"""The length of the epochs that name draws outside of an agenda."""

Refresh: TypeAlias = Callable[[Frame, int], Frame]
"""(frame, time of the attempt) -> the frame of that attempt."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a frame is tried again, and the pause before it, which doubles up to the longest one."""

    again: int = 5
    pause_ms: int = 10_000
    longest_ms: int = 80_000

    def pause(self, before: int) -> int:
        """The pause in microseconds after `before` earlier ones."""
        return min(self.pause_ms << before, self.longest_ms) * MS


@dataclass(slots=True, eq=False)
class _QueuedFrame:
    frame: Frame
    refresh: Refresh
    done: Callable[[bool], None]
    message: bytes
    pauses: int = 0
    attempts: int = 0  # since the last pause
    came: int = 0  # of those attempts
    begun: int = 0  # of the attempts since the last pause, microseconds
    first: int = 0  # of all attempts

    @property
    def tried(self) -> bool:
        return self.pauses > 0 or self.attempts > 0

    @property
    def may_wait(self) -> bool:
        """Whether the frame waits for another slot instead of being given up at the end of this one.

        Data that is due has room in its round and would be late in the next. A partial must not arrive twice. A poll is
        repeated in its turn.
        """
        if self.frame.kind in DATA:
            return self.frame.repeated and self.frame.kind is not FrameKind.PARTIAL
        return not self.frame.is_poll

    @property
    def rank(self) -> int:
        """Data that is due first, since slots are made for it; then control frames; then readings that are sent again."""
        return 0 if not self.may_wait else 1 if self.frame.kind not in DATA else 2

    @property
    def is_broadcast(self) -> bool:
        return self.frame.receiver == BROADCAST


def keep_unchanged(frame: Frame, _: int) -> Frame:
    """The `Refresh` of frames that do not depend on the time."""
    return frame


def sender_of(frame: Frame) -> MoteId:
    """The sender of a frame on a hop. Raises ValueError if the frame is not on a hop."""
    if frame.sender is None:
        raise ValueError("a frame on the air has a sender")
    return frame.sender


def receiver_of(frame: Frame) -> MoteId:
    """The receiver of a frame on a hop. Raises ValueError if the frame is not on a hop."""
    if frame.receiver is None:
        raise ValueError("a frame on the air has a receiver")
    return frame.receiver


class MacLayer:
    """The MAC layer of the radio `node`.

    `count_awake` is called with the duration of each attempt, `on_outcome` with the receiver of a hand-over and whether it
    acknowledged. `expects_more` returns whether frames are still to come that this node will pass on.
    """

    def __init__(self, node: RadioNode, kernel: Kernel, medium: RadioMedium, trace: Trace, retry: RetryPolicy,
                 count_awake: Callable[[int], None] = lambda us: None,
                 on_outcome: Callable[[int, bool], None] = lambda receiver, known: None,
                 expects_more: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        self._node, self._kernel, self._medium, self._trace, self._retry = node, kernel, medium, trace, retry
        self._count_awake, self._on_outcome, self._expects_more = count_awake, on_outcome, expects_more
        self._queue: deque[_QueuedFrame] = deque()
        self._busy: _QueuedFrame | None = None
        self._pausing: list[_QueuedFrame] = []
        self._slotted, self._until, self._epoch = False, 0, 0
        self._receiver_expects_more = False
        self._hand_over = 0  # the number of the present one
        self._draws: dict[int, tuple[int, int]] = {}  # by receiver: the epoch, and how many frames were sent in it

    def hand_over(self, frame: Frame, done: Callable[[bool], None],
                  refresh: Refresh = keep_unchanged) -> None:  # fmt: skip
        """Queue a frame for its `receiver`; calls `done(False)` if it is given up.

        `refresh` makes the frame of each attempt, for frames whose content depends on the time.
        """
        self._queue.append(_QueuedFrame(frame, refresh, done, self._encode(frame)))
        self._next()

    def use_slots(self, slotted: bool) -> None:
        """Keep to slots from now on, or stop doing so."""
        self._slotted, self._until = slotted, 0
        self._next()

    def open(self, epoch: int, until: int) -> None:
        """The slot begins and ends at `until`. Data that is due goes first, then the rest in the order of its age."""
        self._epoch, self._until = epoch, until
        self._queue = deque(sorted(self._queue, key=lambda queued: queued.rank))
        self._next()

    def close(self) -> bool:
        """The slot ends: give up the data that was due in it; keep the QUEUE_LIMIT youngest of the frames that may wait.

        Returns whether the receiver knows that more is to follow and listens when the slot repeats.
        """
        left = [queued for queued in (self._busy, *self._queue) if queued]
        self._queue.clear()
        self._busy = None
        waiting = [queued for queued in left if queued.may_wait][-QUEUE_LIMIT:]
        for queued in left:
            if queued not in waiting:
                self._end(queued, known=False)
        for queued in waiting:
            self._requeue(queued)
        expected, self._receiver_expects_more = self._receiver_expects_more, False
        return expected

    def forget(self) -> None:
        """The node was switched off: drop all frames."""
        if self._busy:
            self._record(self._busy, known=False)
        self._queue.clear()
        self._pausing.clear()
        self._busy = None

    def redirect(self, before: MoteId, after: MoteId) -> None:
        """Send frames for one neighbour to another. A partial that was tried is given up: both might have it then."""
        left = [queued for queued in (*self._pausing, *self._queue) if queued.frame.receiver == before]
        for queued in left:
            (self._pausing if queued in self._pausing else self._queue).remove(queued)
            if queued.frame.kind is FrameKind.PARTIAL and queued.tried:
                queued.done(False)
                continue
            frame = replace(queued.frame, receiver=after)
            self._queue.append(_QueuedFrame(frame, queued.refresh, queued.done, self._encode(frame)))
        self._next()

    @property
    def idle(self) -> bool:
        return not self._queue and self._busy is None

    def _encode(self, frame: Frame) -> bytes:
        return encode(frame, self._medium.mtu)

    def _next(self) -> None:
        if self._busy or not self._queue:
            return
        queued = self._queue[0]
        if queued.frame.repeated and not queued.may_wait and self._kernel.now >= queued.first + REPEAT_US:
            self._queue.popleft().done(False)
            self._next()
            return
        if not self._fits(queued):
            return
        self._busy = self._queue.popleft()
        receiver = receiver_of(queued.frame)
        epoch = self._epoch if self._slotted else self._kernel.now // FREE_EPOCH
        before, count = self._draws.get(receiver, (epoch, -1))
        self._draws[receiver] = (epoch, count + 1 if before == epoch else 0)
        self._hand_over = self._medium.number()
        pending = self._slotted and (self._expects_more() or any(other.may_wait for other in self._queue))
        if pending != queued.frame.pending:
            queued.frame = replace(queued.frame, pending=pending)
        queued.begun = self._kernel.now
        if not queued.pauses:
            queued.first = queued.begun
        self._attempt(queued, epoch)

    def _attempt(self, queued: _QueuedFrame, epoch: int) -> None:
        receiver = receiver_of(queued.frame)
        queued.message = self._encode(queued.refresh(queued.frame, self._kernel.now))
        key = AttemptKey(self._hand_over, epoch, self._draws[receiver][1] * ATTEMPT_LIMIT + queued.attempts)
        done = partial(self._end_attempt, queued, epoch)
        queued.attempts += 1
        self._count_awake(self._node.timing.attempt(len(queued.message)))
        self._medium.attempt(queued.message, self._node, receiver, key, self._slotted, done)

    def _end_attempt(self, queued: _QueuedFrame, epoch: int, came: bool, known: bool) -> None:
        if queued is not self._busy:
            return
        queued.came += came
        if queued.is_broadcast and not came and self._kernel.now - queued.begun < STROBE_US and not self._slotted:
            self._kernel.after(STROBE_GAP_US, partial(self._strobe, queued))
        elif known or queued.is_broadcast or queued.attempts >= MAX_ATTEMPTS:
            self._busy = None
            if known:
                self._receiver_expects_more = queued.frame.pending
            if self._slotted and queued.may_wait and not known:
                self._requeue(queued)
            else:
                self._end(queued, known)
            self._next()
        elif self._fits(queued):
            self._attempt(queued, epoch)

    def _strobe(self, queued: _QueuedFrame) -> None:
        if queued is self._busy:
            self._attempt(queued, self._kernel.now // FREE_EPOCH)

    def _record(self, queued: _QueuedFrame, known: bool) -> None:
        frame, mote = queued.frame, self._node.number
        if frame.is_poll:
            self._trace.record(self._kernel.now, mote, "inquired", of=frame.receiver, attempts=queued.attempts,
                               came=queued.came, known=int(known))  # fmt: skip
            return
        self._trace.record(
            self._kernel.now, mote, "sent", kind=frame.kind.name, to=frame.receiver, origin=frame.mote,
            boot=frame.boot, seq=frame.seq, bytes=len(queued.message), attempts=queued.attempts,
            came=queued.came, known=int(known),
        )  # fmt: skip

    def _settle(self, queued: _QueuedFrame, known: bool) -> None:
        self._record(queued, known)
        # A poll that is lost proves nothing about the receiver: it is short, and no burden.
        if queued.attempts and (known or not queued.frame.is_poll):
            self._on_outcome(receiver_of(queued.frame), known)

    def _requeue(self, queued: _QueuedFrame) -> None:
        """Put a frame behind all others."""
        if queued.attempts:
            self._settle(queued, known=False)
            queued.attempts = queued.came = 0
        self._queue.append(queued)

    def _end(self, queued: _QueuedFrame, known: bool) -> None:
        frame = queued.frame
        self._settle(queued, known)
        again = frame.want_ack and not self._slotted and queued.pauses < self._retry.again
        if known or queued.is_broadcast or not again:
            queued.done(known or queued.is_broadcast)
        else:
            self._pausing.append(queued)
            self._kernel.after(self._retry.pause(queued.pauses), partial(self._try_again, queued))

    def _try_again(self, queued: _QueuedFrame) -> None:
        if queued in self._pausing:
            self._pausing.remove(queued)
            queued.pauses, queued.attempts, queued.came = queued.pauses + 1, 0, 0
            repeated = queued.frame.repeated or queued.frame.kind is FrameKind.PARTIAL
            queued.frame = replace(queued.frame, repeated=repeated)
            self._queue.append(queued)
            self._next()

    def _fits(self, queued: _QueuedFrame) -> bool:
        """Whether another attempt ends within the slot."""
        return not self._slotted or self._kernel.now + self._node.timing.attempt(len(queued.message)) <= self._until

"""The carrier of a station: hands frames over to neighbours, one after another, each until it is acknowledged.

Outside of an agenda it sends when it has something, and its radio is always on; a frame that nobody acknowledges is
tried again after a pause. Under an agenda it sends in its own slots only, and what does not fit into the slot of its
epoch is given up.

Attempts and acknowledgements between neighbours are the radio's own (hardware acknowledgements of IEEE 802.15.4, say):
they are the ACK without payload of gateway/SPEC.md on these hops. So TIME is acknowledged, too, and each attempt has the
time of its own.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from gateway.codec import encode
from gateway.frame import BROADCAST, Frame, FrameKind, MoteId
from innet.costs.hardware import MAX_ATTEMPTS
from simulator.duplicate_filter import REPEAT_US
from simulator.kernel import MS, Kernel
from simulator.radio_medium import ATTEMPT_LIMIT, AttemptKey, RadioMedium, RadioNode
from simulator.trace import Trace

STROBE_US, STROBE_GAP_US = 40_000 * MS, 5 * MS
"""What is for whoever hears it is said again and again for so long, until somebody wakes up and hears it."""
DATA = (FrameKind.READING, FrameKind.PARTIAL)
QUEUE_LIMIT = 32
"""So many that were asked for wait for another slot."""
FREE_EPOCH = 1_000 * MS
"""The epochs of chance outside of an agenda, where there is no other."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often what was not acknowledged is tried again, and after how long; the pause doubles up to the longest."""

    again: int = 5
    pause_ms: int = 10_000
    longest_ms: int = 80_000

    def pause(self, before: int) -> int:
        return min(self.pause_ms << before, self.longest_ms) * MS


@dataclass(slots=True, eq=False)
class _QueuedFrame:
    frame: Frame
    refresh: Callable[[Frame, int], Frame]
    done: Callable[[bool], None]
    message: bytes
    pauses: int = 0
    attempts: int = 0  # since the last pause
    came: int = 0  # of those attempts
    begun: int = 0
    first: int = 0  # when it was begun the first time

    @property
    def tried(self) -> bool:
        return self.pauses > 0 or self.attempts > 0

    @property
    def lasts(self) -> bool:
        """Whether it waits for another slot, and another. What is due in a round has its room, and would be late; partials
        must not come twice; a question is asked again in its turn."""
        if self.frame.kind in DATA:
            return self.frame.repeated and self.frame.kind is not FrameKind.PARTIAL
        return not self.frame.is_poll

    @property
    def rank(self) -> int:
        """What a slot was made for comes before what orders depend on, and that before what was missing and asked for."""
        return 0 if not self.lasts else 1 if self.frame.kind not in DATA else 2

    @property
    def for_all(self) -> bool:
        return self.frame.receiver == BROADCAST


def keep_unchanged(frame: Frame, _: int) -> Frame:
    return frame


class MacLayer:
    """`station` is for whom; `awake` hears how long each attempt takes, `tried` whether a receiver has acknowledged; `more`
    says whether others are to hand something over to us that we shall pass on."""

    def __init__(self, station: RadioNode, kernel: Kernel, air: RadioMedium, trace: Trace, patience: RetryPolicy,
                 awake: Callable[[int], None] = lambda us: None,
                 tried: Callable[[int, bool], None] = lambda receiver, known: None,
                 more: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        self._station, self._kernel, self._air, self._trace, self._patience = station, kernel, air, trace, patience
        self._awake, self._tried, self._more = awake, tried, more
        self._queue: deque[_QueuedFrame] = deque()
        self._busy: _QueuedFrame | None = None
        self._pausing: list[_QueuedFrame] = []
        self._slotted, self._until, self._epoch = False, 0, 0
        self._expected = False  # our receiver knows that more is to follow
        self._number = 0  # of the hand-over
        self._draws: dict[int, tuple[int, int]] = {}  # by receiver: the epoch, and how many frames were sent in it

    def hand_over(self, frame: Frame, done: Callable[[bool], None],
                  refresh: Callable[[Frame, int], Frame] = keep_unchanged) -> None:  # fmt: skip
        """Send a frame to its `receiver`, in its turn; `done` hears False if it was given up.

        `aged` makes the frame of each attempt, for those in which the moment matters.
        """
        self._queue.append(_QueuedFrame(frame, refresh, done, self._encode(frame)))
        self._next()

    def use_slots(self, slotted: bool) -> None:
        """Whether to keep to slots from now on."""
        self._slotted, self._until = slotted, 0
        self._next()

    def open(self, epoch: int, until: int) -> None:
        """Our slot begins. It was made for the data that is due, which goes first; the rest has what room is left, the oldest
        first."""
        self._epoch, self._until = epoch, until
        self._queue = deque(sorted(self._queue, key=lambda waiting: waiting.rank))
        self._next()

    def close(self) -> bool:
        """Our slot ends: what was due in it is given up, and of what may wait all but the youngest.

        Says whether our receiver has heard that there is more, and listens when our slot comes again.
        """
        left = [waiting for waiting in (self._busy, *self._queue) if waiting]
        self._queue.clear()
        self._busy = None
        lasting = [waiting for waiting in left if waiting.lasts][-QUEUE_LIMIT:]
        for waiting in left:
            if waiting not in lasting:
                self._end(waiting, known=False)
        for waiting in lasting:
            self._wait(waiting)
        expected, self._expected = self._expected, False
        return expected

    def forget(self) -> None:
        """The station was switched off: what waits is gone."""
        if self._busy:
            self._record(self._busy, known=False)
        self._queue.clear()
        self._pausing.clear()
        self._busy = None

    def redirect(self, before: MoteId, after: MoteId) -> None:
        """What was for one neighbour is for another now; but a partial, which two might then have, is given up."""
        left = [waiting for waiting in (*self._pausing, *self._queue) if waiting.frame.receiver == before]
        for waiting in left:
            (self._pausing if waiting in self._pausing else self._queue).remove(waiting)
            if waiting.frame.kind is FrameKind.PARTIAL and waiting.tried:
                waiting.done(False)
                continue
            frame = replace(waiting.frame, receiver=after)
            self._queue.append(_QueuedFrame(frame, waiting.refresh, waiting.done, self._encode(frame)))
        self._next()

    @property
    def idle(self) -> bool:
        return not self._queue and self._busy is None

    def _encode(self, frame: Frame) -> bytes:
        return encode(frame, self._air.mtu)

    def _next(self) -> None:
        if self._busy or not self._queue:
            return
        waiting = self._queue[0]
        if waiting.frame.repeated and not waiting.lasts and self._kernel.now >= waiting.first + REPEAT_US:
            self._queue.popleft().done(False)
            self._next()
            return
        if not self._fits(waiting):
            return
        self._busy = self._queue.popleft()
        receiver = waiting.frame.receiver
        epoch = self._epoch if self._slotted else self._kernel.now // FREE_EPOCH
        before, count = self._draws.get(receiver, (epoch, -1))
        self._draws[receiver] = (epoch, count + 1 if before == epoch else 0)
        self._number = self._air.number()
        pending = self._slotted and (self._more() or any(other.lasts for other in self._queue))
        if pending != waiting.frame.pending:
            waiting.frame = replace(waiting.frame, pending=pending)
        waiting.begun = self._kernel.now
        if not waiting.pauses:
            waiting.first = waiting.begun
        self._attempt(waiting, epoch)

    def _attempt(self, waiting: _QueuedFrame, epoch: int) -> None:
        receiver = waiting.frame.receiver
        waiting.message = self._encode(waiting.refresh(waiting.frame, self._kernel.now))
        turn = AttemptKey(self._number, epoch, self._draws[receiver][1] * ATTEMPT_LIMIT + waiting.attempts)
        done = partial(self._attempted, waiting, epoch)
        waiting.attempts += 1
        self._awake(self._station.timing.attempt(len(waiting.message)))
        self._air.attempt(waiting.message, self._station, receiver, turn, self._slotted, done)

    def _attempted(self, waiting: _QueuedFrame, epoch: int, came: bool, known: bool) -> None:
        if waiting is not self._busy:
            return
        waiting.came += came
        if waiting.for_all and not came and self._kernel.now - waiting.begun < STROBE_US and not self._slotted:
            self._kernel.after(STROBE_GAP_US, partial(self._strobe, waiting))
        elif known or waiting.for_all or waiting.attempts >= MAX_ATTEMPTS:
            self._busy = None
            self._expected = waiting.frame.pending if known else self._expected
            if self._slotted and waiting.lasts and not known:
                self._wait(waiting)
            else:
                self._end(waiting, known)
            self._next()
        elif self._fits(waiting):
            self._attempt(waiting, epoch)

    def _strobe(self, waiting: _QueuedFrame) -> None:
        if waiting is self._busy:
            self._attempt(waiting, self._kernel.now // FREE_EPOCH)

    def _record(self, waiting: _QueuedFrame, known: bool) -> None:
        frame, mote = waiting.frame, self._station.number
        if frame.is_poll:
            self._trace.record(self._kernel.now, mote, "inquired", of=frame.receiver, attempts=waiting.attempts,
                               came=waiting.came, known=int(known))  # fmt: skip
            return
        self._trace.record(
            self._kernel.now, mote, "sent", kind=frame.kind.name, to=frame.receiver, origin=frame.mote,
            boot=frame.boot, seq=frame.seq, bytes=len(waiting.message), attempts=waiting.attempts,
            came=waiting.came, known=int(known),
        )  # fmt: skip

    def _settle(self, waiting: _QueuedFrame, known: bool) -> None:
        self._record(waiting, known)
        if waiting.attempts and (
            known or not waiting.frame.is_poll
        ):  # which is no burden, and no proof, where it is lost
            self._tried(waiting.frame.receiver, known)

    def _wait(self, waiting: _QueuedFrame) -> None:
        """Behind all others."""
        if waiting.attempts:
            self._settle(waiting, known=False)
            waiting.attempts = waiting.came = 0
        self._queue.append(waiting)

    def _end(self, waiting: _QueuedFrame, known: bool) -> None:
        frame = waiting.frame
        self._settle(waiting, known)
        again = frame.want_ack and not self._slotted and waiting.pauses < self._patience.again
        if known or waiting.for_all or not again:
            waiting.done(known or waiting.for_all)
        else:
            self._pausing.append(waiting)
            self._kernel.after(self._patience.pause(waiting.pauses), partial(self._again, waiting))

    def _again(self, waiting: _QueuedFrame) -> None:
        if waiting in self._pausing:
            self._pausing.remove(waiting)
            waiting.pauses, waiting.attempts, waiting.came = waiting.pauses + 1, 0, 0
            repeated = waiting.frame.repeated or waiting.frame.kind is FrameKind.PARTIAL
            waiting.frame = replace(waiting.frame, repeated=repeated)
            self._queue.append(waiting)
            self._next()

    def _fits(self, waiting: _QueuedFrame) -> bool:
        """Whether another attempt ends within our slot."""
        return not self._slotted or self._kernel.now + self._station.timing.attempt(len(waiting.message)) <= self._until

"""One link between two peers that number their frames: duplicates, acknowledgements, gaps and retransmission.

The base station holds one link for each mote, and a mote holds one to the base station. Both are this class. A link
does no input or output: bytes and time (`now`, in milliseconds) are arguments.

The states of an outgoing frame:

    QUEUED ──SENT──▶ IN_FLIGHT ──ACKED──▶ DONE
      ▲                │   └──EXHAUSTED──▶ GIVEN_UP
      └────TIMEOUT─────┘     a frame without acknowledgement: QUEUED ──SENT_WITHOUT_ACK──▶ DONE

One frame is in flight at a time. Motes have one receive buffer, and a window of one frame fills a link whose round trip
is shorter than the pause between frames, as in sensor networks. A duty-cycled mote listens for a moment after it has
transmitted, so the link sends to it only then.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.errors import LinkError
from gateway.frame import LAST_SEQ, Frame, FrameKind, Message, MoteId
from gateway.payload import Gaps, LostFrames
from gateway.resend_buffer import ResendBuffer, expand_gaps


class SendState(Enum):
    """How far an outgoing frame has come."""

    QUEUED = auto()
    IN_FLIGHT = auto()
    DONE = auto()
    GIVEN_UP = auto()


class SendEvent(Enum):
    """Events of an outgoing frame."""

    SENT = auto()
    SENT_WITHOUT_ACK = auto()
    ACKED = auto()
    TIMEOUT = auto()
    EXHAUSTED = auto()


TRANSITIONS = {
    (SendState.QUEUED, SendEvent.SENT): SendState.IN_FLIGHT,
    (SendState.QUEUED, SendEvent.SENT_WITHOUT_ACK): SendState.DONE,
    (SendState.IN_FLIGHT, SendEvent.ACKED): SendState.DONE,
    (SendState.IN_FLIGHT, SendEvent.TIMEOUT): SendState.QUEUED,
    (SendState.IN_FLIGHT, SendEvent.EXHAUSTED): SendState.GIVEN_UP,
}


def next_state(state: SendState, event: SendEvent) -> SendState:
    """Return the state after an event. Raises LinkError if the event is impossible in this state."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LinkError(f"{event.name} cannot happen to a frame that is {state.name}") from None


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    """Timeouts and limits of a link.

    `timeout_ms` is the wait for an acknowledgement: ten seconds, because a duty-cycled mote may sleep for several. The
    wait grows by `backoff_factor` with each attempt, up to `max_timeout_ms`. `listen_window_ms` is how long the peer
    listens after it has transmitted, None if it never sleeps. `resend_capacity` is the number of sent frames to keep
    for gap requests.
    """

    timeout_ms: int = 10_000
    max_attempts: int = 6
    backoff_factor: int = 2
    max_timeout_ms: int = 300_000
    listen_window_ms: int | None = None
    resend_capacity: int = 0

    def timeout_of(self, attempt: int) -> int:
        """Return how long (ms) to wait for the acknowledgement of an attempt, counted from 1."""
        grown: int = self.timeout_ms * self.backoff_factor ** (attempt - 1)
        return min(grown, self.max_timeout_ms)


@dataclass(slots=True)
class OutgoingFrame:
    """A frame in the queue; `deadline` (ms) is when its acknowledgement is overdue."""

    frame: Frame
    state: SendState = SendState.QUEUED
    attempts: int = 0
    deadline: int = 0


class SequenceSet:
    """A set of sequence numbers, stored as disjoint ranges: exact, and small as long as few numbers are missing."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # inclusive

    def add(self, number: int) -> bool:
        """Add a number; return False if it was there already."""
        at = bisect_right(self._starts, number)  # ranges before `at` start at or below the number
        if at and number <= self._ends[at - 1]:
            return False
        joins_left = at > 0 and self._ends[at - 1] == number - 1
        joins_right = at < len(self._starts) and self._starts[at] == number + 1
        if joins_left and joins_right:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_left:
            self._ends[at - 1] = number
        elif joins_right:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number)
        return True

    def fill(self, first: int, last: int) -> int:
        """Add all numbers of an inclusive range; return how many were new."""
        before, behind = bisect_left(self._ends, first - 1), bisect_right(self._starts, last + 1)
        added = last - first + 1 - self.count(first, last)
        if before < behind:
            first, last = min(first, self._starts[before]), max(last, self._ends[behind - 1])
        self._starts[before:behind], self._ends[before:behind] = [first], [last]
        return added

    def count(self, first: int, last: int) -> int:
        """Return how many numbers lie in an inclusive range; 0 if `last` is below `first`."""
        before, behind = bisect_left(self._ends, first), bisect_right(self._starts, last)
        overlaps = zip(self._starts[before:behind], self._ends[before:behind], strict=True)
        return sum(max(0, min(end, last) - max(start, first) + 1) for start, end in overlaps)

    def forget(self, below: int) -> None:
        """Remove all numbers less than `below`."""
        before = bisect_left(self._ends, below)
        del self._starts[:before], self._ends[:before]
        if self._starts:
            self._starts[0] = max(self._starts[0], below)

    @property
    def pieces(self) -> int:
        """The number of ranges."""
        return len(self._starts)

    @property
    def greatest(self) -> int:
        """The greatest number; -1 if the set is empty."""
        return self._ends[-1] if self._ends else -1

    def ranges(self) -> Gaps:
        """Return the numbers as inclusive ranges, ascending."""
        return tuple(zip(self._starts, self._ends, strict=True))

    def missing(self) -> list[tuple[int, int]]:
        """Return the gaps from 0 to the greatest number as inclusive ranges: frames lost or still on their way."""
        if self._starts == [0]:  # nearly always
            return []
        befores = [-1, *self._ends]
        return [(end + 1, start - 1) for end, start in zip(befores, self._starts, strict=False) if end + 1 < start]


@dataclass(slots=True)
class Link:
    """The link to one peer.

    `down` is the direction in which we send. `boot` counts our own restarts. `duplicates` and `lost` count received
    and lost frames of the peer, `given_up` holds our frames that it never acknowledged.
    """

    mote: MoteId
    boot: int
    down: bool
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    duplicates: int = 0
    lost: int = 0
    given_up: list[Frame] = field(default_factory=list)
    _next_seq: int = 0
    _listens_until: int = -1
    _sent: ResendBuffer = field(default_factory=ResendBuffer)
    _outgoing: deque[OutgoingFrame] = field(default_factory=deque)
    _received: dict[int, SequenceSet] = field(default_factory=dict)
    _settled: dict[int, SequenceSet] = field(default_factory=dict)  # received, or written off as lost

    def restart(self, boot: int) -> None:
        """Number frames anew, and forget those of before: the peer may have had other frames under their numbers."""
        self.boot, self._next_seq = boot, 0
        self._outgoing.clear()
        self._sent = ResendBuffer()

    def make_frame(self, message: Message) -> Frame:
        """Number a message without queueing it, for a caller that sends it at once."""
        frame = Frame(message.kind, self.mote, self.boot, self._next_seq, message.payload, self.down, message.want_ack)
        self._next_seq += 1
        if self._next_seq > LAST_SEQ:
            self.boot, self._next_seq = self.boot + 1, 0  # SPEC.md: numbers never repeat
        return frame

    def post(self, message: Message) -> Frame:
        """Number a message and queue it."""
        frame = self.make_frame(message)
        self._outgoing.append(OutgoingFrame(frame))
        return frame

    def withdraw(self, kind: FrameKind) -> None:
        """Remove the queued frames of a kind, also one in flight."""
        self._outgoing = deque(outgoing for outgoing in self._outgoing if outgoing.frame.kind is not kind)

    def due(self, now: int) -> Iterator[Frame]:
        """Yield the frames to send at `now`; each counts as sent when it is taken. Nothing is due to a sleeping peer."""
        while self._outgoing and self.is_listening(now):
            outgoing = self._outgoing[0]
            if outgoing.state is SendState.IN_FLIGHT:
                if now < outgoing.deadline:
                    return
                exhausted = outgoing.attempts >= self.policy.max_attempts
                outgoing.state = next_state(outgoing.state, SendEvent.EXHAUSTED if exhausted else SendEvent.TIMEOUT)
            if outgoing.state is SendState.GIVEN_UP:
                self.given_up.append(self._leave())
                continue
            outgoing.attempts += 1
            outgoing.deadline = now + self.policy.timeout_of(outgoing.attempts)
            event = SendEvent.SENT if outgoing.frame.want_ack else SendEvent.SENT_WITHOUT_ACK
            outgoing.state = next_state(outgoing.state, event)
            if outgoing.state is SendState.DONE:
                self._leave()
            yield outgoing.frame

    def _leave(self) -> Frame:
        """Remove the first frame from the queue and keep it for gap requests."""
        frame = self._outgoing.popleft().frame
        self._sent.keep(frame, self.policy.resend_capacity)
        return frame

    def note_heard(self, now: int) -> None:
        """Record that the peer transmitted at `now`, so it listens for a moment."""
        if self.policy.listen_window_ms is not None:
            self._listens_until = max(self._listens_until, now + self.policy.listen_window_ms)

    def is_listening(self, now: int) -> bool:
        """Return whether the peer can receive at `now`."""
        return self.policy.listen_window_ms is None or now < self._listens_until

    @property
    def idle(self) -> bool:
        """Whether no frame is queued or in flight."""
        return not self._outgoing

    @property
    def longest_payload(self) -> int:
        """Bytes of the longest payload that is queued or in flight."""
        return max((len(outgoing.frame.payload) for outgoing in self._outgoing), default=0)

    def take_ack(self, ack: Frame) -> bool:
        """Process an acknowledgement; return False if it is not for the frame in flight (a duplicate, or too late)."""
        if not self._outgoing or self._outgoing[0].state is not SendState.IN_FLIGHT:
            return False
        outgoing = self._outgoing[0]
        if (outgoing.frame.boot, outgoing.frame.seq) != (ack.boot, ack.seq):
            return False
        outgoing.state = next_state(outgoing.state, SendEvent.ACKED)
        self._leave()
        return True

    def accept(self, frame: Frame) -> bool:
        """Record a frame of the peer; return False, and count it, if it is a duplicate.

        A frame that was written off may arrive all the same: another mote had it when its sender believed it lost. It
        is then lost no longer. PARTIAL frames are numbered apart and leave no gaps, because most of them end where
        they are merged.
        """
        is_new = self._received.setdefault(frame.boot, SequenceSet()).add(frame.seq)
        self.duplicates += not is_new
        if frame.kind is not FrameKind.PARTIAL:
            was_missing = self._settled.setdefault(frame.boot, SequenceSet()).add(frame.seq)
            self.lost -= is_new and not was_missing
        return is_new

    def missing(self) -> dict[int, Gaps]:
        """Return, by boot of the peer, the sequence numbers that have neither arrived nor been written off."""
        return {boot: gaps for boot, numbers in self._settled.items() if (gaps := tuple(numbers.missing()))}

    def last_received(self, boot: int) -> int:
        """Return the greatest sequence number of a boot that arrived; -1 if none did."""
        return self._settled[boot].greatest if boot in self._settled else -1

    def write_off(self, lost: LostFrames) -> None:
        """Count frames as lost that the peer can no longer send."""
        numbers = self._settled.setdefault(lost.boot, SequenceSet())
        for first, last in lost.gaps:
            self.lost += numbers.fill(first, last)

    def resend(self, boot: int, gaps: Gaps) -> LostFrames:
        """Queue the requested frames that are still in the resend buffer; return those that are lost."""
        requested = expand_gaps(gaps)
        self._outgoing.extend(OutgoingFrame(frame) for frame in self._sent.take(boot, requested))
        numbers = SequenceSet()
        for number in requested - {s.frame.seq for s in self._outgoing if s.frame.boot == boot}:
            numbers.add(number)
        return LostFrames(boot, numbers.ranges())


def make_ack(frame: Frame) -> Frame:
    """Return the acknowledgement of a frame, for the hop on which it came. An ACK repeats the number that it answers."""
    return Frame(
        FrameKind.ACK, frame.mote, frame.boot, frame.seq, down=not frame.down, want_ack=False,
        sender=frame.receiver, receiver=frame.sender,
    )  # fmt: skip


@dataclass(slots=True)
class Links:
    """The base station's links, one for each mote that it has sent to or received from."""

    boot: int
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    by_mote: dict[MoteId, Link] = field(default_factory=dict)

    def of(self, mote: MoteId) -> Link:
        """Return the link to a mote; make it on first use."""
        if mote not in self.by_mote:
            self.by_mote[mote] = Link(mote, self.boot, down=True, policy=self.policy)
        return self.by_mote[mote]

    def restart(self, boot: int) -> None:
        """Number frames to all motes anew, as after a start that remembers nothing of the numbers before."""
        self.boot = boot
        for link in self.by_mote.values():
            link.restart(boot)

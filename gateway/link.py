"""One link between two ends that number their frames: what was seen already, what is acknowledged, what to send again.

The base station holds one link per mote, a mote holds one to the base station; both are this class. A link does
nothing by itself: bytes, time (`now`, in milliseconds) and numbers are arguments.

An outgoing frame's life, as a table:

    QUEUED ──SENT──▶ IN_FLIGHT ──ACKED──▶ DONE
      ▲                │   └──EXHAUSTED──▶ GIVEN_UP
      └────TIMEOUT─────┘     a frame that wants no acknowledgement: QUEUED ──SENT_UNANSWERED──▶ DONE

One frame is in flight at a time. Motes have one receive buffer, and a window of one already fills a link whose round
trip is shorter than the pause between frames, which sensor networks' are. To a mote that sleeps nothing is sent before
it is heard: it listens for a moment after it has spoken.
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
    QUEUED = auto()
    IN_FLIGHT = auto()
    DONE = auto()
    GIVEN_UP = auto()


class SendEvent(Enum):
    SENT = auto()
    SENT_UNANSWERED = auto()
    ACKED = auto()
    TIMEOUT = auto()
    EXHAUSTED = auto()


TRANSITIONS = {
    (SendState.QUEUED, SendEvent.SENT): SendState.IN_FLIGHT,
    (SendState.QUEUED, SendEvent.SENT_UNANSWERED): SendState.DONE,
    (SendState.IN_FLIGHT, SendEvent.ACKED): SendState.DONE,
    (SendState.IN_FLIGHT, SendEvent.TIMEOUT): SendState.QUEUED,
    (SendState.IN_FLIGHT, SendEvent.EXHAUSTED): SendState.GIVEN_UP,
}


def next_state(state: SendState, event: SendEvent) -> SendState:
    """The state that an event leads to; an impossible event is an error of ours."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LinkError(f"{event.name} cannot happen to a frame that is {state.name}") from None


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    """How patient a link is.

    Ten seconds, because a duty-cycled mote may sleep through several; the pause grows with each attempt by `growth`, so
    that a link that is down is not shouted at. `listens_ms` is how long the peer listens after it was heard, None for a
    peer that never sleeps. `keeps` is how many frames are kept after they left, in case their gaps are asked for.
    """

    timeout_ms: int = 10_000
    attempts: int = 6
    growth: int = 2
    longest_ms: int = 300_000
    listens_ms: int | None = None
    keeps: int = 0

    def pause(self, attempt: int) -> int:
        """How long to wait for the answer to an attempt, counted from 1."""
        return min(self.timeout_ms * self.growth ** (attempt - 1), self.longest_ms)


@dataclass(slots=True)
class OutgoingFrame:
    """An outgoing frame and how far it has come."""

    frame: Frame
    state: SendState = SendState.QUEUED
    attempts: int = 0
    deadline: int = 0


class SequenceSet:
    """A set of sequence numbers as disjoint ranges: exact for ever, and small as long as little is lost."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # inclusive

    def add(self, number: int) -> bool:
        """Put a number in; False if it was in already."""
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
        """Put all numbers of an inclusive range in; how many were not in."""
        before, behind = bisect_left(self._ends, first - 1), bisect_right(self._starts, last + 1)
        fresh = last - first + 1 - self.count(first, last)
        if before < behind:
            first, last = min(first, self._starts[before]), max(last, self._ends[behind - 1])
        self._starts[before:behind], self._ends[before:behind] = [first], [last]
        return fresh

    def count(self, first: int, last: int) -> int:
        """How many there are in an inclusive range; none where it ends before it begins."""
        before, behind = bisect_left(self._ends, first), bisect_right(self._starts, last)
        within = zip(self._starts[before:behind], self._ends[before:behind], strict=True)
        return sum(max(0, min(end, last) - max(start, first) + 1) for start, end in within)

    def forget(self, below: int) -> None:
        """Leave out all that are less."""
        before = bisect_left(self._ends, below)
        del self._starts[:before], self._ends[:before]
        if self._starts:
            self._starts[0] = max(self._starts[0], below)

    @property
    def pieces(self) -> int:
        """How many ranges there are."""
        return len(self._starts)

    @property
    def greatest(self) -> int:
        """-1 if there is none."""
        return self._ends[-1] if self._ends else -1

    def ranges(self) -> Gaps:
        """The numbers, as inclusive ranges."""
        return tuple(zip(self._starts, self._ends, strict=True))

    def missing(self) -> list[tuple[int, int]]:
        """The gaps below the greatest number, from 0, as inclusive ranges: frames lost or still on their way."""
        befores = [-1, *self._ends]
        return [(end + 1, start - 1) for end, start in zip(befores, self._starts, strict=False) if end + 1 < start]


@dataclass(slots=True)
class Link:
    """The link to one peer. `down` says which way we send; `boot` is the number of our own start."""

    mote: MoteId
    boot: int
    down: bool
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    duplicates: int = 0
    lost: int = 0
    given_up: list[Frame] = field(default_factory=list)
    _next_seq: int = 0
    _heard_until: int = -1
    _kept: ResendBuffer = field(default_factory=ResendBuffer)
    _outgoing: deque[OutgoingFrame] = field(default_factory=deque)
    _received: dict[int, SequenceSet] = field(default_factory=dict)
    _settled: dict[int, SequenceSet] = field(default_factory=dict)  # what was received, or written off

    def make_frame(self, message: Message) -> Frame:
        """A message as a frame, for whoever sends it at once."""
        frame = Frame(message.kind, self.mote, self.boot, self._next_seq, message.payload, self.down, message.want_ack)
        self._next_seq += 1
        if self._next_seq > LAST_SEQ:
            self.boot, self._next_seq = self.boot + 1, 0  # SPEC.md: numbers never repeat
        return frame

    def post(self, message: Message) -> Frame:
        """Number a message and put it into the queue."""
        frame = self.make_frame(message)
        self._outgoing.append(OutgoingFrame(frame))
        return frame

    def withdraw(self, kind: FrameKind) -> None:
        """Forget the frames of a kind that were not acknowledged: they need not arrive any more."""
        self._outgoing = deque(sending for sending in self._outgoing if sending.frame.kind is not kind)

    def due(self, now: int) -> Iterator[Frame]:
        """The frames to put on the wire now, each counted as sent when it is taken; none to a peer that sleeps."""
        while self._outgoing and self.is_listening(now):
            sending = self._outgoing[0]
            if sending.state is SendState.IN_FLIGHT:
                if now < sending.deadline:
                    return
                exhausted = sending.attempts >= self.policy.attempts
                sending.state = next_state(sending.state, SendEvent.EXHAUSTED if exhausted else SendEvent.TIMEOUT)
            if sending.state is SendState.GIVEN_UP:
                self.given_up.append(self._leave())
                continue
            sending.attempts += 1
            sending.deadline = now + self.policy.pause(sending.attempts)
            event = SendEvent.SENT if sending.frame.want_ack else SendEvent.SENT_UNANSWERED
            sending.state = next_state(sending.state, event)
            if sending.state is SendState.DONE:
                self._leave()
            yield sending.frame

    def _leave(self) -> Frame:
        """The first frame leaves the queue; the last few of them are kept, should somebody ask for a gap."""
        frame = self._outgoing.popleft().frame
        self._kept.keep(frame, self.policy.keeps)
        return frame

    def note_heard(self, now: int) -> None:
        """The peer was heard: it listens for a moment."""
        if self.policy.listens_ms is not None:
            self._heard_until = max(self._heard_until, now + self.policy.listens_ms)

    def is_listening(self, now: int) -> bool:
        """Whether the peer can hear us now."""
        return self.policy.listens_ms is None or now < self._heard_until

    def next_deadline(self) -> int | None:
        """When `due` has something to say again, if nothing happens before; None if nothing waits for an answer."""
        first = self._outgoing[0] if self._outgoing else None
        return first.deadline if first and first.state is SendState.IN_FLIGHT else None

    @property
    def idle(self) -> bool:
        return not self._outgoing

    @property
    def longest_payload(self) -> int:
        """The bytes of the longest payload that is queued or in flight."""
        return max((len(sending.frame.payload) for sending in self._outgoing), default=0)

    @property
    def outstanding(self) -> frozenset[tuple[int, int, int]]:
        """The identities of the frames that are queued or in flight."""
        return frozenset(sending.frame.identity for sending in self._outgoing)

    def take_ack(self, ack: Frame) -> bool:
        """Take an acknowledgement; False if it answers nothing that is in flight (a second copy, or too late)."""
        if not self._outgoing or self._outgoing[0].state is not SendState.IN_FLIGHT:
            return False
        sending = self._outgoing[0]
        if (sending.frame.boot, sending.frame.seq) != (ack.boot, ack.seq):
            return False
        sending.state = next_state(sending.state, SendEvent.ACKED)
        self._leave()
        return True

    def accept(self, frame: Frame) -> bool:
        """Take a frame from the peer; False, and counted, if it was here before.

        One that was written off may come all the same: somebody on the way had it when its sender believed it lost.
        Of partials nothing is missed: they are numbered apart, because most of them end where they are merged.
        """
        fresh = self._received.setdefault(frame.boot, SequenceSet()).add(frame.seq)
        self.duplicates += not fresh
        if frame.kind is not FrameKind.PARTIAL:
            missed = self._settled.setdefault(frame.boot, SequenceSet()).add(frame.seq)
            self.lost -= fresh and not missed
        return fresh

    def missing(self) -> dict[int, Gaps]:
        """Per boot of the peer, the sequence numbers that have not come (yet)."""
        return {boot: gaps for boot, numbers in self._settled.items() if (gaps := tuple(numbers.missing()))}

    def last_received(self, boot: int) -> int:
        """The greatest number of a boot that came; -1 if none did."""
        return self._settled[boot].greatest if boot in self._settled else -1

    def write_off(self, lost: LostFrames) -> None:
        """The peer says that these will not come: they are missing no longer, but lost."""
        numbers = self._settled.setdefault(lost.boot, SequenceSet())
        for first, last in lost.gaps:
            self.lost += numbers.fill(first, last)

    def resend(self, boot: int, gaps: Gaps) -> LostFrames:
        """Queue what is still kept of the gaps that the peer asks for. What is neither kept nor waiting is lost."""
        asked = expand_gaps(gaps)
        self._outgoing.extend(OutgoingFrame(frame) for frame in self._kept.take(boot, asked))
        numbers = SequenceSet()
        for number in asked - {s.frame.seq for s in self._outgoing if s.frame.boot == boot}:
            numbers.add(number)
        return LostFrames(boot, numbers.ranges())


def make_ack(frame: Frame) -> Frame:
    """The answer to a frame, on the hop it came by. It has no number of its own: it repeats the one that it answers."""
    return Frame(
        FrameKind.ACK, frame.mote, frame.boot, frame.seq, down=not frame.down, want_ack=False,
        sender=frame.receiver, receiver=frame.sender,
    )  # fmt: skip


@dataclass(slots=True)
class Links:
    """The base station's links, one for each mote that was sent to or heard of."""

    boot: int
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    by_mote: dict[MoteId, Link] = field(default_factory=dict)

    def of(self, mote: MoteId) -> Link:
        if mote not in self.by_mote:
            self.by_mote[mote] = Link(mote, self.boot, down=True, policy=self.policy)
        return self.by_mote[mote]

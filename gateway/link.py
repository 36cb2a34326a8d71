"""One link between two ends that number their frames: what was seen already, what is acknowledged, what to send again.

The base station holds one link per mote, a mote holds one to the base station; both are this class. A link does
nothing by itself: bytes, time (`now`, in milliseconds) and numbers are arguments.

An outgoing frame's life, as a table:

    QUEUED ──SENT──▶ IN_FLIGHT ──ACKED──▶ DONE
      ▲                │   └──EXHAUSTED──▶ GIVEN_UP
      └────TIMEOUT─────┘     a frame that wants no acknowledgement: QUEUED ──SENT_UNANSWERED──▶ DONE

One frame is in flight at a time. Motes have one receive buffer, and a window of one already fills a link whose round
trip is shorter than the pause between frames, which sensor networks' are.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.errors import LinkError
from gateway.frame import Frame, Kind, Message, MoteId


class State(Enum):
    QUEUED = auto()
    IN_FLIGHT = auto()
    DONE = auto()
    GIVEN_UP = auto()


class Event(Enum):
    SENT = auto()
    SENT_UNANSWERED = auto()
    ACKED = auto()
    TIMEOUT = auto()
    EXHAUSTED = auto()


TRANSITIONS = {
    (State.QUEUED, Event.SENT): State.IN_FLIGHT,
    (State.QUEUED, Event.SENT_UNANSWERED): State.DONE,
    (State.IN_FLIGHT, Event.ACKED): State.DONE,
    (State.IN_FLIGHT, Event.TIMEOUT): State.QUEUED,
    (State.IN_FLIGHT, Event.EXHAUSTED): State.GIVEN_UP,
}


def after(state: State, event: Event) -> State:
    """The state that an event leads to; an impossible event is an error of ours."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LinkError(f"{event.name} cannot happen to a frame that is {state.name}") from None


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient a link is. Ten seconds, because a duty-cycled mote may sleep through several."""

    timeout_ms: int = 10_000
    attempts: int = 6


@dataclass(slots=True)
class Sending:
    """An outgoing frame and how far it has come."""

    frame: Frame
    state: State = State.QUEUED
    attempts: int = 0
    deadline: int = 0


class Numbers:
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
    policy: Policy = field(default_factory=Policy)
    duplicates: int = 0
    given_up: list[Frame] = field(default_factory=list)
    _next_seq: int = 0
    _outgoing: deque[Sending] = field(default_factory=deque)
    _received: dict[int, Numbers] = field(default_factory=dict)

    def post(self, message: Message) -> Frame:
        """Number a message and put it into the queue."""
        frame = Frame(message.kind, self.mote, self.boot, self._next_seq, message.payload, self.down, message.want_ack)
        self._next_seq += 1
        if self._next_seq > 0xFFFF:
            self.boot, self._next_seq = self.boot + 1, 0  # SPEC.md: numbers never repeat
        self._outgoing.append(Sending(frame))
        return frame

    def due(self, now: int) -> Iterator[Frame]:
        """The frames to put on the wire now, each counted as sent when it is taken."""
        while self._outgoing:
            sending = self._outgoing[0]
            if sending.state is State.IN_FLIGHT:
                if now < sending.deadline:
                    return
                exhausted = sending.attempts >= self.policy.attempts
                sending.state = after(sending.state, Event.EXHAUSTED if exhausted else Event.TIMEOUT)
            if sending.state is State.GIVEN_UP:
                self.given_up.append(self._outgoing.popleft().frame)
                continue
            sending.attempts += 1
            sending.deadline = now + self.policy.timeout_ms
            event = Event.SENT if sending.frame.want_ack else Event.SENT_UNANSWERED
            sending.state = after(sending.state, event)
            if sending.state is State.DONE:
                self._outgoing.popleft()
            yield sending.frame

    def next_deadline(self) -> int | None:
        """When `due` has something to say again, if nothing happens before; None if nothing waits for an answer."""
        first = self._outgoing[0] if self._outgoing else None
        return first.deadline if first and first.state is State.IN_FLIGHT else None

    @property
    def idle(self) -> bool:
        return not self._outgoing

    @property
    def outstanding(self) -> frozenset[tuple[int, int, int]]:
        """The identities of the frames that are queued or in flight."""
        return frozenset(sending.frame.identity for sending in self._outgoing)

    def acknowledged(self, ack: Frame) -> bool:
        """Take an acknowledgement; False if it answers nothing that is in flight (a second copy, or too late)."""
        if not self._outgoing or self._outgoing[0].state is not State.IN_FLIGHT:
            return False
        sending = self._outgoing[0]
        if (sending.frame.boot, sending.frame.seq) != (ack.boot, ack.seq):
            return False
        sending.state = after(sending.state, Event.ACKED)
        self._outgoing.popleft()
        return True

    def accept(self, frame: Frame) -> bool:
        """Take a frame from the peer; False, and counted, if it was here before."""
        fresh = self._received.setdefault(frame.boot, Numbers()).add(frame.seq)
        self.duplicates += not fresh
        return fresh

    def missing(self) -> dict[int, list[tuple[int, int]]]:
        """Per boot of the peer, the sequence numbers that have not come (yet)."""
        return {boot: gaps for boot, numbers in self._received.items() if (gaps := numbers.missing())}


def acknowledgement(frame: Frame) -> Frame:
    """The answer to a frame, on the hop it came by. It has no number of its own: it repeats the one that it answers."""
    return Frame(
        Kind.ACK, frame.mote, frame.boot, frame.seq, down=not frame.down, want_ack=False,
        sender=frame.receiver, receiver=frame.sender,
    )  # fmt: skip


@dataclass(slots=True)
class Links:
    """The base station's links, one for each mote that was sent to or heard of."""

    boot: int
    policy: Policy = field(default_factory=Policy)
    by_mote: dict[MoteId, Link] = field(default_factory=dict)

    def of(self, mote: MoteId) -> Link:
        if mote not in self.by_mote:
            self.by_mote[mote] = Link(mote, self.boot, down=True, policy=self.policy)
        return self.by_mote[mote]

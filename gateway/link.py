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
from gateway.frame import LAST_SEQ, Frame, Kind, Message, MoteId
from gateway.payload import Gaps, Lost
from gateway.resend_buffer import Kept, numbers_of


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
    policy: Policy = field(default_factory=Policy)
    duplicates: int = 0
    lost: int = 0
    given_up: list[Frame] = field(default_factory=list)
    _next_seq: int = 0
    _heard_until: int = -1
    _kept: Kept = field(default_factory=Kept)
    _outgoing: deque[Sending] = field(default_factory=deque)
    _received: dict[int, Numbers] = field(default_factory=dict)
    _settled: dict[int, Numbers] = field(default_factory=dict)  # what was received, or written off

    def numbered(self, message: Message) -> Frame:
        """A message as a frame, for whoever sends it at once."""
        frame = Frame(message.kind, self.mote, self.boot, self._next_seq, message.payload, self.down, message.want_ack)
        self._next_seq += 1
        if self._next_seq > LAST_SEQ:
            self.boot, self._next_seq = self.boot + 1, 0  # SPEC.md: numbers never repeat
        return frame

    def post(self, message: Message) -> Frame:
        """Number a message and put it into the queue."""
        frame = self.numbered(message)
        self._outgoing.append(Sending(frame))
        return frame

    def withdraw(self, kind: Kind) -> None:
        """Forget the frames of a kind that were not acknowledged: they need not arrive any more."""
        self._outgoing = deque(sending for sending in self._outgoing if sending.frame.kind is not kind)

    def due(self, now: int) -> Iterator[Frame]:
        """The frames to put on the wire now, each counted as sent when it is taken; none to a peer that sleeps."""
        while self._outgoing and self.listening(now):
            sending = self._outgoing[0]
            if sending.state is State.IN_FLIGHT:
                if now < sending.deadline:
                    return
                exhausted = sending.attempts >= self.policy.attempts
                sending.state = after(sending.state, Event.EXHAUSTED if exhausted else Event.TIMEOUT)
            if sending.state is State.GIVEN_UP:
                self.given_up.append(self._leave())
                continue
            sending.attempts += 1
            sending.deadline = now + self.policy.pause(sending.attempts)
            event = Event.SENT if sending.frame.want_ack else Event.SENT_UNANSWERED
            sending.state = after(sending.state, event)
            if sending.state is State.DONE:
                self._leave()
            yield sending.frame

    def _leave(self) -> Frame:
        """The first frame leaves the queue; the last few of them are kept, should somebody ask for a gap."""
        frame = self._outgoing.popleft().frame
        self._kept.keep(frame, self.policy.keeps)
        return frame

    def heard(self, now: int) -> None:
        """The peer was heard: it listens for a moment."""
        if self.policy.listens_ms is not None:
            self._heard_until = max(self._heard_until, now + self.policy.listens_ms)

    def listening(self, now: int) -> bool:
        """Whether the peer can hear us now."""
        return self.policy.listens_ms is None or now < self._heard_until

    def next_deadline(self) -> int | None:
        """When `due` has something to say again, if nothing happens before; None if nothing waits for an answer."""
        first = self._outgoing[0] if self._outgoing else None
        return first.deadline if first and first.state is State.IN_FLIGHT else None

    @property
    def idle(self) -> bool:
        return not self._outgoing

    @property
    def longest(self) -> int:
        """The bytes of the longest payload that is queued or in flight."""
        return max((len(sending.frame.payload) for sending in self._outgoing), default=0)

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
        self._leave()
        return True

    def accept(self, frame: Frame) -> bool:
        """Take a frame from the peer; False, and counted, if it was here before.

        One that was written off may come all the same: somebody on the way had it when its sender believed it lost.
        Of partials nothing is missed: they are numbered apart, because most of them end where they are merged.
        """
        fresh = self._received.setdefault(frame.boot, Numbers()).add(frame.seq)
        self.duplicates += not fresh
        if frame.kind is not Kind.PARTIAL:
            missed = self._settled.setdefault(frame.boot, Numbers()).add(frame.seq)
            self.lost -= fresh and not missed
        return fresh

    def missing(self) -> dict[int, Gaps]:
        """Per boot of the peer, the sequence numbers that have not come (yet)."""
        return {boot: gaps for boot, numbers in self._settled.items() if (gaps := tuple(numbers.missing()))}

    def last_seen(self, boot: int) -> int:
        """The greatest number of a boot that came; -1 if none did."""
        return self._settled[boot].greatest if boot in self._settled else -1

    def write_off(self, lost: Lost) -> None:
        """The peer says that these will not come: they are missing no longer, but lost."""
        numbers = self._settled.setdefault(lost.boot, Numbers())
        for first, last in lost.gaps:
            self.lost += numbers.fill(first, last)

    def send_again(self, boot: int, gaps: Gaps) -> Lost:
        """Queue what is still kept of the gaps that the peer asks for. What is neither kept nor waiting is lost."""
        asked = numbers_of(gaps)
        self._outgoing.extend(Sending(frame) for frame in self._kept.take(boot, asked))
        numbers = Numbers()
        for number in asked - {s.frame.seq for s in self._outgoing if s.frame.boot == boot}:
            numbers.add(number)
        return Lost(boot, numbers.ranges())


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

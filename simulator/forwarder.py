"""The forwarder of a mote: accepts frames for the mote, forwards all others along the tree, and keeps to the radio slots."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from acquisition.payload import decode_time, encode_time
from gateway.codec import encode
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, FrameKind, MoteId
from simulator.clock import Clock
from simulator.energy import EnergyAccount, Timing
from simulator.indirect_queue import IndirectQueue
from simulator.kernel import MS, Kernel
from simulator.mac import MacLayer, RetryPolicy, keep_unchanged, sender_of
from simulator.parent_failure import ParentFailureDetector
from simulator.radio_medium import RadioMedium
from simulator.radio_slots import RadioSlots, Slot
from simulator.trace import Trace

POLL_WINDOW_US = 100 * MS
"""A mote that polls its parent sleeps again when no frame has come for so long."""


class ForwarderOwner(Protocol):
    """The mote that a forwarder belongs to."""

    def receive(self, frame: Frame) -> bool:
        """Process a frame for this mote; returns whether it is valid."""

    def merge(self, frame: Frame) -> bool:
        """Keep a frame that is on its way up; False if it is to be forwarded."""

    def on_slot_begin(self, next_round: int) -> None:
        """The mote's own slot begins; `next_round` is the begin of the next round, in microseconds of its clock."""

    def report_neighbours(self) -> None:
        """The mote's links may have changed."""

    def orphaned(self) -> None:
        """The parent acknowledges nothing any more."""


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of an agenda, by the mote's clock."""

    duty: int
    slots: RadioSlots
    clock: Clock
    number: int

    def true_time(self, us: int) -> int:
        """The true time `us` microseconds after the round begins."""
        return self.clock.true_time(self.number * self.slots.round_us + us)


class Forwarder:
    """The radio of a mote under an agenda or without one.

    `orphaned` is set while the mote has left a parent that takes nothing, until the station assigns it another.
    """

    def __init__(self, number: int, timing: Timing, kernel: Kernel, medium: RadioMedium, trace: Trace, owner: ForwarderOwner,
                 retry: RetryPolicy) -> None:  # fmt: skip
        self.number, self.timing, self.account = number, timing, EnergyAccount()
        self.parent: int = BROADCAST
        self.orphaned = False
        self._kernel, self._medium, self._trace, self._owner = kernel, medium, trace, owner
        self._mac = MacLayer(self, kernel, medium, trace, retry, on_outcome=self._note_outcome,
                             expects_more=lambda: bool(self._children_with_more))  # fmt: skip
        self._downward_mac = MacLayer(self, kernel, medium, trace, replace(retry, again=0), self._count_awake)
        self._indirect = IndirectQueue(self._downward_mac)
        self._routes: dict[int, int] = {}  # by mote below: the child through which its frames came
        self._always_on: set[int] = set()  # neighbours without an agenda, by the frames received from them
        self._broadcasts: set[tuple[int, int, int]] = set()  # frames that were sent to all: no frame runs in circles
        self.on = False
        self._next_slots: RadioSlots | None = None  # the agenda to keep to …
        self._slots: RadioSlots | None = None  # … from its first round on
        self._duty = 0  # the number of the agenda: events that were scheduled under others are void
        self._open_receive_slots = 0
        self._children_with_more: set[int] = set()  # children whose last frame announced another one
        self._since = 0  # when the radio went on to stay on, or when the mote's own slot began
        self._sending = False
        self.taken_at = 0  # when the parent last acknowledged a frame
        self._parent_failure = ParentFailureDetector()
        self._number = 0  # of the present round
        self._hung = False
        self._parent_has_frames = False
        self._polls_left = 0  # rounds in which the mote polls, because a frame came down and more may follow …
        self._listens_left: Counter[int] = Counter()  # … and rounds in which it listens to a child that took a frame
        self._polls = False  # in this round
        self._awaiting: tuple[int, int] | None = None  # awake after a poll: since, and until

    # --- on and off ---

    def switch_on(self) -> None:
        """Switch the radio on. It stays on until there is an agenda."""
        self.on, self._next_slots, self._slots, self._since = True, None, None, self._kernel.now
        self._hung = False
        self._mac.use_slots(False)
        self._medium.changed()

    def switch_off(self) -> None:
        """Switch the radio off and lose all memory."""
        self.settle()
        self.on, self._next_slots, self._slots, self._sending = False, None, None, False
        self._open_receive_slots = 0
        self._duty += 1
        self._routes.clear()
        self._always_on.clear()
        self._broadcasts.clear()
        self._indirect.forget()
        self._downward_mac.forget()
        self._parent_has_frames, self._polls_left, self._awaiting = False, 0, None
        self._listens_left.clear()
        self._mac.forget()
        self._parent_failure = ParentFailureDetector()
        self.adopt(BROADCAST)
        self._medium.changed()

    def hang(self) -> None:
        """Acknowledge every frame and process none."""
        self._hung = True
        self._duty += 1
        self._next_slots = None
        self._end_agenda()
        self._mac.forget()
        self._downward_mac.forget()
        self._indirect.forget()

    def follow(self, slots: RadioSlots | None, clock: Clock) -> None:
        """Keep to an agenda from its first round on, or from the next round if that is over. None ends the agenda.

        The agenda before it holds until then. A clock that was set takes effect at that round, too.
        """
        if slots == self._next_slots:
            return
        self._next_slots = slots
        if slots is None:
            self._duty += 1
            self._end_agenda()
            return
        self.parent = slots.parent
        first = max(slots.first, -(-clock.local_time(self._kernel.now) // slots.round_us))
        time = max(clock.true_time(first * slots.round_us), self._kernel.now)
        self._kernel.at(time, partial(self._start, slots, clock), priority=-1)

    def _end_agenda(self) -> None:
        if self._slots:
            self._end_sending()
            self._stop_waiting()
            self._trace.record(self._kernel.now, self.number, "listens")
            self._slots, self._open_receive_slots, self._since = None, 0, self._kernel.now
            self._mac.use_slots(False)

    def _start(self, slots: RadioSlots, clock: Clock) -> None:
        if slots is self._next_slots:
            self._duty += 1
            if self.is_always_on:
                self.settle()
                self._trace.record(self._kernel.now, self.number, "sleeps")
            self._slots, self._open_receive_slots = slots, 0
            self._mac.use_slots(True)
            self._begin_round(self._duty, slots, clock)

    def _begin_round(self, duty: int, slots: RadioSlots, clock: Clock) -> None:
        """Schedule the slots of the round that begins, and the next round, by the clock as it is now."""
        if duty != self._duty:
            return
        number = (clock.local_time(self._kernel.now) + slots.round_us // 2) // slots.round_us
        current = _Round(duty, slots, clock, number)
        self._children_with_more.clear()
        self._number = number
        self._polls = self._polls_left > 0 or slots.polls(number)
        listens = slots.due(number) or slots.children_poll(number)
        for child, slot in slots.listen.items():
            if listens or child in self._listens_left:
                self._schedule_receiving(current, child, slot)
        if self._polls or slots.due(number):
            self._schedule_sending(current, slots.send)
        self._polls_left = max(0, self._polls_left - 1)
        self._listens_left -= Counter(self._listens_left.keys())
        self._schedule(current.true_time(slots.round_us), self._begin_round, duty, slots, clock, priority=-1)

    def _schedule(self, time: int, action: Callable[..., None], *arguments: object, priority: int = 0) -> None:
        self._kernel.at(max(time, self._kernel.now), partial(action, *arguments), priority)

    def _schedule_receiving(self, current: _Round, child: int, slot: Slot) -> None:
        begin, end = current.true_time(slot[0]), current.true_time(slot[1])
        self._schedule(begin, self._begin_receiving, current, child, slot, end, priority=-1)

    def _begin_receiving(self, current: _Round, child: int, slot: Slot, until: int) -> None:
        if current.duty == self._duty:
            self._open_receive_slots += 1
            self._children_with_more.discard(child)
            self._schedule(until, self._end_receiving, current, child, slot, self._kernel.now, priority=1)

    def _end_receiving(self, current: _Round, child: int, slot: Slot, since: int) -> None:
        if current.duty == self._duty:
            self._open_receive_slots -= 1
            self._count_awake_since(since)
            if child in self._children_with_more and (again := current.slots.next_in_round(slot)):
                self._schedule_receiving(current, child, again)

    def _schedule_sending(self, current: _Round, slot: Slot) -> None:
        until = current.true_time(slot[1])
        self._schedule(current.true_time(slot[0]), self._open, current, slot, until)
        self._schedule(until, self._close, current, slot, priority=1)

    def _open(self, current: _Round, slot: Slot, until: int) -> None:
        if current.duty != self._duty:
            return
        if slot == current.slots.send:
            self._owner.on_slot_begin((current.number + 1) * current.slots.round_us)
            if self._mac.idle and self._polls:
                self._hand_over(self._poll_frame, lambda _: None)
        if not self._mac.idle:
            self._sending, self._since = True, self._kernel.now
            self._mac.open(current.number, until)

    @property
    def _poll_frame(self) -> Frame:
        """The frame that a mote sends if it has no other, so that its parent can answer with the frames it keeps (SPEC.md: ACK)."""
        return Frame(FrameKind.ACK, MoteId(self.number), 0, 0, receiver=MoteId(self.parent))

    def _close(self, current: _Round, slot: Slot) -> None:
        if current.duty != self._duty:
            return
        expected = self._mac.close()
        if not self._mac.idle:  # some frames wait for another slot
            self._end_slot()
        if expected and (again := current.slots.next_in_round(slot)):
            self._schedule_sending(current, again)

    def _end_sending(self) -> None:
        """Nothing more is to be sent in the mote's slot."""
        if self._sending:
            self._sending = False
            self._count_awake_since(self._since)

    def _count_awake_since(self, since: int) -> None:
        """Count the time from `since` on, and the start of the radio before it."""
        self._count_awake(self.timing.startup + self._kernel.now - since)

    def _count_awake(self, us: int) -> None:
        """Count time with the radio on under an agenda: in a slot, after a poll, or for a frame to a child."""
        if self._slots:
            self.account.awake_us += us
            self._trace.record(self._kernel.now, self.number, "awake", us=us)

    def settle(self) -> None:
        """Count the time that an always-on radio has been on until now."""
        if self.on and self._slots is None:
            self.account.awake_us += self._kernel.now - self._since
            self._since = self._kernel.now

    # --- frames ---

    @property
    def is_always_on(self) -> bool:
        """Whether the radio never sleeps."""
        return self._slots is None

    @property
    def listening(self) -> bool:
        return self.on and (self._slots is None or self._open_receive_slots > 0 or self._awaiting is not None)

    def has_frames_for(self, number: int) -> bool:
        return self._indirect.has_frames_for(number)

    def release(self, number: int) -> None:
        self._indirect.release(number)

    def note_pending(self) -> None:
        self._parent_has_frames = True

    def _poll(self) -> None:
        """The mote's own frames are out: stay awake for those that the parent keeps, until none comes for a while."""
        self._parent_has_frames = False
        if self._slots and self._awaiting is None:
            self._awaiting = self._kernel.now, self._kernel.now + POLL_WINDOW_US
            self._kernel.after(POLL_WINDOW_US, partial(self._keep_awake, self._kernel.now))
        self._medium.poll(self, self.parent)

    def _keep_awake(self, since: int) -> None:
        """Stay awake as long as frames come, even if the agenda changes meanwhile."""
        if self._awaiting is None or self._awaiting[0] != since:
            return
        if self._kernel.now < self._awaiting[1]:
            self._kernel.at(self._awaiting[1], partial(self._keep_awake, since))
        else:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._awaiting:
            self._count_awake_since(self._awaiting[0])
            self._awaiting = None

    def accept(self, message: bytes) -> bool:
        if self._hung:
            return True
        try:
            frame = self._medium.decode(message)
        except FrameError as error:
            self._trace.record(self._kernel.now, self.number, "rejected", code=error.code)
            return False
        sender = sender_of(frame)
        if frame.receiver == BROADCAST:
            self._always_on.add(sender)
        else:
            self._always_on.discard(sender)
        if frame.down:
            if self._awaiting:
                self._awaiting = self._awaiting[0], self._kernel.now + POLL_WINDOW_US
            self._polls_left = self._slots.rounds.poll_every if self._slots else 0
            return self._route_down(frame)
        if self.orphaned and frame.receiver == BROADCAST:
            return False  # an orphan has no way up to offer
        is_broadcast = BROADCAST in (frame.receiver, self.parent)
        (self._children_with_more.add if frame.pending else self._children_with_more.discard)(sender)
        if frame.is_poll:
            return True
        again = frame.mote == self.number or (is_broadcast and frame.identity in self._broadcasts)
        if not again:
            self._routes[frame.mote] = sender
            if not self._owner.merge(frame):
                if frame.kind is FrameKind.PARTIAL and self.parent == BROADCAST:
                    return False  # several motes might take it
                self.send_up(frame, lambda _: None)
        return True

    def report_neighbours(self) -> None:
        if not self._hung:
            self._owner.report_neighbours()

    def adopt(self, parent: int) -> None:
        """Make a neighbour the parent from now on; frames for the one before go to it."""
        before, self.parent = self.parent, parent
        self.orphaned = False
        if parent != BROADCAST:
            self._parent_failure.begin(parent)
        if before != parent and BROADCAST not in (before, parent):
            self._mac.redirect(MoteId(before), MoteId(parent))

    def leave_parent(self) -> None:
        """End the agenda and listen to all neighbours until the station assigns another parent."""
        self._duty += 1
        self._next_slots = None
        self._end_agenda()
        self.orphaned = True

    def broadcast(self, frame: Frame, done: Callable[[bool], None]) -> None:
        """Send a frame of this mote to all neighbours."""
        if self.on and not self._hung:
            self._broadcasts.add(frame.identity)
            sent = replace(frame, sender=MoteId(self.number), receiver=MoteId(BROADCAST))
            self._downward_mac.hand_over(sent, done)

    def _note_outcome(self, receiver: int, known: bool) -> None:
        """Count the hand-overs in a row that the parent did not acknowledge."""
        if receiver != self.parent or receiver == BROADCAST:
            return
        if known:
            self.orphaned, self.taken_at = False, self._kernel.now
            self._parent_failure.succeed()
        elif self._parent_failure.fail(self._kernel.now, self._number if self._slots else None):
            self._owner.orphaned()

    def send_up(self, frame: Frame, done: Callable[[bool], None]) -> None:
        """Send a frame to the parent in its turn; without a parent, to all neighbours."""
        if self.parent == BROADCAST:
            self._broadcasts.add(frame.identity)
        again = frame.repeated and frame.kind is not FrameKind.PARTIAL  # a partial is marked anew on each hop
        onward = replace(frame, sender=MoteId(self.number), receiver=MoteId(self.parent), repeated=again, pending=False)
        self._hand_over(onward, done)

    def _route_down(self, frame: Frame) -> bool:
        if frame.mote in (self.number, BROADCAST):
            return self._owner.receive(frame)
        next_hop = frame.route[0] if frame.route else self._routes.get(frame.mote)
        if next_hop is None:
            self._trace.record(
                self._kernel.now, self.number, "stuck", kind=frame.kind.name, to=frame.mote, seq=frame.seq
            )
            return False
        onward = replace(frame, sender=MoteId(self.number), receiver=MoteId(next_hop), route=frame.route[1:])
        is_time = frame.kind is FrameKind.TIME
        refresh = partial(advance_time, self.timing, self._kernel.now) if is_time else keep_unchanged
        at_once = self._slots is None or next_hop in self._always_on
        self._indirect.send(onward, at_once, partial(self._expect_reply, next_hop), refresh)
        return True

    def _expect_reply(self, child: int) -> None:
        """A child has taken a frame: listen to it in the rounds in which it polls."""
        if self._slots:
            self._listens_left[child] = self._slots.rounds.poll_every

    def _hand_over(self, frame: Frame, done: Callable[[bool], None]) -> None:
        if self.on and not self._hung:
            self._mac.hand_over(frame, partial(self._end_hand_over, done))

    def _end_hand_over(self, done: Callable[[bool], None], taken: bool) -> None:
        if self._mac.idle:
            self._end_slot()
        done(taken)

    def _end_slot(self) -> None:
        self._end_sending()
        if self._parent_has_frames:
            self._poll()


def advance_time(timing: Timing, since: int, frame: Frame, now: int) -> Frame:
    """The TIME frame of an attempt at `now`: its time is that of its arrival (gateway/SPEC.md). `since` is when it came."""
    ms, tick_ms = decode_time(frame.payload, frame.mote)
    on_the_way = now - since + timing.turnaround + timing.airtime(len(encode(frame)))
    return replace(frame, payload=encode_time(ms + round(on_the_way / MS), tick_ms))

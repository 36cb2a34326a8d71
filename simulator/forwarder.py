"""The radio of a mote: hears what is meant for it, passes on what is on its way, and sleeps where an agenda lets it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from acquisition.payload import decode_time, encode_time
from gateway.codec import decode, encode
from gateway.errors import FrameError
from gateway.frame import BROADCAST, Frame, FrameKind, MoteId
from simulator.clock import Clock
from simulator.energy import EnergyAccount, Timing
from simulator.indirect_queue import IndirectQueue
from simulator.kernel import MS, Kernel
from simulator.mac import MacLayer, RetryPolicy, keep_unchanged
from simulator.radio_medium import RadioMedium
from simulator.radio_slots import RadioSlots, Slot
from simulator.trace import Trace

POLL_WINDOW_US = 100 * MS
"""Who stays awake for what its parent has goes to sleep when nothing has come for so long."""
FRUITLESS, FRUITLESS_US = 3, 60_000 * MS
"""A parent that has acknowledged none of so many hand-overs, for so long, is none any more."""


class ForwarderOwner(Protocol):
    """The mote whose radio it is."""

    def receive(self, frame: Frame) -> bool:
        """Do what a frame says; whether it makes sense."""

    def merge(self, frame: Frame) -> bool:
        """Keep a frame that is on its way up; False where it is to go on."""

    def on_slot_begin(self, next_round: int) -> None:
        """Our slot begins."""

    def report_neighbours(self) -> None:
        """Whom we hear may not be what it was."""

    def orphaned(self) -> None:
        """Our parent has taken nothing for long."""


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of some orders, by a clock."""

    duty: int
    slots: RadioSlots
    clock: Clock
    number: int

    def true_time(self, us: int) -> int:
        """The moment that is so long after its beginning."""
        return self.clock.true_time(self.number * self.slots.round_us + us)


class Forwarder:
    """`forsaken` is who has left a parent that takes nothing, and was told no other yet."""

    def __init__(self, number: int, timing: Timing, kernel: Kernel, air: RadioMedium, trace: Trace, owner: ForwarderOwner,
                 patience: RetryPolicy) -> None:  # fmt: skip
        self.number, self.timing, self.account = number, timing, EnergyAccount()
        self.parent: int = BROADCAST
        self.orphaned = False
        self._kernel, self._air, self._trace, self._owner = kernel, air, trace, owner
        self._carrier = MacLayer(self, kernel, air, trace, patience, tried=self._tried,
                                more=lambda: bool(self._more))  # fmt: skip
        self._down = MacLayer(self, kernel, air, trace, replace(patience, again=0), self._awake_for)
        self._held = IndirectQueue(self._down)
        self._below: dict[int, int] = {}  # whoever was heard through a child, and through which
        self._awake: set[int] = set()  # neighbours that have no agenda, as far as was heard
        self._passed: set[tuple[int, int, int]] = set()  # what was sent to whoever hears it, so that it ends somewhere
        self.on = False
        self._told: RadioSlots | None = None  # the agenda to keep to …
        self._slots: RadioSlots | None = None  # … from its first round on
        self._duty = 0  # the number of our orders: what was planned under others is void
        self._ears = 0  # slots of children that are open now
        self._more: set[int] = set()  # children that have said in their last slot that more is to follow
        self._since = 0  # when the radio went on to stay on, or when our own slot began
        self._sending = False
        self.taken_at = 0  # when our parent has taken something the last time
        self._fruitless, self._fruitless_since = 0, 0  # hand-overs to our parent, one after the other …
        self._number, self._vain = 0, -1  # … but one a round: the present one, and the last with one in vain
        self._hung = False
        self._called = False  # the parent has something for us
        self._lively = 0  # in so many rounds more we ask, because something came down to us and more may follow …
        self._calls: Counter[int] = Counter()  # … and listen to children, to whom something went down
        self._asks = False  # in this round
        self._staying: tuple[int, int] | None = None  # awake for it since, and until

    # --- on and off ---

    def switch_on(self) -> None:
        """The radio stays on until there is an agenda."""
        self.on, self._told, self._slots, self._since = True, None, None, self._kernel.now
        self._hung = False
        self._carrier.use_slots(False)
        self._air.changed()

    def switch_off(self) -> None:
        """All that was in memory is gone."""
        self.settle()
        self.on, self._told, self._slots, self._ears, self._sending = False, None, None, 0, False
        self._duty += 1
        self._below.clear()
        self._awake.clear()
        self._passed.clear()
        self._held.forget()
        self._down.forget()
        self._called, self._lively, self._staying = False, 0, None
        self._calls.clear()
        self._carrier.forget()
        self.adopt(BROADCAST)
        self._air.changed()

    def hang(self) -> None:
        """Take everything and do nothing with it."""
        self._hung = True
        self._duty += 1
        self._told = None
        self._keep_on()
        self._carrier.forget()
        self._down.forget()
        self._held.forget()

    def follow(self, slots: RadioSlots | None, clock: Clock) -> None:
        """Keep to an agenda from the next of its rounds on, or its first; until then to the one before. None ends it.

        A clock that was set counts from then, too.
        """
        if slots == self._told:
            return
        self._told = slots
        if slots is None:
            self._duty += 1
            self._keep_on()
            return
        self.parent = slots.parent
        first = max(slots.first, -(-clock.local_time(self._kernel.now) // slots.round_us))
        time = max(clock.true_time(first * slots.round_us), self._kernel.now)
        self._kernel.at(time, partial(self._start, slots, clock), priority=-1)

    def _keep_on(self) -> None:
        if self._slots:
            self._rest()
            self._leave_off()
            self._trace.record(self._kernel.now, self.number, "listens")
            self._slots, self._ears, self._since = None, 0, self._kernel.now
            self._carrier.use_slots(False)

    def _start(self, slots: RadioSlots, clock: Clock) -> None:
        if slots is self._told:
            self._duty += 1
            if self.is_always_on:
                self.settle()
                self._trace.record(self._kernel.now, self.number, "sleeps")
            self._slots, self._ears = slots, 0
            self._carrier.use_slots(True)
            self._round(self._duty, slots, clock)

    def _round(self, duty: int, slots: RadioSlots, clock: Clock) -> None:
        """Plan the slots of the round that begins, and the next round, by the clock as it is now."""
        if duty != self._duty:
            return
        number = (clock.local_time(self._kernel.now) + slots.round_us // 2) // slots.round_us
        round = _Round(duty, slots, clock, number)
        self._more.clear()
        self._number = number
        self._asks = self._lively > 0 or slots.asks(number)
        listens = slots.due(number) or slots.children_ask(number)
        for child, slot in slots.listen.items():
            if listens or child in self._calls:
                self._plan_listening(round, child, slot)
        if self._asks or slots.due(number):
            self._plan_sending(round, slots.send)
        self._lively = max(0, self._lively - 1)
        self._calls -= Counter(self._calls.keys())
        self._plan(round.true_time(slots.round_us), self._round, duty, slots, clock, priority=-1)

    def _plan(self, time: int, action: Callable[..., None], *arguments: object, priority: int = 0) -> None:
        self._kernel.at(max(time, self._kernel.now), partial(action, *arguments), priority)

    def _plan_listening(self, round: _Round, child: int, slot: Slot) -> None:
        self._plan(round.true_time(slot[0]), self._listen, round, child, slot, round.true_time(slot[1]), priority=-1)

    def _listen(self, round: _Round, child: int, slot: Slot, until: int) -> None:
        if round.duty == self._duty:
            self._ears += 1
            self._more.discard(child)
            self._plan(until, self._listen_no_more, round, child, slot, self._kernel.now, priority=1)

    def _listen_no_more(self, round: _Round, child: int, slot: Slot, since: int) -> None:
        if round.duty == self._duty:
            self._ears -= 1
            self._awake_since(since)
            if child in self._more and (again := round.slots.next_in_round(slot)):
                self._plan_listening(round, child, again)

    def _plan_sending(self, round: _Round, slot: Slot) -> None:
        until = round.true_time(slot[1])
        self._plan(round.true_time(slot[0]), self._open, round, slot, until)
        self._plan(until, self._close, round, slot, priority=1)

    def _open(self, round: _Round, slot: Slot, until: int) -> None:
        if round.duty != self._duty:
            return
        if slot == round.slots.send:
            self._owner.on_slot_begin((round.number + 1) * round.slots.round_us)
            if self._carrier.idle and self._asks:
                self._hand_over(self._question, lambda _: None)
        if not self._carrier.idle:
            self._sending, self._since = True, self._kernel.now
            self._carrier.open(round.number, until)

    @property
    def _question(self) -> Frame:
        """What is said where there is nothing else to say, so as to be told something (SPEC.md: ACK)."""
        return Frame(FrameKind.ACK, MoteId(self.number), 0, 0, receiver=MoteId(self.parent))

    def _close(self, round: _Round, slot: Slot) -> None:
        if round.duty != self._duty:
            return
        expected = self._carrier.close()
        if not self._carrier.idle:  # some waits for another slot
            self._slot_over()
        if expected and (again := round.slots.next_in_round(slot)):
            self._plan_sending(round, again)

    def _rest(self) -> None:
        """Nothing more is to be sent in our slot."""
        if self._sending:
            self._sending = False
            self._awake_since(self._since)

    def _awake_since(self, since: int) -> None:
        """Starting the radio comes before."""
        self._awake_for(self.timing.startup + self._kernel.now - since)

    def _awake_for(self, us: int) -> None:
        """In our slots, for what our parent has for us, or for a frame to a child."""
        if self._slots:
            self.account.awake_us += us
            self._trace.record(self._kernel.now, self.number, "awake", us=us)

    def settle(self) -> None:
        """Count the time that the radio has been on until now."""
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
        return self.on and (self._slots is None or self._ears > 0 or self._staying is not None)

    def has_frames_for(self, number: int) -> bool:
        return self._held.has_frames_for(number)

    def release(self, number: int) -> None:
        self._held.release(number)

    def pending(self) -> None:
        self._called = True

    def _ask(self) -> None:
        """Our own frames are out: stay awake for what the parent has, until nothing comes for a while."""
        self._called = False
        if self._slots and self._staying is None:
            self._staying = self._kernel.now, self._kernel.now + POLL_WINDOW_US
            self._kernel.after(POLL_WINDOW_US, partial(self._stay, self._kernel.now))
        self._air.ask(self, self.parent)

    def _stay(self, since: int) -> None:
        """As long as something comes, whatever our orders are by then."""
        if self._staying is None or self._staying[0] != since:
            return
        if self._kernel.now < self._staying[1]:
            self._kernel.at(self._staying[1], partial(self._stay, since))
        else:
            self._leave_off()

    def _leave_off(self) -> None:
        if self._staying:
            self._awake_since(self._staying[0])
            self._staying = None

    def accept(self, message: bytes) -> bool:
        if self._hung:
            return True
        try:
            frame = decode(message, self._air.mtu)
        except FrameError as error:
            self._trace.record(self._kernel.now, self.number, "rejected", code=error.code)
            return False
        if frame.receiver == BROADCAST:
            self._awake.add(frame.sender)
        else:
            self._awake.discard(frame.sender)
        if frame.down:
            if self._staying:
                self._staying = self._staying[0], self._kernel.now + POLL_WINDOW_US
            self._lively = self._slots.rounds.asks if self._slots else 0
            return self._descend(frame)
        if self.orphaned and frame.receiver == BROADCAST:
            return False  # who has no way itself is no help
        for_all = BROADCAST in (frame.receiver, self.parent)
        (self._more.add if frame.pending else self._more.discard)(frame.sender)
        if frame.is_poll:
            return True
        again = frame.mote == self.number or (for_all and frame.identity in self._passed)
        if not again:
            self._below[frame.mote] = frame.sender
            if not self._owner.merge(frame):
                if frame.kind is FrameKind.PARTIAL and self.parent == BROADCAST:
                    return False  # several might have it then
                self.send_up(frame, lambda _: None)
        return True

    def report_neighbours(self) -> None:
        if not self._hung:
            self._owner.report_neighbours()

    def adopt(self, parent: int) -> None:
        """From now on that one is our parent."""
        before, self.parent = self.parent, parent
        self.orphaned, self._fruitless = False, 0
        if before != parent and BROADCAST not in (before, parent):
            self._carrier.redirect(MoteId(before), MoteId(parent))

    def leave_parent(self) -> None:
        """Our parent is none any more: listen to anybody until we are told another."""
        self._duty += 1
        self._told = None
        self._keep_on()
        self.orphaned = True

    def broadcast(self, frame: Frame, done: Callable[[bool], None]) -> None:
        """Give a frame of our own to whoever hears it."""
        if self.on and not self._hung:
            self._passed.add(frame.identity)
            sent = replace(frame, sender=MoteId(self.number), receiver=MoteId(BROADCAST))
            self._down.hand_over(sent, done)

    def _tried(self, receiver: int, known: bool) -> None:
        """What became of a hand-over."""
        if receiver != self.parent or receiver == BROADCAST:
            return
        if known:
            self.orphaned, self._fruitless, self.taken_at = False, 0, self._kernel.now
            return
        if self._slots:
            if self._vain == self._number:
                return
            self._vain = self._number
        if not self._fruitless:
            self._fruitless_since = self._kernel.now
        self._fruitless += 1
        if self._fruitless >= FRUITLESS and self._kernel.now - self._fruitless_since >= FRUITLESS_US:
            self._owner.orphaned()

    def send_up(self, frame: Frame, done: Callable[[bool], None]) -> None:
        """Give a frame to the parent in its turn; without a parent, to whoever hears it."""
        if self.parent == BROADCAST:
            self._passed.add(frame.identity)
        again = frame.repeated and frame.kind is not FrameKind.PARTIAL  # which says so of each hop by itself
        onward = replace(frame, sender=MoteId(self.number), receiver=MoteId(self.parent), repeated=again, pending=False)
        self._hand_over(onward, done)

    def _descend(self, frame: Frame) -> bool:
        if frame.mote in (self.number, BROADCAST):
            return self._owner.receive(frame)
        following = frame.route[0] if frame.route else self._below.get(frame.mote)
        if following is None:
            self._trace.record(
                self._kernel.now, self.number, "stuck", kind=frame.kind.name, to=frame.mote, seq=frame.seq
            )
            return False
        onward = replace(frame, sender=MoteId(self.number), receiver=following, route=frame.route[1:])
        ageing = (
            partial(advance_time, self.timing, self._kernel.now) if frame.kind is FrameKind.TIME else keep_unchanged
        )
        self._held.send(onward, self._slots is None or following in self._awake, partial(self._lead, following), ageing)
        return True

    def _lead(self, child: int) -> None:
        """It has taken something from us."""
        if self._slots:
            self._calls[child] = self._slots.rounds.asks

    def _hand_over(self, frame: Frame, done: Callable[[bool], None]) -> None:
        if self.on and not self._hung:
            self._carrier.hand_over(frame, partial(self._handed_over, done))

    def _handed_over(self, done: Callable[[bool], None], taken: bool) -> None:
        if self._carrier.idle:
            self._slot_over()
        done(taken)

    def _slot_over(self) -> None:
        self._rest()
        if self._called:
            self._ask()


def advance_time(timing: Timing, since: int, frame: Frame, now: int) -> Frame:
    """A TIME as it is passed on: by then it will be so much later (gateway/SPEC.md)."""
    ms, tick_ms = decode_time(frame.payload, frame.mote)
    on_the_way = now - since + timing.turnaround + timing.airtime(len(encode(frame)))
    return replace(frame, payload=encode_time(ms + round(on_the_way / MS), tick_ms))

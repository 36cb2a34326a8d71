"""The radio medium: the cost of a frame on the air, which radios receive it, and which frames collide.

`LossyChannel` has a delivery ratio for each link and direction, and bursts of loss. `NullChannel` loses nothing and links all
radios. `RadioMedium` works with both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from acquisition.arrays import AnyArray
from gateway.codec import decode
from gateway.frame import BROADCAST, MAX_FRAME, Frame
from simulator.counter_rng import MASK, Purpose, draw, uniform
from simulator.energy import EnergyAccount, Timing
from simulator.kernel import MS, Kernel
from simulator.trace import Trace

PERFECT = 255
AUDIBLE = 0.5 / PERFECT
"""Motes report a link with a lower ratio as absent, and its frames collide with no other."""
ATTEMPT_LIMIT = 64
"""The most attempts at one hand-over, for the numbering of draws."""
NOTICE_US = 60_000 * MS
"""The time after which a radio notices that its links have changed."""

Number = TypeVar("Number", int, AnyArray)


class RadioNode(Protocol):
    """A radio on the medium: that of a mote or of a gateway."""

    number: int
    account: EnergyAccount
    timing: Timing
    on: bool

    @property
    def listening(self) -> bool: ...

    def accept(self, message: bytes) -> bool:
        """Process a frame for this radio, or for all, at its first reception. True acknowledges it: the radio has taken it."""

    def has_frames_for(self, number: int) -> bool:
        """Whether frames wait here for that neighbour, which sleeps most of the time."""

    def release(self, number: int) -> None:
        """Send the frames that wait for a neighbour, which polls."""

    def note_pending(self) -> None:
        """A neighbour that acknowledged our frame has frames for us."""

    def report_neighbours(self) -> None:
        """The links of this radio may have changed."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of loss: in each epoch a good link turns bad with chance `begin`, a bad one good with chance `end`.

    A bad link delivers the share `left` of the frames that it delivers in good times.
    """

    begin: float
    end: float
    left: float

    def __post_init__(self) -> None:
        if not (0 <= self.begin and 0 < self.end and self.begin + self.end <= 1 and 0 <= self.left <= 1):
            raise ValueError(
                "expected chances `begin` and `end` that add up to at most 1, an `end` above 0 and a share `left`, found "
                f"begin {self.begin:g}, end {self.end:g}, left {self.left:g}"
            )


@dataclass(frozen=True, slots=True)
class NullChannel:
    """Delivers every frame between all radios."""

    mtu = MAX_FRAME

    def ratio(self, sender: int, receiver: int) -> float:
        return 1.0

    def is_received(self, purpose: Purpose, sender: int, receiver: int, epoch: int, attempt: int) -> bool:
        return True

    def find_receivers(self, sender: int, others: Sequence[int], epoch: int, attempt: int) -> Sequence[int]:
        return others

    def note_changed_links(self) -> None:
        """All links stay perfect."""


class LossyChannel:
    """The delivery ratio of each link and direction, which may change during the simulation.

    `mtu` is the largest frame in bytes.
    """

    def __init__(self, ratios: Mapping[tuple[int, int], float], seed: int, bursts: Bursts | None = None,
                 mtu: int = MAX_FRAME) -> None:  # fmt: skip
        self.ratios, self.mtu = dict(ratios), mtu
        self.seed, self.bursts = seed, bursts
        self._begun: dict[tuple[Purpose, int, int], int] = {}  # what all draws of a link begin with
        self._links: dict[int, tuple[AnyArray, AnyArray, AnyArray]] = {}  # by sender: receivers, ratios, begun draws

    def ratio(self, sender: int, receiver: int) -> float:
        """The share of frames that a link delivers in good times."""
        return self.ratios.get((sender, receiver), 0.0)

    def is_received(self, purpose: Purpose, sender: int, receiver: int, epoch: int, attempt: int) -> bool:
        """Whether one attempt in an epoch is received."""
        ratio = self.ratio(sender, receiver)
        if not ratio:
            return False  # as for most pairs: skip the draw
        if self.bursts and is_bad(self.bursts, self.seed, link_of(sender, receiver), epoch):
            ratio *= self.bursts.left
        return uniform(draw(epoch, attempt, begun=self._begin_draw(purpose, sender, receiver))) < ratio

    def find_receivers(self, sender: int, others: Sequence[int], epoch: int, attempt: int) -> Sequence[int]:
        """Those of `others`, ascending, that receive an attempt to reach all: as `is_received` of each, in one go."""
        if self.bursts:
            return [each for each in others if self.is_received(Purpose.FRAME, sender, each, epoch, attempt)]
        if sender not in self._links:
            there = sorted(receiver for (source, receiver), ratio in self.ratios.items() if source == sender and ratio)
            begun = [self._begin_draw(Purpose.FRAME, sender, receiver) for receiver in there]
            ratios = [self.ratio(sender, receiver) for receiver in there]
            self._links[sender] = np.array(there, np.int64), np.array(ratios), np.array(begun, np.uint64)
        receivers, ratios_of, begun_of = self._links[sender]
        found: list[int] = receivers[uniform(draw(epoch & MASK, attempt & MASK, begun=begun_of)) < ratios_of].tolist()
        return found

    def note_changed_links(self) -> None:
        """Use the ratios as they are now."""
        self._links.clear()

    def _begin_draw(self, purpose: Purpose, sender: int, receiver: int) -> int:
        key = purpose, sender, receiver
        if key not in self._begun:
            self._begun[key] = draw(self.seed, purpose, link_of(sender, receiver))
        return self._begun[key]


def link_of(sender: Number, receiver: Number) -> Number:
    """The number that names a link and direction in draws; for single numbers and for arrays."""
    return sender << 16 | receiver


def is_bad(bursts: Bursts, seed: int, link: int, epoch: int) -> bool:
    """Whether a link is bad in an epoch (the Gilbert-Elliott model).

    A draw below `begin` makes the link bad in either state, one in the last `end` makes it good, any other leaves its state.
    These are the transition probabilities of the chain, but its state follows from the last decisive draw alone.
    """
    while epoch >= 0:
        luck = uniform(draw(seed, Purpose.BURST, link, epoch))
        if luck < bursts.begin:
            return True
        if luck >= 1 - bursts.end:
            return False
        epoch -= 1
    return False


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """One attempt at a hand-over: the number of the hand-over, and the epoch and the number that name its draw."""

    number: int
    epoch: int
    draw: int


@dataclass(frozen=True, slots=True)
class _Transmission:
    sender: int
    begin: int
    end: int


class RadioMedium:
    """Carries frames between radios. `cut` isolates a radio in both directions, `mend` reconnects it."""

    def __init__(self, kernel: Kernel, trace: Trace, channel: NullChannel | LossyChannel) -> None:
        self.channel = channel
        self._kernel, self._trace = kernel, trace
        self._nodes: dict[int, RadioNode] = {}
        self._cut: set[int] = set()
        self._slotted: list[_Transmission] = []
        self._hand_overs = 0
        self._noticed_at = -1
        self._last_taken: dict[tuple[int, int], int] = {}  # by sender and receiver: the last hand-over that was taken
        self._decoded: tuple[bytes, Frame] | None = None  # the message that was decoded last

    @property
    def mtu(self) -> int:
        """The largest frame in bytes."""
        return self.channel.mtu

    def decode(self, message: bytes) -> Frame:
        """The frame of a message. Raises FrameError. All receivers of a broadcast share one decoding."""
        if self._decoded is None or self._decoded[0] != message:
            self._decoded = message, decode(message, self.mtu)
        return self._decoded[1]

    def join(self, node: RadioNode) -> None:
        """Add a radio. Raises ValueError if its number is in use."""
        if node.number in self._nodes:
            raise ValueError(f"there are two radios with the number {node.number}")
        self._nodes[node.number] = node

    def number(self) -> int:
        """A new number for a hand-over, by which the medium recognises its copies."""
        self._hand_overs += 1
        return self._hand_overs

    def attempt(self, message: bytes, sender: RadioNode, receiver: int, key: AttemptKey, slotted: bool,
                done: Callable[[bool, bool], None]) -> None:  # fmt: skip
        """Transmit once. Calls `done(came, known)`: whether a receiver took the frame, and whether the sender knows.

        A receiver acknowledges a copy of a frame that it has taken: its first acknowledgement was lost.

        Transmissions in slots of an agenda collide with others at the same time. Outside of agendas radios are taken to
        wait for each other.
        """
        begin = self._kernel.now + sender.timing.turnaround
        transmission = _Transmission(sender.number, begin, begin + sender.timing.airtime(len(message)))
        sender.account.send_us += transmission.end - begin
        if slotted:
            self._slotted = [other for other in self._slotted if other.end > self._kernel.now]
            self._slotted.append(transmission)
        self._kernel.at(transmission.end, partial(self._arrive, message, sender, receiver, key, transmission, done))

    def _arrive(self, message: bytes, sender: RadioNode, receiver: int, key: AttemptKey, transmission: _Transmission,
                done: Callable[[bool, bool], None]) -> None:  # fmt: skip
        came = known = False
        numbers: Sequence[int] = (receiver,)
        may_collide, is_for_all = transmission in self._slotted, receiver == BROADCAST
        if is_for_all:
            numbers = [number for number in sorted(self._nodes) if number != sender.number]
            if not may_collide:
                numbers = self.channel.find_receivers(sender.number, numbers, key.epoch, key.draw)
        for number in numbers:
            node = self._nodes.get(number)
            if node is None or not node.listening or self._cut & {sender.number, number}:
                continue
            if may_collide and self._collides(transmission, number):
                self._trace.record(transmission.end, number, "disturbed", sender=sender.number)
            elif (is_for_all and not may_collide) or self.channel.is_received(
                Purpose.FRAME, sender.number, number, key.epoch, key.draw
            ):
                taken = self._deliver(message, sender.number, node, key.number)
                came = came or taken
                if taken and receiver != BROADCAST:
                    node.account.send_us += node.timing.ack
                    known = self.channel.is_received(Purpose.ACK, number, sender.number, key.epoch, key.draw)
                    if known and node.has_frames_for(sender.number):
                        sender.note_pending()
        self._kernel.at(transmission.end + sender.timing.turnaround + sender.timing.ack, partial(done, came, known))

    def _deliver(self, message: bytes, sender: int, node: RadioNode, hand_over: int) -> bool:
        """Whether a radio takes a frame, now or at an earlier attempt of the same hand-over."""
        if self._last_taken.get((sender, node.number)) == hand_over:
            return True
        taken = node.accept(message)
        if taken:
            self._last_taken[sender, node.number] = hand_over
        return taken

    def _collides(self, transmission: _Transmission, receiver: int) -> bool:
        return any(
            other.begin < transmission.end
            and transmission.begin < other.end
            and other.sender != transmission.sender
            and (other.sender == receiver or self.channel.ratio(other.sender, receiver) > AUDIBLE)
            for other in self._slotted
        )

    def poll(self, sender: RadioNode, receiver: int) -> None:
        """`sender` listens: `receiver`, which has just acknowledged its frame, may send the frames that wait for it."""
        self._trace.record(self._kernel.now, sender.number, "asked", of=receiver)
        sender.account.send_us += sender.timing.ack
        if (node := self._nodes.get(receiver)) and node.has_frames_for(sender.number):
            node.release(sender.number)

    def neighbours(self, number: int) -> list[tuple[int, int]]:
        """The radios that a radio receives, and the quality of these links (0 to 255)."""
        there = [] if number in self._cut else [n for n, node in sorted(self._nodes.items()) if node.on]
        links = [(n, round(PERFECT * self.channel.ratio(n, number))) for n in there if n not in self._cut]
        return [(other, quality) for other, quality in links if other != number and quality]

    def cut(self, number: int) -> None:
        self._cut.add(number)
        self.changed()

    def mend(self, number: int) -> None:
        self._cut.discard(number)
        self.changed()

    def changed(self) -> None:
        """Links or radios have changed: let all radios notice after NOTICE_US."""
        self.channel.note_changed_links()
        at = self._kernel.now + NOTICE_US
        if at != self._noticed_at:
            self._noticed_at = at
            self._kernel.at(at, self._notice, priority=1)

    def _notice(self) -> None:
        for _, node in sorted(self._nodes.items()):
            if node.on:
                node.report_neighbours()

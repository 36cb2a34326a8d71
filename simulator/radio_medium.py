"""The air between motes: what a frame on it costs, whether it comes through, who disturbs whom.

`NullChannel` is a channel that loses nothing and lets all hear each other; `Channel` has a ratio for each link and
direction, and bursts. `RadioMedium` is the same for both.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.frame import BROADCAST, MAX_FRAME
from simulator.counter_rng import Purpose, draw, uniform
from simulator.energy import EnergyAccount, Timing
from simulator.kernel import MS, Kernel
from simulator.trace import Trace

PERFECT = 255
AUDIBLE = 0.5 / PERFECT
"""Of a link with a ratio below this motes report that it does not exist, and it disturbs nobody."""
ATTEMPT_LIMIT = 64
"""The most attempts at one hand-over, for the numbering of draws."""
NOTICE_US = 60_000 * MS
"""So long it takes a station to notice that it hears somebody better, worse, for the first time, or no more."""


class RadioNode(Protocol):
    """Whoever takes part: a mote, or the radio of a gateway."""

    number: int
    account: EnergyAccount
    timing: Timing
    on: bool
    listening: bool

    def accept(self, message: bytes) -> bool:
        """A frame for it (or for all) was heard, for the first time. True if it takes the responsibility for it."""

    def has_frames_for(self, number: int) -> bool:
        """Whether something waits here for that neighbour, which is asleep most of the time."""

    def release(self, number: int) -> None:
        """That neighbour listens now."""

    def pending(self) -> None:
        """Somebody who acknowledged our frame has something for us."""

    def report_neighbours(self) -> None:
        """Whom it hears may not be what it was."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bad times of a link: in each epoch a good link turns bad with `begin`, a bad one good with `end`; in a bad time
    only `left` of its frames come through."""

    begin: float
    end: float
    left: float

    def __post_init__(self) -> None:
        if not (0 <= self.begin and 0 < self.end and self.begin + self.end <= 1 and 0 <= self.left <= 1):
            raise ValueError(
                f"{self} cannot be: begin and end are chances that add up to at most 1, end is more than 0, left is a share"
            )


@dataclass(frozen=True, slots=True)
class NullChannel:
    """Everything comes through, between everybody."""

    mtu = MAX_FRAME

    def ratio(self, sender: int, receiver: int) -> float:
        return 1.0

    def comes_through(self, purpose: Purpose, sender: int, receiver: int, epoch: int, attempt: int) -> bool:
        return True


class LossyChannel:
    """The share of frames that come through, for each link and direction; it may be changed while time goes by.

    `mtu` is how long frames may be on all of them.
    """

    def __init__(self, ratios: Mapping[tuple[int, int], float], seed: int, bursts: Bursts | None = None,
                 mtu: int = MAX_FRAME) -> None:  # fmt: skip
        self.ratios, self.mtu = dict(ratios), mtu
        self.seed, self.bursts = seed, bursts

    def ratio(self, sender: int, receiver: int) -> float:
        """Without bursts."""
        return self.ratios.get((sender, receiver), 0.0)

    def comes_through(self, purpose: Purpose, sender: int, receiver: int, epoch: int, attempt: int) -> bool:
        ratio = self.ratio(sender, receiver)
        if not ratio:
            return False  # as most are: nobody needs luck to hear nothing
        if self.bursts and is_bad(self.bursts, self.seed, link_of(sender, receiver), epoch):
            ratio *= self.bursts.left
        return uniform(draw(self.seed, purpose, link_of(sender, receiver), epoch, attempt)) < ratio


def link_of(sender, receiver):
    """The number by which a link and direction is known to chance."""
    return sender << 16 | receiver


def is_bad(bursts: Bursts, seed: int, link: int, epoch: int) -> bool:
    """Whether a link has a bad time (Gilbert and Elliott's chain).

    A draw below `begin` makes the link bad whatever it was, one in the last `end` makes it good, any other leaves it as
    it was: the same chances as those of the chain, but the last draw that decided is all that one has to know.
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
    """One attempt at a hand-over: the number of the hand-over, and what names its luck."""

    number: int
    epoch: int
    draw: int


@dataclass(frozen=True, slots=True)
class _Sending:
    sender: int
    begin: int
    end: int


class RadioMedium:
    """Carries frames between stations. `cut` and `mend` silence one, both ways."""

    def __init__(self, kernel: Kernel, trace: Trace, channel: NullChannel | LossyChannel) -> None:
        self.channel = channel
        self._kernel, self._trace = kernel, trace
        self._stations: dict[int, RadioNode] = {}
        self._cut: set[int] = set()
        self._slotted: list[_Sending] = []
        self._numbers = 0
        self._noticed_at = -1
        self._last: dict[tuple[int, int], int] = {}  # by sender and receiver: the last hand-over that was taken

    @property
    def mtu(self) -> int:
        """How long frames may be."""
        return self.channel.mtu

    def join(self, station: RadioNode) -> None:
        """Take part, under a number of one's own."""
        if station.number in self._stations:
            raise ValueError(f"there are two motes with the number {station.number}")
        self._stations[station.number] = station

    def number(self) -> int:
        """A number for a hand-over, so that a copy is known as one."""
        self._numbers += 1
        return self._numbers

    def attempt(self, message: bytes, sender: RadioNode, receiver: int, turn: AttemptKey, slotted: bool,
                done: Callable[[bool, bool], None]) -> None:  # fmt: skip
        """Send once. `done` hears whether somebody has taken it, and whether that is known.

        A receiver acknowledges what it has taken, also when it comes again: the first acknowledgement was lost.

        What is sent in a slot of an agenda disturbs and is disturbed by other such frames at the same time; outside
        of agendas, radios are taken to wait for each other.
        """
        begin = self._kernel.now + sender.timing.turnaround
        sending = _Sending(sender.number, begin, begin + sender.timing.airtime(len(message)))
        sender.account.send_us += sending.end - begin
        if slotted:
            self._slotted = [other for other in self._slotted if other.end > self._kernel.now]
            self._slotted.append(sending)
        self._kernel.at(sending.end, partial(self._arrive, message, sender, receiver, turn, sending, done))

    def _arrive(self, message: bytes, sender: RadioNode, receiver: int, turn: AttemptKey, sending: _Sending,
                done: Callable[[bool, bool], None]) -> None:  # fmt: skip
        came = known = False
        for number in self._hearers(sender.number) if receiver == BROADCAST else (receiver,):
            station = self._stations.get(number)
            if station is None or not station.listening or self._cut & {sender.number, number}:
                continue
            if self._disturbed(sending, number):
                self._trace.record(sending.end, number, "disturbed", sender=sender.number)
            elif self.channel.comes_through(Purpose.FRAME, sender.number, number, turn.epoch, turn.draw):
                taken = self._taken(message, sender.number, station, turn.number)
                came = came or taken
                if taken and receiver != BROADCAST:
                    station.account.send_us += station.timing.ack
                    known = self.channel.comes_through(Purpose.ACK, number, sender.number, turn.epoch, turn.draw)
                    if known and station.has_frames_for(sender.number):
                        sender.pending()
        self._kernel.at(sending.end + sender.timing.turnaround + sender.timing.ack, partial(done, came, known))

    def _taken(self, message: bytes, sender: int, station: RadioNode, number: int) -> bool:
        """Whether a station has taken a frame, now or when it heard it before."""
        if self._last.get((sender, station.number)) == number:
            return True
        taken = station.accept(message)
        if taken:
            self._last[sender, station.number] = number
        return taken

    def _disturbed(self, sending: _Sending, receiver: int) -> bool:
        return sending in self._slotted and any(
            other.begin < sending.end
            and sending.begin < other.end
            and other.sender != sending.sender
            and (other.sender == receiver or self.channel.ratio(other.sender, receiver) > AUDIBLE)
            for other in self._slotted
        )

    def _hearers(self, sender: int) -> Iterable[int]:
        return [number for number in sorted(self._stations) if number != sender]

    def ask(self, sender: RadioNode, receiver: int) -> None:
        """Who has something for us, and has heard us just now, may send it."""
        self._trace.record(self._kernel.now, sender.number, "asked", of=receiver)
        sender.account.send_us += sender.timing.ack
        if (station := self._stations.get(receiver)) and station.has_frames_for(sender.number):
            station.release(sender.number)

    def neighbours(self, number: int) -> list[tuple[int, int]]:
        """Who a mote hears, and how well (0 to 255)."""
        there = [] if number in self._cut else [n for n, station in sorted(self._stations.items()) if station.on]
        heard = [(n, round(PERFECT * self.channel.ratio(n, number))) for n in there if n not in self._cut]
        return [(other, quality) for other, quality in heard if other != number and quality]

    def cut(self, number: int) -> None:
        self._cut.add(number)
        self.changed()

    def mend(self, number: int) -> None:
        self._cut.discard(number)
        self.changed()

    def changed(self) -> None:
        """Links, or who is there, are not what they were: after a while everybody notices."""
        at = self._kernel.now + NOTICE_US
        if at != self._noticed_at:
            self._noticed_at = at
            self._kernel.at(at, self._notice, priority=1)

    def _notice(self) -> None:
        for _, station in sorted(self._stations.items()):
            if station.on:
                station.report_neighbours()

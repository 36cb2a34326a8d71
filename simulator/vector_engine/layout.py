"""Layout: a network under an agenda as arrays, one entry a mote; and whether it can be swept at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.errors import MoteloomError
from innet.costs.hardware import Hardware
from innet.placement.round_pattern import RoundPattern
from simulator.energy import Timing
from simulator.radio_medium import AUDIBLE
from simulator.radio_slots import RadioSlots

GATEWAY = -1


class NotVectorisableError(MoteloomError):
    """The fast speed would not do what the motes do; says what is in its way."""


@dataclass(frozen=True, slots=True)
class ReceiveSlots:
    """The slots in which motes listen to their children, one entry a child. `mote` is the place of who listens."""

    mote: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def us(self, startup: np.ndarray) -> np.ndarray:
        """For how long a radio is on in each, starting it included."""
        return self.end - self.begin + startup[self.mote]


@dataclass(frozen=True, slots=True)
class NetworkLayout:
    """`number` ascends; `parent` is a place in these arrays, or GATEWAY. Times are microseconds after a round begins."""

    round_us: int
    number: np.ndarray
    parent: np.ndarray
    heard_by: np.ndarray  # the number of the parent
    gateway: np.ndarray  # the number of the one at which frames arrive
    depth: np.ndarray
    send_begin: np.ndarray
    send_end: np.ndarray
    ears: ReceiveSlots
    startup: np.ndarray
    turnaround: np.ndarray
    ack: np.ndarray
    byte_ns: np.ndarray
    overhead: np.ndarray
    rounds: RoundPattern
    turn: np.ndarray

    def __len__(self) -> int:
        return len(self.number)

    def due(self, rounds: np.ndarray) -> np.ndarray:
        """In which rounds something is due."""
        return rounds % self.rounds.every == self.rounds.phase

    def asks(self, rounds: np.ndarray) -> np.ndarray:
        """By mote and round, whether it is its turn to ask."""
        turns = rounds % max(1, self.rounds.asks) == self.turn[:, None]
        return turns & (self.rounds.asks > 0)

    def listens(self, rounds: np.ndarray) -> np.ndarray:
        """By mote and round, whether it listens to its children."""
        return self.due(rounds) | self.asks(rounds - 1)

    def airtime(self, mote: np.ndarray, frame_bytes: np.ndarray) -> np.ndarray:
        return (self.overhead[mote] + frame_bytes) * self.byte_ns[mote] // 1_000

    def attempt(self, mote: np.ndarray, frame_bytes: np.ndarray) -> np.ndarray:
        return self.airtime(mote, frame_bytes) + 2 * self.turnaround[mote] + self.ack[mote]


def make_layout(
    slots: Mapping[int, RadioSlots], kinds: Mapping[int, Hardware], ratios: Mapping[tuple[int, int], float]
) -> NetworkLayout:
    """CannotSweep where slots of neighbours overlap, or where a frame could not rise within its round."""
    _check(slots, ratios)
    numbers = sorted(slots)
    place = {number: at for at, number in enumerate(numbers)}
    parents = [slots[number].parent for number in numbers]
    ways = [_way(at, parents, place) for at in range(len(numbers))]
    timings = [Timing.of(kinds[number]) for number in numbers]
    ears = [(at, *slot) for at, number in enumerate(numbers) for slot in slots[number].listen.values()]

    def array(values) -> np.ndarray:
        return np.array(list(values), np.int64)

    return NetworkLayout(
        round_us=slots[numbers[0]].round_us,
        number=array(numbers),
        parent=array(place.get(parent, GATEWAY) for parent in parents),
        heard_by=array(parents),
        gateway=array(parents[way[-1]] for way in ways),
        depth=array(len(way) for way in ways),
        send_begin=array(slots[number].send[0] for number in numbers),
        send_end=array(slots[number].send[1] for number in numbers),
        ears=ReceiveSlots(*(array(ear[column] for ear in ears) for column in range(3))),
        startup=array(timing.startup for timing in timings),
        turnaround=array(timing.turnaround for timing in timings),
        ack=array(timing.ack for timing in timings),
        byte_ns=array(timing.byte_ns for timing in timings),
        overhead=array(timing.overhead for timing in timings),
        rounds=slots[numbers[0]].rounds,
        turn=array(slots[number].turn for number in numbers),
    )


def _way(at: int, parents: Sequence[int], place: Mapping[int, int]) -> list[int]:
    """The motes that a frame passes, by their places."""
    way = [at]
    while (up := place.get(parents[way[-1]])) is not None:
        way.append(up)
    return way


def _check(slots: Mapping[int, RadioSlots], ratios: Mapping[tuple[int, int], float]) -> None:
    if len({own.round_us for own in slots.values()}) != 1:
        raise NotVectorisableError("there is no mote, or not all have rounds of one length")
    if len({own.rounds for own in slots.values()}) != 1:
        raise NotVectorisableError("not all motes have slots in the same rounds")
    for number, own in slots.items():
        if own.send[1] > own.round_us:
            raise NotVectorisableError(f"mote {number} sends beyond the end of its round")
        above = slots.get(own.parent)
        if above and own.send[1] > above.send[0]:
            raise NotVectorisableError(f"mote {number} sends later than its parent, {own.parent}")
        if above and above.listen.get(number) != own.send:
            raise NotVectorisableError(f"mote {own.parent} does not listen in the slot of its child {number}")
        if above and own.rounds.asks and own.turn != (above.turn + 1) % own.rounds.asks:
            raise NotVectorisableError(
                f"the turn of mote {number} is not a round after that of its parent, {own.parent}"
            )
    by_begin = sorted(slots, key=lambda number: slots[number].send)
    for at, number in enumerate(by_begin):
        for other in by_begin[at + 1 :]:
            if slots[other].send[0] >= slots[number].send[1]:
                break
            for one, two in ((number, other), (other, number)):
                if slots[one].parent in (two, slots[two].parent) or ratios.get((two, slots[one].parent), 0) > AUDIBLE:
                    raise NotVectorisableError(f"the slots of motes {number} and {other} overlap within earshot")

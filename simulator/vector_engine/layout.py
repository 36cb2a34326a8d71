"""A network under an agenda as arrays with one entry per mote, and the check that the vector engine can simulate it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from gateway.errors import MoteloomError
from innet.costs.hardware import Hardware
from innet.placement.round_pattern import RoundPattern
from simulator.energy import Timing
from simulator.radio_medium import AUDIBLE
from simulator.radio_slots import RadioSlots

GATEWAY = -1


class NotVectorisableError(MoteloomError):
    """The vector engine cannot reproduce an event-by-event simulation of this network; the message says why."""


@dataclass(frozen=True, slots=True)
class ReceiveSlots:
    """The slots in which motes listen to their children, one entry per child. `mote` is the position of the listener.

    `begin` and `end` are microseconds after a round begins.
    """

    mote: IntArray
    begin: IntArray
    end: IntArray

    def us(self, startup: IntArray) -> IntArray:
        """The time that the radio is on in each slot, with its start (`startup`, by mote)."""
        found: IntArray = self.end - self.begin + startup[self.mote]
        return found


@dataclass(frozen=True, slots=True)
class NetworkLayout:
    """One entry per mote, by ascending `number`. `parent` is a position in these arrays, or GATEWAY.

    Times are microseconds, slots microseconds after a round begins.
    """

    round_us: int
    number: IntArray
    parent: IntArray
    parent_number: IntArray
    gateway: IntArray  # the number of the gateway that its frames reach
    depth: IntArray
    send_begin: IntArray
    send_end: IntArray
    receive_slots: ReceiveSlots
    startup: IntArray
    turnaround: IntArray
    ack: IntArray
    byte_ns: IntArray
    overhead: IntArray  # bytes
    rounds: RoundPattern
    turn: IntArray

    def __len__(self) -> int:
        return len(self.number)

    def due(self, rounds: IntArray) -> BoolArray:
        """(rounds,): whether data is due."""
        found: BoolArray = rounds % self.rounds.every == self.rounds.phase
        return found

    def polls(self, rounds: IntArray) -> BoolArray:
        """(motes, rounds): whether it is the mote's turn to poll its parent."""
        found: BoolArray = (rounds % max(1, self.rounds.poll_every) == self.turn[:, None]) & (
            self.rounds.poll_every > 0
        )
        return found

    def listens(self, rounds: IntArray) -> BoolArray:
        """(motes, rounds): whether the mote listens to its children."""
        found: BoolArray = self.due(rounds) | self.polls(rounds - 1)
        return found

    def airtime(self, mote: IntArray, frame_bytes: IntArray) -> IntArray:
        """The time on the air of frames of motes (by position)."""
        found: IntArray = (self.overhead[mote] + frame_bytes) * self.byte_ns[mote] // 1_000
        return found

    def attempt(self, mote: IntArray, frame_bytes: IntArray) -> IntArray:
        """The time of one attempt to hand over frames of motes (by position)."""
        found: IntArray = self.airtime(mote, frame_bytes) + 2 * self.turnaround[mote] + self.ack[mote]
        return found


def make_layout(
    slots: Mapping[int, RadioSlots], kinds: Mapping[int, Hardware], ratios: Mapping[tuple[int, int], float]
) -> NetworkLayout:
    """The layout of motes with these slots.

    Raises NotVectorisableError if slots of neighbours overlap, or if a frame cannot reach the gateway within its round.
    """
    _check(slots, ratios)
    numbers = sorted(slots)
    place = {number: at for at, number in enumerate(numbers)}
    parents = [slots[number].parent for number in numbers]
    paths = [_path(at, parents, place) for at in range(len(numbers))]
    timings = [Timing.of(kinds[number]) for number in numbers]
    receive_slots = [(at, *slot) for at, number in enumerate(numbers) for slot in slots[number].listen.values()]

    def array(values: Iterable[int]) -> IntArray:
        return np.array(list(values), np.int64)

    return NetworkLayout(
        round_us=slots[numbers[0]].round_us,
        number=array(numbers),
        parent=array(place.get(parent, GATEWAY) for parent in parents),
        parent_number=array(parents),
        gateway=array(parents[path[-1]] for path in paths),
        depth=array(len(path) for path in paths),
        send_begin=array(slots[number].send[0] for number in numbers),
        send_end=array(slots[number].send[1] for number in numbers),
        receive_slots=ReceiveSlots(*(array(each[column] for each in receive_slots) for column in range(3))),
        startup=array(timing.startup for timing in timings),
        turnaround=array(timing.turnaround for timing in timings),
        ack=array(timing.ack for timing in timings),
        byte_ns=array(timing.byte_ns for timing in timings),
        overhead=array(timing.overhead for timing in timings),
        rounds=slots[numbers[0]].rounds,
        turn=array(slots[number].turn for number in numbers),
    )


def _path(at: int, parents: Sequence[int], place: Mapping[int, int]) -> list[int]:
    """The motes that a frame passes, by their positions."""
    path = [at]
    while (up := place.get(parents[path[-1]])) is not None:
        path.append(up)
    return path


def _check(slots: Mapping[int, RadioSlots], ratios: Mapping[tuple[int, int], float]) -> None:
    if len({own.round_us for own in slots.values()}) != 1:
        raise NotVectorisableError("there is no mote, or the rounds of motes differ in length")
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
        if above and own.rounds.poll_every and own.turn != (above.turn + 1) % own.rounds.poll_every:
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

"""The slots of one mote under an agenda: when in each round its radio is on, and the parent that it sends to."""

from collections.abc import Mapping
from dataclasses import dataclass

from innet.payload import MoteAssignment
from innet.placement.agenda import Activity
from innet.placement.agenda import Slot as AgendaSlot
from innet.placement.round_pattern import EVERY_ROUND, RoundPattern
from simulator.kernel import MS

Slot = tuple[int, int]
"""From and to, in microseconds after the round begins."""


@dataclass(frozen=True, slots=True)
class RadioSlots:
    """`send` is the mote's own slot, in which its `parent` listens; `listen` has the slots of its children, by child.

    Rounds follow each other without a gap from tick 0 on; the slots apply from round `first` on. They repeat after each
    `again_us` microseconds within a round. Motes use them in the `rounds` in which data is due, and in the rounds in which it
    is their turn to poll: `turn` is the mote's own, that of its children is a round later.
    """

    round_us: int
    parent: int
    send: Slot
    listen: Mapping[int, Slot]
    first: int = 0
    again_us: int = 0
    rounds: RoundPattern = EVERY_ROUND
    turn: int = 0

    def next_in_round(self, slot: Slot) -> Slot | None:
        """The next repetition of this slot in the same round; None if there is none."""
        begin, end = slot[0] + self.again_us, slot[1] + self.again_us
        return (begin, end) if self.again_us and end <= self.round_us else None

    def due(self, number: int) -> bool:
        """Whether data is due in the round of that number."""
        return number % self.rounds.every == self.rounds.phase

    def polls(self, number: int) -> bool:
        """Whether it is the mote's turn to poll its parent in the round of that number."""
        return self.rounds.poll_every > 0 and number % self.rounds.poll_every == self.turn

    def children_poll(self, number: int) -> bool:
        return self.polls(number - 1)


def make_radio_slots(orders: MoteAssignment) -> RadioSlots | None:
    """The slots of a mote with these orders; None if they leave its radio on."""
    duty = orders.radio_schedule
    if duty is None:
        return None
    listen = {
        slot.peer: _span(slot) for slot in duty.slots if slot.activity is Activity.RECEIVE and slot.peer is not None
    }
    send = [_span(slot) for slot in duty.slots if slot.activity is Activity.SEND]
    return RadioSlots(
        round_us=duty.period_ms * MS,
        parent=orders.parent,
        send=send[0] if send else (0, 0),
        listen=listen,
        first=duty.first,
        again_us=duty.repeat_ms * MS,
        rounds=duty.rounds,
        turn=duty.poll_phase,
    )


def _span(slot: AgendaSlot) -> Slot:
    return slot.start_ms * MS, slot.end_ms * MS

"""Slots: when in each epoch a mote's radio is on, and to whom it sends; what an agenda says to one mote."""

from collections.abc import Mapping
from dataclasses import dataclass

from innet.payload import MoteAssignment
from innet.placement.agenda import Activity
from innet.placement.agenda import Slot as AgendaSlot
from innet.placement.round_pattern import EVERY_ROUND, RoundPattern
from simulator.kernel import MS

Slot = tuple[int, int]
"""From and to, in microseconds after the epoch begins."""


@dataclass(frozen=True, slots=True)
class RadioSlots:
    """`send` is the mote's own slot, in which its `parent` listens; `listen` are those of its children.

    Rounds follow each other without a gap from tick 0 on; the first that counts is the one of number `first`. Slots come
    again after each `again_us`, as long as they end within the round. They are there in the `rounds` in which something is due,
    and in turns: the mote's own is `turn`, that of its children a round later.
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
        """The next time that this slot comes in the same round."""
        begin, end = slot[0] + self.again_us, slot[1] + self.again_us
        return (begin, end) if self.again_us and end <= self.round_us else None

    def due(self, number: int) -> bool:
        """Whether something is due in the round of that number."""
        return number % self.rounds.every == self.rounds.phase

    def asks(self, number: int) -> bool:
        """Whether it is its turn to ask in the round of that number."""
        return self.rounds.asks > 0 and number % self.rounds.asks == self.turn

    def children_ask(self, number: int) -> bool:
        return self.asks(number - 1)


def make_radio_slots(orders: MoteAssignment) -> RadioSlots | None:
    """What a mote's orders mean to its radio; None where they leave it on."""
    if orders.radio_schedule is None:
        return None
    radio_schedule = orders.radio_schedule
    listen = {slot.peer: _slot(slot) for slot in radio_schedule.slots if slot.activity is Activity.RECEIVE}
    send = [_slot(slot) for slot in radio_schedule.slots if slot.activity is Activity.SEND]
    return RadioSlots(radio_schedule.period_ms * MS, orders.parent, send[0] if send else (0, 0), listen, radio_schedule.first, radio_schedule.repeat_ms * MS,
                 radio_schedule.rounds, radio_schedule.turn)  # fmt: skip


def _slot(slot: AgendaSlot) -> Slot:
    return slot.start_ms * MS, slot.end_ms * MS

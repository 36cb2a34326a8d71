"""Slots: when in each epoch a mote's radio is on, and to whom it sends; what an agenda says to one mote."""

from dataclasses import dataclass

from innet.payload import Orders
from innet.placement.agenda import Activity
from innet.placement.agenda import Slot as AgendaSlot
from simulator.kernel import MS

Slot = tuple[int, int]
"""From and to, in microseconds after the epoch begins."""


@dataclass(frozen=True, slots=True)
class Slots:
    """`send` is the mote's own slot, in which its `parent` listens; `listen` are those of its children.

    Rounds follow each other without a gap from tick 0 on; the first that counts is the one of number `first`.
    """

    round_us: int
    parent: int
    send: Slot
    listen: tuple[Slot, ...] = ()
    first: int = 0


def slots_of(orders: Orders) -> Slots | None:
    """What a mote's orders mean to its radio; None where they leave it on."""
    if orders.duty is None:
        return None
    listen = tuple(_slot(slot) for slot in orders.duty.slots if slot.activity is Activity.RECEIVE)
    send = [_slot(slot) for slot in orders.duty.slots if slot.activity is Activity.SEND]
    return Slots(orders.duty.period_ms * MS, orders.parent, send[0] if send else (0, 0), listen, orders.duty.first)


def _slot(slot: AgendaSlot) -> Slot:
    return slot.start_ms * MS, slot.end_ms * MS

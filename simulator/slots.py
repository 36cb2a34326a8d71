"""Slots: when in each epoch a mote's radio is on, and to whom it sends; what an agenda says to one mote."""

from dataclasses import dataclass

from innet.payload import Orders
from innet.placement.agenda import Activity, SiteAgenda
from simulator.kernel import MS

Slot = tuple[int, int]
"""From and to, in microseconds after the epoch begins."""


@dataclass(frozen=True, slots=True)
class Slots:
    """`send` is the mote's own slot, in which its `parent` listens; `listen` are those of its children.

    Rounds follow each other without a gap from tick 0 on.
    """

    round_us: int
    parent: int
    send: Slot
    listen: tuple[Slot, ...] = ()


def slots_of(agenda: SiteAgenda, period_ms: int) -> Slots:
    """What a site's agenda means to its radio."""
    listen = tuple((slot.start_ms * MS, slot.end_ms * MS) for slot in agenda.of(Activity.RECEIVE))
    [send] = agenda.of(Activity.SEND)
    return Slots(period_ms * MS, agenda.parent, (send.start_ms * MS, send.end_ms * MS), listen)


def slots_told(orders: Orders) -> Slots | None:
    """What a mote's orders mean to its radio."""
    if orders.duty is None:
        return None
    return slots_of(SiteAgenda(-1, orders.parent, orders.duty.slots), orders.duty.period_ms)

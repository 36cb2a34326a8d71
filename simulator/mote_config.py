"""Standing: all that one mote has been told and keeps to: what it samples, what it runs, when its radio is on."""

from dataclasses import dataclass

from acquisition.schedule import Schedule
from innet.payload import Orders
from simulator.radio_slots import Slots, slots_of


@dataclass(frozen=True, slots=True)
class Standing:
    """Orders say whether there is an agenda; without one the radio is always on."""

    schedule: Schedule
    orders: Orders
    tick_ms: int

    @property
    def slots(self) -> Slots | None:
        return slots_of(self.orders)

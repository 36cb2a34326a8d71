"""Standing: all that one mote has been told and keeps to: what it samples, what it runs, when its radio is on."""

from dataclasses import dataclass

from acquisition.schedule import Schedule
from innet.payload import MoteAssignment
from simulator.radio_slots import RadioSlots, make_radio_slots


@dataclass(frozen=True, slots=True)
class MoteConfig:
    """Orders say whether there is an agenda; without one the radio is always on."""

    schedule: Schedule
    orders: MoteAssignment
    tick_ms: int

    @property
    def slots(self) -> RadioSlots | None:
        return make_radio_slots(self.orders)

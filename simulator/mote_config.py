"""The configuration of one mote: what it samples, which programs it runs, when its radio is on."""

from dataclasses import dataclass

from acquisition.schedule import Schedule
from innet.payload import MoteAssignment
from simulator.radio_slots import RadioSlots, make_radio_slots


@dataclass(frozen=True, slots=True)
class MoteConfig:
    """A schedule and the orders that go with it. Orders without a radio schedule leave the radio on."""

    schedule: Schedule
    orders: MoteAssignment
    tick_ms: int

    @property
    def slots(self) -> RadioSlots | None:
        return make_radio_slots(self.orders)

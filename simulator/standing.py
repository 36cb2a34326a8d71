"""Standing: all that one mote has been told and keeps to: what it samples, what it runs, when its radio is on."""

from dataclasses import dataclass

from acquisition.schedule import Schedule
from innet.payload import Orders
from simulator.slots import Slots


@dataclass(frozen=True, slots=True)
class Standing:
    """`slots` are missing where there is no agenda: then the radio is always on."""

    schedule: Schedule
    orders: Orders
    slots: Slots | None
    tick_ms: int

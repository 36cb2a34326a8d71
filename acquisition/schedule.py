"""Schedule: when one site wakes and which of its sensors it reads.

The numbers in here are all that a mote and the base station must agree on to exchange readings without names or types
on the air: a sampling has a number, a channel has a place in it and a width in bits.
"""

from binascii import crc_hqx
from dataclasses import dataclass

from acquisition.schema import Attribute
from acquisition.ticks import EpochGrid

# A mote's registers. Wider values do not exist there; see `width_of` for what goes on the air.
REGISTER_BITS = 32
USUAL_BITS = 16


@dataclass(frozen=True, slots=True)
class SensorChannel:
    """One attribute of a sampling: which sensor is read for it, and how many bits its value usually takes.

    `senders` are the sites whose programs send it, None if all do: others only compute with it, and say null.
    """

    attribute: str
    sensor: int
    bits: int
    senders: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling of one extent. `number` is what frames call it; a changed sampling gets another number."""

    number: int
    extent: str
    epochs: EpochGrid
    channels: tuple[SensorChannel, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that one site samples, for every query there is. `version` tells two schedules of a site apart."""

    site: int
    version: int
    samplings: tuple[Sampling, ...]


def sensor_code(name: str) -> int:
    """What a sensor is called on the air: 16 bits of its name, so that motes need no list of names."""
    return crc_hqx(name.encode(), 0)


def channel_of(attribute: Attribute) -> SensorChannel:
    return SensorChannel(attribute.name, sensor_code(attribute.sensor or attribute.name), width_of(attribute))


def width_of(attribute: Attribute) -> int:
    """The bits, sign included, that hold every value of the declared range; 16 where no range is declared.

    A value that needs more is sent all the same: its whole frame then goes out in its wide form (payload.py).
    """
    if attribute.range is None:
        return USUAL_BITS
    low, high = (round(bound * 10 ** (attribute.scale or 0)) for bound in attribute.range)
    bits = 1 + max((low if low >= 0 else ~low).bit_length(), (high if high >= 0 else ~high).bit_length())
    return min(bits, REGISTER_BITS)

"""Schedules: when one site wakes up, and which of its sensors it reads.

A mote and the base station agree on these numbers. They exchange readings without names or types: a sampling has a
number, a channel has a position in it and a width in bits.
"""

from binascii import crc_hqx
from dataclasses import dataclass

from acquisition.schema import Attribute
from acquisition.ticks import EpochGrid

REGISTER_BITS = 32
"""The width of a mote's registers; see `width_of` for the width on the air."""
DEFAULT_BITS = 16
"""The width of a value without a declared range."""


@dataclass(frozen=True, slots=True)
class SensorChannel:
    """One attribute of a sampling: the code of its sensor, and the usual width of a value in bits.

    `senders` are the sites whose programs send the value; None if all do. Other sites only compute with it, and send
    null.
    """

    attribute: str
    sensor: int
    bits: int
    senders: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling of one extent. Frames refer to it by `number`; a changed sampling gets another number."""

    number: int
    extent: str
    epochs: EpochGrid
    channels: tuple[SensorChannel, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that one site samples, for all queries. `version` identifies a schedule of this site."""

    site: int
    version: int
    samplings: tuple[Sampling, ...]


def sensor_code(name: str) -> int:
    """Return the code of a sensor on the air: 16 bits of its name, so that motes need no list of names."""
    return crc_hqx(name.encode(), 0)


def channel_of(attribute: Attribute) -> SensorChannel:
    """Return the channel that samples an attribute and that all sites send."""
    return SensorChannel(attribute.name, sensor_code(attribute.sensor or attribute.name), width_of(attribute))


def width_of(attribute: Attribute) -> int:
    """Return the bits, sign included, that hold every value of the declared range; 16 without a range.

    A value that needs more is not cut: its frame then uses 32 bits for all values (payload.py).
    """
    if attribute.range is None:
        return DEFAULT_BITS
    factor: int = 10 ** (attribute.scale or 0)
    low, high = (round(bound * factor) for bound in attribute.range)
    bits = 1 + max((low if low >= 0 else ~low).bit_length(), (high if high >= 0 else ~high).bit_length())
    return min(bits, REGISTER_BITS)

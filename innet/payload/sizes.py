"""Sizes: how long frames with readings and with partials are, for placements that are to be compared."""

from acquisition.payload import READING_HEADER, capacity
from acquisition.schedule import Sampling
from gateway.frame import HEADER_SIZE, MAX_FRAME, payload_room
from innet.partials import PartialShape
from innet.payload.partial import HEADER, bare_bits, whole_bits
from innet.placement.expected import Sizes


def sizes(mtu: int = MAX_FRAME) -> Sizes:
    """Those of frames on links that carry so many bytes."""
    room = payload_room(mtu)
    return Sizes(_readings, lambda sampling: capacity(sampling, room), _partials, HEADER_SIZE + room)


def _readings(sampling: Sampling, epochs: float) -> float:
    bits = sum(channel.bits for channel in sampling.channels)
    return HEADER_SIZE + READING_HEADER.size + epochs * bits / 8


def _partials(shape: PartialShape, whole: float, bare: float) -> float:
    return HEADER_SIZE + HEADER.size + (whole * whole_bits(shape) + bare * bare_bits(shape)) / 8

"""Frame sizes: how long frames with readings and with partials are, for the load model."""

from functools import lru_cache
from math import ceil

from acquisition.payload import READING_HEADER, epochs_per_frame
from acquisition.schedule import REGISTER_BITS, Sampling
from gateway.frame import HEADER_SIZE, MAX_FRAME, payload_room
from innet.partials import PartialShape
from innet.payload.partial import HEADER, bare_bits, whole_bits
from innet.placement.load_model import FrameSizes


@lru_cache(16)
def make_frame_sizes(mtu: int = MAX_FRAME) -> FrameSizes:
    """Return the sizes of frames on links that carry `mtu` bytes."""
    room = payload_room(mtu)
    return FrameSizes(
        _readings,
        lambda sampling: epochs_per_frame(sampling, room),
        _partials,
        lambda shape: max(1, 8 * (room - HEADER.size) // whole_bits(shape)),
        HEADER_SIZE + room,
    )


def _readings(sampling: Sampling, epochs: float, share: float, worst: bool) -> float:
    bits = share * sum(1 + REGISTER_BITS if worst else channel.bits for channel in sampling.channels)
    bits += worst or share < 1  # which of them are there
    return HEADER_SIZE + READING_HEADER.size + ceil(epochs * bits / 8)


def _partials(shape: PartialShape, whole: float, bare: float) -> float:
    return HEADER_SIZE + HEADER.size + ceil((whole * whole_bits(shape) + bare * bare_bits(shape)) / 8)

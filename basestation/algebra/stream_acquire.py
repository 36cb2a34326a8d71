"""StreamAcquire: the readings of a sensed extent (figure 2)."""

from dataclasses import dataclass

from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamAcquire(StreamNode):
    """Every site of the extent sampled at 0, interval, 2 interval, …; the interval may be coarser than declared (11).

    `attributes` are the columns taken, each with the declared attribute's name; dead ones are dropped by a rewrite. Readings
    that came without one of those named by `reads` were sent for others, and are left out.
    """

    extent: Extent
    interval: int
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]
    reads: tuple[str, ...] = ()

    @property
    def columns(self):
        return self.attributes

    @property
    def tags(self):
        return self.tag_columns

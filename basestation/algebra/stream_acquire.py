"""StreamAcquire: the readings of a sensed extent (figure 2)."""

from dataclasses import dataclass

from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamAcquire(StreamNode):
    """Every site of the extent sampled at 0, interval, 2 interval, … (ticks); the interval may be coarser than declared (semantics 11).

    `attributes` are the columns that it reads, each with the name of the declared attribute; a rewrite drops dead ones.
    It leaves out readings that lack an attribute named in `reads`: motes sent those for other queries.
    """

    extent: Extent
    interval: int
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]
    reads: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.attributes

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.tag_columns

"""StreamMerged: a stream that motes fold on the way, so that the station receives partials; created at deployment only.

It stands below the SliceAggregation that reads the partials, over the stream that the motes fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from basestation.algebra.expression import Column
from basestation.algebra.node import PlanNode, StreamNode, copy_with


@dataclass(frozen=True, slots=True)
class StreamMerged(StreamNode):
    """`number` is that of the fold. `sources` has for each aggregate above the position of its state in the fold; None for
    the number of readings, which every partial has."""

    number: int
    sources: tuple[int | None, ...]
    child: StreamNode

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        (child,) = children
        return copy_with(self, child=child)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.child.tags

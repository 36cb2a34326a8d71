"""SliceAggregation: WindowAggregation over a window of time, computed from slices; created by a rewrite only.

The stream is cut at the edges of the windows. Each slice keeps one partial state per group. A window merges the slices
in its range.
"""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import StreamNode, WindowNode
from basestation.algebra.operator_mixins import AggregateMixin


@dataclass(frozen=True, slots=True)
class SliceAggregation(AggregateMixin, WindowNode):
    """`begin` and `end` are offsets in ticks as in TimeWindow; begin is None for a landmark window."""

    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    begin: int | None
    end: int
    slide: int
    child: StreamNode
    grouped: bool

    @property
    def edges(self) -> int:
        """The number of slices per slide. Both ends of a window are edges; a closed range ends one tick later."""
        aligned = self.begin is None or (self.end + 1 - self.begin) % self.slide == 0
        return 1 if aligned else 2

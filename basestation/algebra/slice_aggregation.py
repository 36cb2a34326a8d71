"""SliceAggregation: WindowAggregation over a window of time, computed from slices; made by a rewrite only.

The stream is cut at the edges of the windows; each slice keeps one partial state per group; a window is the merge of
the slices in its range.
"""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Aggregate, Column, Expression
from basestation.algebra.node import StreamNode, WindowNode


@dataclass(frozen=True, slots=True)
class SliceAggregation(WindowNode):
    """`begin` and `end` are offsets in ticks as in TimeWindow; begin is None for a landmark window."""

    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    begin: int | None
    end: int
    slide: int
    child: StreamNode
    grouped: bool

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])

    @property
    def columns(self):
        return tuple(column for column, _ in (*self.groups, *self.aggregates))

    @property
    def expressions(self):
        return tuple(expression for _, expression in (*self.groups, *self.aggregates))

    @property
    def edges(self):
        """How many slices a slide is cut into: both ends of a window are edges (a closed range ends one tick on)."""
        aligned = self.begin is None or (self.end + 1 - self.begin) % self.slide == 0
        return 1 if aligned else 2

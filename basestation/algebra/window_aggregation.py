"""WindowAggregation: one tuple for each group of each window; without grouping exactly one (5.5 to 5.7)."""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Aggregate, Column, Expression
from basestation.algebra.node import WindowNode


@dataclass(frozen=True, slots=True)
class WindowAggregation(WindowNode):
    """`groups` and `aggregates` pair columns of the result with what they are computed from.

    HAVING is a WindowSelect above, the SELECT list a WindowProject above that, so an aggregate used twice is
    computed once. `grouped` tells GROUP BY from the one group that always exists.
    """

    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    child: WindowNode
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

"""StreamJoin: pairs of tuples of the same tick from two streams; created by rewrites only.

If both sides of a window join have equal time windows and are joined on their ticks, the pairs can be found tick by
tick, below the windows. Each pair is then found once, however many windows hold it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode, copy_with


@dataclass(frozen=True, slots=True)
class StreamJoin(StreamNode):
    """`keys` are pairs (left, right) that must be equal besides the tick; the tick of a pair is that of both."""

    keys: tuple[tuple[Expression, Expression], ...]
    left: StreamNode
    right: StreamNode
    tag_columns: tuple[Column, Column]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.left, self.right

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        return copy_with(self, left=children[0], right=children[1])

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.tag_columns

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(side for key in self.keys for side in key)

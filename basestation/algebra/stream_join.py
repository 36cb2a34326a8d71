"""StreamJoin: pairs of tuples of the same tick from two streams; made by rewrites only.

Where both sides of a window join are cut by equal time windows and joined on their ticks, the pairs can be found tick
by tick, before the windows: each pair is found once, however many windows hold it.
"""

from dataclasses import dataclass, replace

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamJoin(StreamNode):
    """`keys` are pairs (left, right) that must be equal besides the tick; the tick of a pair is that of both."""

    keys: tuple[tuple[Expression, Expression], ...]
    left: StreamNode
    right: StreamNode
    tag_columns: tuple[Column, Column]

    @property
    def children(self):
        return self.left, self.right

    def with_children(self, children):
        return replace(self, left=children[0], right=children[1])

    @property
    def columns(self):
        return self.left.columns + self.right.columns

    @property
    def tags(self):
        return self.tag_columns

    @property
    def expressions(self):
        return tuple(side for key in self.keys for side in key)

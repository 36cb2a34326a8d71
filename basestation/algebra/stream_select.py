"""StreamSelect: the tuples of a stream for which a predicate is true; they keep tick, index and arrival (figure 1)."""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Expression
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamSelect(StreamNode):
    predicate: Expression
    child: StreamNode

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])

    @property
    def columns(self):
        return self.child.columns

    @property
    def tags(self):
        return self.child.tags

    @property
    def expressions(self):
        return (self.predicate,)

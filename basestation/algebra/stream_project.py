"""StreamProject: new attributes for each tuple of a stream; tick, index and arrival stay (figure 3)."""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Column, Expression
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamProject(StreamNode):
    """`outputs` pairs each column of the result with the expression it is computed by."""

    outputs: tuple[tuple[Column, Expression], ...]
    child: StreamNode

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])

    @property
    def columns(self):
        return tuple(column for column, _ in self.outputs)

    @property
    def tags(self):
        return self.child.tags

    @property
    def expressions(self):
        return tuple(expression for _, expression in self.outputs)

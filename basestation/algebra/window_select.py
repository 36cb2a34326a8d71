"""WindowSelect: in each window the tuples for which a predicate is true; a window stays a window (3.5)."""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Expression
from basestation.algebra.node import WindowNode


@dataclass(frozen=True, slots=True)
class WindowSelect(WindowNode):
    predicate: Expression
    child: WindowNode

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])

    @property
    def columns(self):
        return self.child.columns

    @property
    def expressions(self):
        return (self.predicate,)

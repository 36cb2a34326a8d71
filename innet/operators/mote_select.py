"""Select: the tuples for which a predicate is true; the others are reported as filtered, one bit an epoch."""

from dataclasses import dataclass

from innet.operators import Operator
from innet.operators.mote_expression import Expression


@dataclass(frozen=True, slots=True)
class Select(Operator):
    child: Operator
    predicate: Expression

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.child.attributes

    def label(self) -> str:
        return f"select {self.predicate}"

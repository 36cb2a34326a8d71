"""Select: the tuples for which a predicate is true; the others are reported as filtered, one bit an epoch."""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.mote_expression import MoteExpression


@dataclass(frozen=True, slots=True)
class MoteSelect(MoteOperator):
    child: MoteOperator
    predicate: MoteExpression

    @property
    def children(self) -> tuple[MoteOperator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.child.attributes

    def label(self) -> str:
        return f"select {self.predicate}"

"""MoteSelect: keep the tuples for which a predicate is true. The others are reported as filtered, with one bit per epoch."""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.mote_expression import MoteExpression


@dataclass(frozen=True, slots=True)
class MoteSelect(MoteOperator):
    """Keep the tuples of `child` for which `predicate` is true, neither false nor unknown."""

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

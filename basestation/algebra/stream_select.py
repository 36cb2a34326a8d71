"""StreamSelect: the tuples of a stream for which a predicate is true; they keep tick, index and arrival (figure 1)."""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import StreamNode
from basestation.algebra.operator_mixins import SelectMixin


@dataclass(frozen=True, slots=True)
class StreamSelect(SelectMixin, StreamNode):
    predicate: Expression
    child: StreamNode

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.child.tags

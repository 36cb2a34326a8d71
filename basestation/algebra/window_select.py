"""WindowSelect: in each window the tuples for which a predicate is true; a window stays a window (semantics 3.5)."""

from dataclasses import dataclass

from basestation.algebra.expression import Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import SelectMixin


@dataclass(frozen=True, slots=True)
class WindowSelect(SelectMixin, WindowNode):
    predicate: Expression
    child: WindowNode

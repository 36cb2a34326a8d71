"""WindowAggregation: one tuple for each group of each window; without grouping exactly one (semantics 5.5 to 5.7).

HAVING is a WindowSelect above, the SELECT list a WindowProject above that, so an aggregate used twice is computed once.
"""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import AggregateMixin


@dataclass(frozen=True, slots=True)
class WindowAggregation(AggregateMixin, WindowNode):
    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    child: WindowNode
    grouped: bool

"""Operators of one-off queries alone (semantics 10.6): outer joins, DISTINCT, ORDER BY, LIMIT, and the union of tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, WindowNode, copy_with
from basestation.algebra.operator_mixins import UnaryOperator, UnionMixin


@dataclass(frozen=True, slots=True)
class TableJoin(WindowNode):
    """`kind` is INNER, LEFT, RIGHT or FULL; a CROSS JOIN is a WindowCrossProduct."""

    kind: str
    left: WindowNode
    right: WindowNode
    condition: Expression

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.left, self.right

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        return copy_with(self, left=children[0], right=children[1])

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)


@dataclass(frozen=True, slots=True)
class ResultModifier(UnaryOperator, WindowNode):
    """The base of operators that drop or reorder the tuples of the answer and keep their columns."""

    child: WindowNode

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Distinct(ResultModifier):
    """The first of equal tuples; null equals null here."""


@dataclass(frozen=True, slots=True)
class Sort(ResultModifier):
    """`keys` are (expression, descending, nulls first); ties keep their order."""

    keys: tuple[tuple[Expression, bool, bool], ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(expression for expression, _, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Limit(ResultModifier):
    """The first `count` tuples."""

    count: int


@dataclass(frozen=True, slots=True)
class TableUnion(UnionMixin, WindowNode):
    """All tuples of all parts, in order; columns match by position."""

    parts: tuple[WindowNode, ...]
    attributes: tuple[Column, ...]

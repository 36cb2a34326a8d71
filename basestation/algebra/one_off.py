"""What only one-off queries have (10.6): outer joins, DISTINCT, ORDER BY, LIMIT, and the union of tables."""

from dataclasses import dataclass, replace

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import UnaryOperator, UnionMixin


@dataclass(frozen=True, slots=True)
class TableJoin(WindowNode):
    """kind is INNER, LEFT, RIGHT or FULL; CROSS is a product."""

    kind: str
    left: WindowNode
    right: WindowNode
    condition: Expression

    @property
    def children(self):
        return self.left, self.right

    def with_children(self, children):
        return replace(self, left=children[0], right=children[1])

    @property
    def columns(self):
        return self.left.columns + self.right.columns

    @property
    def expressions(self):
        return (self.condition,)


@dataclass(frozen=True, slots=True)
class ResultModifier(UnaryOperator, WindowNode):
    """The base of what changes which tuples stand in the answer and in what order, not what they consist of."""

    child: WindowNode

    @property
    def columns(self):
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Distinct(ResultModifier):
    """The first of equal tuples; nulls are equal here."""


@dataclass(frozen=True, slots=True)
class Sort(ResultModifier):
    """`keys` are (expression, descending, nulls first); ties keep their order."""

    keys: tuple[tuple[Expression, bool, bool], ...]

    @property
    def expressions(self):
        return tuple(expression for expression, _, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Limit(ResultModifier):
    count: int


@dataclass(frozen=True, slots=True)
class TableUnion(UnionMixin, WindowNode):
    """All tuples of all parts, in order; columns match by position."""

    parts: tuple[WindowNode, ...]
    attributes: tuple[Column, ...]

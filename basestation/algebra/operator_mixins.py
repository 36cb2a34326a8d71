"""Mixins: the common parts of operators over streams and operators over windows.

Each stands before StreamNode or WindowNode in the bases of an operator, and derives properties from the operator's fields.
"""

from collections.abc import Sequence
from typing import Self

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import PlanNode, copy_with


class UnaryOperator(PlanNode):
    """Over one other node, its `child`."""

    __slots__ = ()
    child: PlanNode

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        return copy_with(self, child=children[0])


class SelectMixin(UnaryOperator):
    """Keeps the tuples for which `predicate` is true, unchanged."""

    __slots__ = ()
    predicate: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.predicate,)


class ProjectMixin(UnaryOperator):
    """Computes new tuples: `outputs` pairs each column of the result with its expression."""

    __slots__ = ()
    outputs: tuple[tuple[Column, Expression], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.outputs)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(expression for _, expression in self.outputs)


class AggregateMixin(UnaryOperator):
    """One tuple for each group: `groups` and `aggregates` pair columns of the result with their expressions.

    `grouped` is True with GROUP BY, and False for the one group that always exists.
    """

    __slots__ = ()
    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    grouped: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in (*self.groups, *self.aggregates))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(expression for _, expression in (*self.groups, *self.aggregates))


class ProductMixin(PlanNode):
    """Combinations of the tuples of its `inputs`."""

    __slots__ = ()
    inputs: tuple[PlanNode, ...]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.inputs

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        return copy_with(self, inputs=tuple(children))

    @property
    def columns(self) -> tuple[Column, ...]:
        found: tuple[Column, ...] = ()
        for child in self.inputs:  # a loop needs no frame of Python's stack per input: chains of joins are deep
            found += child.columns
        return found


class UnionMixin(PlanNode):
    """The tuples of all its `parts`, whose columns match by position, as tuples of its `attributes`."""

    __slots__ = ()
    parts: tuple[PlanNode, ...]
    attributes: tuple[Column, ...]

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.parts

    def with_children(self, children: Sequence[PlanNode]) -> Self:
        return copy_with(self, parts=tuple(children))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.attributes

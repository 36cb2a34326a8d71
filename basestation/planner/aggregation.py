"""Aggregation: whether a SELECT aggregates, and how its aggregates and groups become columns (semantics 5.5 to 5.7)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_text import format_expression
from basestation.algebra.node import WindowNode
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.language import syntax
from basestation.language.node import SyntaxNode
from basestation.planner.extensions import parts_of
from basestation.planner.functions import AGGREGATES


def aggregate_calls(select: syntax.Select) -> list[syntax.Call]:
    """The calls of aggregates in the SELECT list, HAVING and ORDER BY, without those inside subqueries."""
    calls: list[syntax.Call] = []
    pending: list[SyntaxNode] = [*select.items, *select.order_by]
    if select.having is not None:
        pending.append(select.having)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.QueryExpression):
            continue
        if isinstance(node, syntax.Call) and node.function in AGGREGATES:
            calls.append(node)
        pending.extend(parts_of(node))
    return calls


def is_aggregating(select: syntax.Select) -> bool:
    """A query aggregates if it has GROUP BY or HAVING or an aggregate in its SELECT list (5.7)."""
    return bool(select.group_by) or select.having is not None or bool(aggregate_calls(select))


@dataclass(slots=True)
class AggregateLifter:
    """Moves expressions over the tuples of a window above a WindowAggregation, whose results are columns there."""

    groups: dict[Column, Column]
    found: dict[ex.Aggregate, Column]
    new_id: Callable[[], int]

    @classmethod
    def over(cls, group_columns: Iterable[Column], new_id: Callable[[], int]) -> "AggregateLifter":
        return cls({c: replace(c, id=new_id()) for c in group_columns}, {}, new_id)

    def lift(self, expression: Expression) -> Expression:
        """The expression, with each aggregate and grouping column replaced by the column that holds its value."""
        return ex.transform(expression, self._lifted, whole=(ex.Aggregate,))

    def _lifted(self, expression: Expression) -> Expression:
        if isinstance(expression, ex.Aggregate):
            column = self.found.get(expression)
            if column is None:
                column = Column(self.new_id(), expression.result, text=format_expression(expression))
                self.found[expression] = column
            return ex.Attr(column)
        if isinstance(expression, ex.Attr):
            return ex.Attr(self.groups[expression.column])
        return expression

    def node(self, child: WindowNode, grouped: bool) -> WindowAggregation:
        """The WindowAggregation that computes everything that was lifted."""
        groups = tuple((column, ex.Attr(source)) for source, column in self.groups.items())
        found = tuple((column, aggregate) for aggregate, column in self.found.items())
        return WindowAggregation(groups, found, child, grouped)

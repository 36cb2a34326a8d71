"""Aggregation: whether a SELECT aggregates, and how its aggregates and groups become columns (SEMANTICS 5.5 to 5.7)."""

from dataclasses import dataclass, replace

from basestation.algebra import expressions as ex
from basestation.algebra.expression_text import format_expression
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.language import syntax
from basestation.planner.extensions import parts_of
from basestation.planner.functions import AGGREGATES


def aggregate_calls(select):
    """The calls of aggregates in the SELECT list, HAVING and ORDER BY; those of subqueries there are not its own."""
    calls, pending = [], [*select.items, *select.order_by]
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


def is_aggregating(select):
    """A query aggregates if it has GROUP BY or HAVING or an aggregate in its SELECT list (5.7)."""
    return bool(select.group_by) or select.having is not None or bool(aggregate_calls(select))


@dataclass(slots=True)
class AggregateLifter:
    """Moves expressions over the tuples of a window above a WindowAggregation: what it gives are columns there."""

    groups: dict
    found: dict
    new_id: object

    @classmethod
    def over(cls, group_columns, new_id):
        return cls({c: replace(c, id=new_id()) for c in group_columns}, {}, new_id)

    def lift(self, expression):
        """The expression with each aggregate and grouping column replaced by the column that has it."""
        return ex.transform(expression, self._lifted, whole=ex.Aggregate)

    def _lifted(self, expression):
        if isinstance(expression, ex.Aggregate):
            column = self.found.get(expression)
            if column is None:
                column = ex.Column(self.new_id(), expression.type, text=format_expression(expression))
                self.found[expression] = column
            return ex.Attr(column)
        if isinstance(expression, ex.Attr):
            return ex.Attr(self.groups[expression.column])
        return expression

    def node(self, child, grouped):
        """The WindowAggregation that gives everything that was lifted."""
        groups = tuple((column, ex.Attr(source)) for source, column in self.groups.items())
        found = tuple((column, aggregate) for aggregate, column in self.found.items())
        return WindowAggregation(groups, found, child, grouped)

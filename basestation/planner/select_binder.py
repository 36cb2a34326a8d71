"""Binds SELECT over windows and tables: WHERE, GROUP BY, HAVING, the list; ORDER BY and LIMIT of one-off queries (10.6)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.one_off import Distinct, Limit, Sort
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.language import syntax
from basestation.language.printer import print_expression
from basestation.planner.aggregation import AggregateLifter, is_aggregating
from basestation.planner.diagnostic_report import Report
from basestation.planner.expression_binder import UNKNOWN, BindSubquery, ExpressionBinder, any_unknown
from basestation.planner.from_binder import BoundFrom
from basestation.planner.scope import Scope, ScopeEntry
from basestation.planner.source_binder import Bound, QueryContext

_WHERE = "WHERE chooses tuples one by one; HAVING chooses groups"
Outputs: TypeAlias = tuple[tuple[Column, Expression], ...]
"""A bound SELECT list: each column of the result with its expression."""
SortKey: TypeAlias = tuple[Expression, bool, bool]
"""(expression, descending, nulls first)"""


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A bound SELECT: the node below its list, the list, and the sort keys."""

    node: WindowNode
    outputs: Outputs
    order: tuple[SortKey, ...]


def bind_window_select(source: BoundFrom, written: syntax.Select, binder: QueryContext) -> Bound | None:
    """A window query; None after an error."""
    body = _body(source, written, binder, binder.no_subquery)
    if body is None:
        return None
    node = WindowProject(body.outputs, body.node)
    return Bound(node, node.columns)


def bind_one_off_select(source: BoundFrom, written: syntax.Select, binder: QueryContext) -> Bound | None:
    """A one-off query with its ORDER BY, DISTINCT and LIMIT; None after an error."""
    body = _body(source, written, binder, binder.subquery)
    if body is None:
        return None
    below = Sort(body.node, body.order) if body.order else body.node
    node: WindowNode = WindowProject(body.outputs, below)
    if written.distinct:
        node = Distinct(node)
    return Bound(_limited(node, written), node.columns, is_one_off=True)


def bind_order_and_limit(bound: Bound, written: syntax.Union, binder: QueryContext) -> Bound | None:
    """A one-off union with its ORDER BY and LIMIT, which see the columns of the union; None after an error."""
    scope = Scope((ScopeEntry(None, bound.columns),))
    typing = ExpressionBinder(scope, binder.report, binder.subquery)
    keys = _all([_order_key(order, typing.value(order.expr), binder.report) for order in written.order_by])
    if keys is None:
        return None
    if not isinstance(bound.node, WindowNode):
        raise TypeError(f"no union of tables: {bound.node!r}")
    node = Sort(bound.node, keys) if keys else bound.node
    return Bound(_limited(node, written), bound.columns, is_one_off=True)


def _all(keys: Sequence[SortKey | None]) -> tuple[SortKey, ...] | None:
    """The keys as a tuple; None if one of them is missing."""
    found = tuple(key for key in keys if key is not None)
    return found if len(found) == len(keys) else None


def _limited(node: WindowNode, written: syntax.Select | syntax.Union) -> WindowNode:
    return node if written.limit is None else Limit(node, int(written.limit.value))


def _body(
    source: BoundFrom, written: syntax.Select, binder: QueryContext, subquery: BindSubquery
) -> BoundSelect | None:
    """A SELECT without its list and modifiers; None after an error."""
    report = binder.report
    scope = replace(source.scope, aliases=frozenset(find_aliases(written.items)))
    where = ExpressionBinder(scope, report, subquery, aggregates=_WHERE)
    predicate = None if written.where is None else where.predicate(written.where)
    aggregating = is_aggregating(written)
    groups = [None if isinstance(g, syntax.Bad) else scope.find(g, report) for g in written.group_by]
    known = tuple(g for g in groups if g is not None)
    grouped = frozenset(known) if aggregating else None
    if not scope.complete or None in groups:
        grouped = None  # the missing column may be the one in the SELECT list
    typing = ExpressionBinder(scope, report, subquery, grouped, None, source.unordered)
    outputs = bind_select_list(written.items, typing, binder)
    having = None if written.having is None else typing.predicate(written.having, "HAVING")
    order = _order(written, outputs, typing, report)
    if not isinstance(source.node, WindowNode) or outputs is None or order is None:
        return None
    if None in groups or any_unknown((predicate, having)):
        return None
    node: WindowNode = source.node if predicate is None else WindowSelect(predicate, source.node)
    if aggregating:
        lifting = AggregateLifter.over(known, binder.new_id)
        outputs = tuple((column, lifting.lift(e)) for column, e in outputs)
        having = None if having is None else lifting.lift(having)
        order = tuple((lifting.lift(e), descending, nulls_first) for e, descending, nulls_first in order)
        node = lifting.node(node, bool(written.group_by))
        node = node if having is None else WindowSelect(having, node)
    return BoundSelect(node, outputs, order)


def find_aliases(items: Iterable[syntax.SelectItem | syntax.Star]) -> set[str]:
    """The aliases of a SELECT list."""
    return {item.alias.text for item in items if isinstance(item, syntax.SelectItem) and item.alias is not None}


# --- the SELECT list -------------------------------------------------------------------------------------------------


def bind_select_list(
    items: Iterable[syntax.SelectItem | syntax.Star], typing: ExpressionBinder, binder: QueryContext
) -> Outputs | None:
    """The bound SELECT list, or None after an error."""
    bound = [_star(i, typing, binder) if isinstance(i, syntax.Star) else _item(i, typing, binder) for i in items]
    outputs = [pairs for pairs in bound if pairs is not None]
    return tuple(pair for pairs in outputs for pair in pairs) if len(outputs) == len(bound) else None


def _item(item: syntax.SelectItem, typing: ExpressionBinder, binder: QueryContext) -> Outputs | None:
    found = typing.value(item.expr)
    if item.alias is not None and item.alias.text.startswith("_"):
        binder.report.error("SN210", "names that begin with an underscore are the system's", item.alias)
    if found is UNKNOWN:
        return None
    return (
        (
            output_column(found, item.alias.text if item.alias else None, print_expression(item.expr), binder.new_id),
            found,
        ),
    )


def output_column(expression: Expression, alias: str | None, text: str | None, new_id: Callable[[], int]) -> Column:
    """The result column of an expression: a plain attribute keeps its name, scale and unit (2.3, 14)."""
    if isinstance(expression, ex.Attr):
        source = expression.column
        name, qualifier = (alias, None) if alias else (source.name, source.qualifier)
        return Column(new_id(), source.type, name, qualifier, source.scale, source.unit, source.text)
    return Column(new_id(), expression.type or Type.INTEGER, alias, text=text)


def _star(item: syntax.Star, typing: ExpressionBinder, binder: QueryContext) -> Outputs | None:
    columns = typing.scope.star(item.qualifier.text if item.qualifier else None)
    if columns is None:
        if item.qualifier is not None:
            typing.scope.unknown_qualifier(item.qualifier, binder.report)
        return None
    for column in columns:
        if typing.grouped is not None and column not in typing.grouped:
            binder.report.error(
                "SN406",
                f"`*` takes in `{column}`, which is not grouped by",
                item,
                help="list the grouping columns and aggregates",
            )
            return None
    return tuple((output_column(ex.Attr(c), None, None, binder.new_id), ex.Attr(c)) for c in columns)


# --- ORDER BY --------------------------------------------------------------------------------------------------------


def _order(
    written: syntax.Select, outputs: Outputs | None, typing: ExpressionBinder, report: Report
) -> tuple[SortKey, ...] | None:
    """The sort keys, or None after an error. As in SQL, a bare name means an alias of the SELECT list first."""
    if not written.order_by or outputs is None:
        return ()
    by_alias: dict[str, Expression] = {}
    for item in written.items:
        if isinstance(item, syntax.SelectItem) and item.alias is not None:
            by_alias.setdefault(item.alias.text, _aliased(item.alias.text, outputs))
    keys = []
    for order in written.order_by:
        plain = (
            order.expr.name.text if isinstance(order.expr, syntax.ColumnRef) and order.expr.qualifier is None else None
        )
        aliased = None if plain is None else by_alias.get(plain)
        found = typing.value(order.expr) if aliased is None else aliased
        if found is not UNKNOWN and written.distinct and all(found != e for _, e in outputs):
            report.error("SN433", "after DISTINCT only what is in the SELECT list can be sorted by", order)
            found = UNKNOWN
        keys.append(_order_key(order, found, report))
    return _all(keys)


def _aliased(alias: str, outputs: Outputs) -> Expression:
    """The bound expression of the item with an alias."""
    return next(e for column, e in outputs if column.name == alias and column.qualifier is None)


def _order_key(order: syntax.OrderItem, found: Expression, report: Report) -> SortKey | None:
    if found is UNKNOWN:
        return None
    if isinstance(order.expr, syntax.Number | syntax.String | syntax.Null):
        report.error(
            "SN433",
            "a constant sorts nothing; positions of the SELECT list are not counted",
            order,
            help="name the column or its alias",
        )
        return None
    nulls_first = (not order.descending) if order.nulls_first is None else order.nulls_first
    return found, order.descending, nulls_first

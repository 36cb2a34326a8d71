"""SELECT over windows and over tables: WHERE, groups, HAVING, the list; and what only one-off queries have (10.6)."""

from dataclasses import dataclass

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.node import WindowNode
from basestation.algebra.one_off import Distinct, Limit, Sort
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.language import syntax
from basestation.language.printer import print_expression
from basestation.planner.aggregation import AggregateLifter, is_aggregating
from basestation.planner.expression_binder import UNKNOWN, ExpressionBinder, any_unknown
from basestation.planner.scope import Scope, ScopeEntry
from basestation.planner.source_binder import Bound

_WHERE = "WHERE chooses tuples one by one; HAVING chooses groups"


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A SELECT up to its list: the node below, the list, and what to sort by."""

    node: WindowNode
    outputs: tuple
    order: tuple


def bind_window_select(source, written, binder):
    body = _body(source, written, binder, binder.no_subquery)
    if body is None:
        return None
    node = WindowProject(body.outputs, body.node)
    return Bound(node, node.columns)


def bind_one_off_select(source, written, binder):
    body = _body(source, written, binder, binder.subquery)
    if body is None:
        return None
    node = Sort(body.node, body.order) if body.order else body.node
    node = WindowProject(body.outputs, node)
    if written.distinct:
        node = Distinct(node)
    return Bound(_limited(node, written), node.columns, once=True)


def bind_order_and_limit(bound, written, binder):
    """A one-off union with its ORDER BY and LIMIT, which know the columns of the union."""
    scope = Scope((ScopeEntry(None, bound.columns),))
    typing = ExpressionBinder(scope, binder.report, binder.subquery)
    keys = [_order_key(order, typing.value(order.expr), binder.report) for order in written.order_by]
    if None in keys:
        return None
    node = Sort(bound.node, tuple(keys)) if keys else bound.node
    return Bound(_limited(node, written), bound.columns, once=True)


def _limited(node, written):
    return node if written.limit is None else Limit(node, written.limit.value)


def _body(source, written, binder, subquery):
    """Everything of a SELECT but its last steps; None after an error."""
    report, scope = binder.report, source.scope
    where = ExpressionBinder(scope, report, subquery, aggregates=_WHERE)
    predicate = None if written.where is None else where.predicate(written.where)
    aggregating = is_aggregating(written)
    groups = [None if isinstance(g, syntax.Bad) else scope.find(g, report) for g in written.group_by]
    grouped = frozenset(g for g in groups if g is not None) if aggregating else None
    if not scope.complete or None in groups:
        grouped = None  # what is missing may be what was meant
    typing = ExpressionBinder(scope, report, subquery, grouped, None, source.one_stream)
    outputs = bind_select_list(written.items, typing, binder)
    having = None if written.having is None else typing.predicate(written.having, "HAVING")
    order = _order(written, outputs, typing, report)
    if source.node is None or None in groups or any_unknown((predicate, having)) or outputs is None or order is None:
        return None
    node = source.node if predicate is None else WindowSelect(predicate, source.node)
    if aggregating:
        lifting = AggregateLifter.over(groups, binder.new_id)
        outputs = tuple((column, lifting.lift(e)) for column, e in outputs)
        having = None if having is None else lifting.lift(having)
        order = tuple((lifting.lift(e), *how) for e, *how in order)
        node = lifting.node(node, bool(written.group_by))
        node = node if having is None else WindowSelect(having, node)
    return BoundSelect(node, outputs, order)


# --- the SELECT list -------------------------------------------------------------------------------------------------


def bind_select_list(items, typing, binder):
    """Pairs (column of the result, expression) of a SELECT list, or None after an error."""
    outputs = []
    for item in items:
        if isinstance(item, syntax.Star):
            outputs.append(_star(item, typing, binder))
        else:
            outputs.append(_item(item, typing, binder))
    if None in outputs:
        return None
    return tuple(pair for pairs in outputs for pair in pairs)


def _item(item, typing, binder):
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


def output_column(expression, alias, text, new_id):
    """The column that an expression makes: a plain attribute keeps its name, scale and unit (2.3, 14)."""
    if isinstance(expression, ex.Attr):
        source = expression.column
        name, qualifier = (alias, None) if alias else (source.name, source.qualifier)
        return ex.Column(new_id(), source.type, name, qualifier, source.scale, source.unit, source.text)
    return ex.Column(new_id(), expression.type or Type.INTEGER, alias, text=text)


def _star(item, typing, binder):
    qualifier = item.qualifier.text if item.qualifier else None
    columns = typing.scope.star(qualifier)
    if columns is None:
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


def _order(written, outputs, typing, report):
    """The sort keys; a bare name means an alias of the SELECT list first, as SQL's custom is. None after an error."""
    if not written.order_by or outputs is None:
        return ()
    by_alias = {}
    for item in written.items:
        if isinstance(item, syntax.SelectItem) and item.alias is not None:
            by_alias.setdefault(item.alias.text, _aliased(item, outputs))
    keys = []
    for order in written.order_by:
        plain = (
            order.expr.name.text if isinstance(order.expr, syntax.ColumnRef) and order.expr.qualifier is None else None
        )
        found = by_alias.get(plain)
        found = typing.value(order.expr) if found is None else found
        if found is not UNKNOWN and written.distinct and all(found != e for _, e in outputs):
            report.error("SN433", "after DISTINCT only what is in the SELECT list can be sorted by", order)
            found = UNKNOWN
        keys.append(_order_key(order, found, report))
    return None if None in keys else tuple(keys)


def _aliased(item, outputs):
    """The bound expression of an item with an alias."""
    return next(e for column, e in outputs if column.name == item.alias.text and column.qualifier is None)


def _order_key(order, found, report):
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

"""SELECT lists and grouping: what all kinds of SELECT share (2.2, 2.3, 5.7)."""

from basestation.language import syntax
from tests.oracles.errors import RejectedError
from tests.oracles.expressions import Column, has_aggregate


def aggregates_here(select):
    """5.7: a query aggregates if it has GROUP BY or HAVING or an aggregate in its SELECT list."""
    items = [item.expr for item in select.items if isinstance(item, syntax.SelectItem)]
    return bool(select.group_by) or select.having is not None or any(has_aggregate(e) for e in items)


def grouping(select, scope):
    """The grouping columns as places; None where the query does not aggregate."""
    if not aggregates_here(select):
        return None
    return {scope.find(c.qualifier.text if c.qualifier else None, c.name.text) for c in select.group_by}


def select_list(items, scope, binder):
    """(columns, functions of Env, for each the place in FROM that it is a plain copy of, or None)."""
    columns, functions, origins = [], [], []
    for item in items:
        if isinstance(item, syntax.Star):
            wanted = item.qualifier.text if item.qualifier else None
            places = [i for i, c in enumerate(scope.columns) if wanted in (None, c.qualifier)]
            if wanted and not places:
                raise RejectedError("name", f"unknown {wanted}")
            for place in places:
                if binder.group is not None and place not in binder.group:
                    raise RejectedError("static", "* in an aggregating query")  # 2.2
                columns.append(scope.columns[place])
                functions.append(_copy(place))
                origins.append(place)
            continue
        type_, function = binder.value(item.expr)
        type_ = "integer" if type_ == "null" else type_  # 14, on 10.4: a bare NULL column
        origin = None
        column = Column(None, None, type_)  # 2.3: computed without an alias, it has no name
        if isinstance(item.expr, syntax.ColumnRef):
            origin = scope.find(item.expr.qualifier.text if item.expr.qualifier else None, item.expr.name.text)
            if origin in ("tick", "index"):
                column = Column(scope.names[0] if scope.names else None, origin, type_)  # 1.7: an ordinary column
            else:
                column = scope.columns[origin]  # name, qualifier and scale are kept
        if item.alias:
            column = Column(None, item.alias.text, type_, column.scale)
        columns.append(column)
        functions.append(function)
        origins.append(origin)
    return tuple(columns), functions, origins


def _copy(place):
    return lambda env: env.row[place]


def no_one_off_clauses(select):
    """Part II: DISTINCT, ORDER BY and LIMIT exist in one-off queries only."""
    if select.distinct or select.order_by or select.limit is not None:
        raise RejectedError("static", "DISTINCT, ORDER BY and LIMIT exist in one-off queries only")

"""The printer: a syntax tree as text on one line, with the fewest parentheses possible.

`parse(print(tree)) == tree` for every tree that the parser returns without diagnostics, so `print(parse(text))` is the
canonical form of a text. Keywords are in capitals, aliases have AS, `!=` is `<>`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from basestation.language import syntax as s
from basestation.language.precedence import COMPARE, NOT, OPERATORS, OR, SIGNED, SUM

_ATOM = SIGNED + 1
_FIRST_WORD = re.compile(r"\w+|.", re.DOTALL)


def print_statement(statement: s.Statement) -> str:
    return _STATEMENTS[type(statement)](statement)


def print_query(query: s.QueryExpression) -> str:
    return _QUERIES[type(query)](query)


def print_expression(expression: s.Expr) -> str:
    return _print(expression, OR)


# --- expressions -----------------------------------------------------------------------------------------------------


def _print(node: s.Expr, loosest: int) -> str:
    """The text of an expression, in parentheses if its precedence is lower than `loosest`."""
    binding, write = _EXPRESSIONS[type(node)]
    if isinstance(node, s.Binary):
        binding = OPERATORS[node.op]
    elif isinstance(node, s.Unary) and node.op == "NOT":
        binding = NOT
    return write(node) if binding >= loosest else f"({write(node)})"


def _binary(chain: s.Binary) -> str:
    """A chain of operators of one precedence, without recursion: its left side may be very deep."""
    binding = OPERATORS[chain.op]
    pieces: list[str] = []
    node: s.Expr = chain
    while isinstance(node, s.Binary) and OPERATORS[node.op] == binding:
        pieces.append(f" {node.op} {_print(node.right, binding + 1)}")
        node = node.left
        if binding == COMPARE:
            break
    return _print(node, binding + (binding == COMPARE)) + "".join(reversed(pieces))


def _unary(node: s.Unary) -> str:
    if node.op == "NOT":
        return f"NOT {_print(node.operand, NOT)}"
    operand = _print(node.operand, SIGNED)
    return f"- {operand}" if operand.startswith("-") else f"-{operand}"  # `--` would begin a comment


def _column(node: s.ColumnRef) -> str:
    return f"{node.qualifier.text}.{node.name.text}" if node.qualifier else node.name.text


def _string(node: s.String) -> str:
    return quote_string(node.value)


def quote_string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _operand(node: s.Between | s.InList | s.InQuery | s.Like) -> str:
    return _print(node.operand, SUM) + (" NOT" if node.negated else "")


def _is_null(node: s.IsNull) -> str:
    return f"{_print(node.operand, SUM)} IS {'NOT ' if node.negated else ''}NULL"


def _between(node: s.Between) -> str:
    return f"{_operand(node)} BETWEEN {_print(node.low, SUM)} AND {_print(node.high, SUM)}"


def _call(node: s.Call) -> str:
    if node.star:
        return f"{node.name.text}(*)"
    if node.distinct:
        rest = "".join(f", {_print(e, OR)}" for e in node.arguments[1:])
        return f"{node.name.text}(DISTINCT {_after_distinct(node.arguments[0])}{rest})"
    return f"{node.name.text}({_list(node.arguments)})"


def _after_distinct(expression: s.Expr) -> str:
    """The expression, in parentheses if the word DISTINCT before it would read as a column: `DISTINCT - x`."""
    text = _print(expression, OR)
    return f"({text})" if (word := _FIRST_WORD.match(text)) and word[0].upper() in OPERATORS else text


def _case(node: s.Case) -> str:
    branches = "".join(f" WHEN {_print(when, OR)} THEN {_print(then, OR)}" for when, then in node.branches)
    otherwise = f" ELSE {_print(node.otherwise, OR)}" if node.otherwise else ""
    return f"CASE{branches}{otherwise} END"


def _list(expressions: Iterable[s.Expr]) -> str:
    return ", ".join([_print(e, OR) for e in expressions])


def print_duration(node: s.Duration) -> str:
    return f"{node.count} {node.unit}"


_EXPRESSIONS: dict[type[s.Expr], tuple[int, Callable[[Any], str]]] = {
    s.Bad: (_ATOM, lambda node: "…"),
    s.Number: (_ATOM, lambda node: repr(node.value)),
    s.String: (_ATOM, _string),
    s.Null: (_ATOM, lambda node: "NULL"),
    s.ColumnRef: (_ATOM, _column),
    s.Unary: (SIGNED, _unary),
    s.Binary: (OR, _binary),
    s.IsNull: (COMPARE, _is_null),
    s.Between: (COMPARE, _between),
    s.InList: (COMPARE, lambda node: f"{_operand(node)} IN ({_list(node.items)})"),
    s.InQuery: (COMPARE, lambda node: f"{_operand(node)} IN ({print_query(node.query)})"),
    s.Like: (COMPARE, lambda node: f"{_operand(node)} LIKE {_print(node.pattern, SUM)}"),
    s.Case: (_ATOM, _case),
    s.Cast: (_ATOM, lambda node: f"CAST({_print(node.operand, OR)} AS {node.type.text})"),
    s.Call: (_ATOM, _call),
    s.ScalarSubquery: (_ATOM, lambda node: f"({print_query(node.query)})"),
    s.Exists: (_ATOM, lambda node: f"EXISTS ({print_query(node.query)})"),
    s.LoopName: (_ATOM, lambda node: node.text),
    s.Duration: (_ATOM, print_duration),
}


# --- windows and FROM ------------------------------------------------------------------------------------------------


def _point(node: s.WindowBound) -> str:
    if not node.back:
        return "NOW"
    return f"NOW-{node.back} {node.unit}" if node.unit else f"NOW-{node.back}"


def _slide(node: s.RangeWindow | s.UnboundedWindow) -> str:
    return f" SLIDE {print_duration(node.slide)}" if node.slide else ""


_WINDOWS: dict[type[s.WindowClause], Callable[[Any], str]] = {
    s.RangeWindow: lambda node: f"[FROM {_point(node.begin)} TO {_point(node.end)}{_slide(node)}]",
    s.NowWindow: lambda node: "[NOW]",
    s.UnboundedWindow: lambda node: f"[UNBOUNDED{_slide(node)}]",
    s.ScanWindow: lambda node: f"[SCAN {print_duration(node.every)}]",
}


def print_window(window: s.WindowClause) -> str:
    return _WINDOWS[type(window)](window)


def _source(node: s.ExtentSource | s.QuerySource) -> str:
    if isinstance(node, s.ExtentSource):
        return node.name.text + (".HISTORY" if node.history else "")
    text = print_query(node.query)
    return text if isinstance(node.query, s.ConverterQuery) else f"({text})"


def _entry(node: s.FromEntry | s.Join) -> str:
    if isinstance(node, s.Join):
        first, joins = node.chain()
        return _entry(first) + "".join(map(_join, joins))
    window = f" {print_window(node.window)}" if node.window else ""
    return _source(node.source) + _alias(node) + window


def _join(node: s.Join) -> str:
    """A join without its left side."""
    kind = "" if node.kind == "INNER" else f"{node.kind} "
    condition = f" ON {_print(node.condition, OR)}" if node.condition else ""
    return f" {kind}JOIN {_entry(node.right)}{condition}"


def _alias(node: s.FromEntry | s.SelectItem) -> str:
    return f" AS {node.alias.text}" if node.alias else ""


# --- queries ---------------------------------------------------------------------------------------------------------


def _item(node: s.SelectItem | s.Star, write: Callable[[s.Expr], str] = print_expression) -> str:
    if isinstance(node, s.Star):
        return f"{node.qualifier.text}.*" if node.qualifier else "*"
    return write(node.expr) + _alias(node)


def _select(node: s.Select) -> str:
    items = [_item(item) for item in node.items]
    if node.distinct:
        items[0] = f"DISTINCT {_item(node.items[0], _after_distinct)}"
    pieces = ["SELECT ", ", ".join(items), " FROM ", ", ".join([_entry(entry) for entry in node.entries])]
    if node.where:
        pieces += [" WHERE ", _print(node.where, OR)]
    if node.group_by:
        pieces += [" GROUP BY ", _list(node.group_by)]
    if node.having:
        pieces += [" HAVING ", _print(node.having, OR)]
    return "".join(pieces) + _order_and_limit(node)


def _order(node: s.OrderItem) -> str:
    nulls = "" if node.nulls_first is None else " NULLS FIRST" if node.nulls_first else " NULLS LAST"
    return _print(node.expr, OR) + (" DESC" if node.descending else "") + nulls


def _order_and_limit(node: s.Select | s.Union) -> str:
    order = " ORDER BY " + ", ".join(map(_order, node.order_by)) if node.order_by else ""
    return order + (f" LIMIT {node.limit.value}" if node.limit else "")


_QUERIES: dict[type[s.QueryExpression], Callable[[Any], str]] = {
    s.Select: _select,
    s.ConverterQuery: lambda node: f"{node.kind}({print_query(node.query)})",
    s.Union: lambda node: " UNION ALL ".join(map(print_query, node.parts)) + _order_and_limit(node),
}


# --- loops -----------------------------------------------------------------------------------------------------------


def _loop(node: s.Loop) -> str:
    first = f"t = {_print(node.first, SUM)}" if node.first else ""
    windows = " ".join(map(_window_is, node.windows))
    return f" FOR ({first}; {_print(node.condition, OR)}; {_change(node.change)}) {{ {windows} }}"


def _change(node: s.Expr) -> str:
    if isinstance(node, s.Binary) and node.op in "+-" and node.left == s.LoopName("t"):
        if node.right == s.Number(1):
            return f"t{node.op}{node.op}"
        return f"t {node.op}= {_print(node.right, SUM)}"
    return f"t = {_print(node, SUM)}"


def _window_is(node: s.WindowIs | s.Bad) -> str:
    if isinstance(node, s.Bad):
        return print_expression(node)
    rows = " ROWS" if node.rows else ""
    return f"WindowIs({node.name.text}{rows}, {_print(node.left, SUM)}, {_print(node.right, SUM)});"


# --- statements ------------------------------------------------------------------------------------------------------


def _query_statement(node: s.QueryStatement) -> str:
    pieces = [print_query(node.query), *map(_loop, node.loops)]
    if node.since:
        start: object = node.since.start
        if isinstance(start, s.Duration):
            start = f"NOW-{print_duration(start)}"
        elif isinstance(start, str):
            start = quote_string(start)
        pieces.append(f" SINCE {start}")
    clauses = node.clauses
    for words, value in (
        ("ACQUIRE EVERY", clauses.acquire_every),
        ("DELIVER WITHIN", clauses.deliver_within),
        ("FOR", clauses.run_for),
        ("LIFETIME", clauses.lifetime),
    ):
        if value:
            pieces.append(f" {words} {print_duration(value)}")
    return "".join(pieces)


def _where(node: s.Revise | s.Delete) -> str:
    return f" WHERE {_print(node.where, OR)}" if node.where else ""


def _revise(node: s.Revise) -> str:
    changes = ", ".join(f"{name.text} = {_print(value, OR)}" for name, value in node.changes)
    return f"REVISE {node.name.text} SET {changes}{_where(node)}"


def _insert(node: s.Insert) -> str:
    columns = ", ".join(name.text for name in node.columns)
    rows = ", ".join(f"({_list(row)})" for row in node.rows)
    return f"INSERT INTO {node.name.text} ({columns}) VALUES {rows}"


_STATEMENTS: dict[type[s.Statement], Callable[[Any], str]] = {
    s.QueryStatement: _query_statement,
    s.Explain: lambda node: f"EXPLAIN {'ANALYZE ' if node.analyze else ''}{_query_statement(node.ask)}",
    s.Revise: _revise,
    s.Delete: lambda node: f"DELETE FROM {node.name.text}{_where(node)}",
    s.Insert: _insert,
}

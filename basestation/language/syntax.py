"""Syntax: the tree of a text as it was written, before names and types are resolved.

Every node is a frozen value with a span. Spans do not take part in comparison, so two texts with the same content have
equal trees; the round trip of the printer is tested with that. The binder decides whether a name exists.
"""

from collections.abc import Collection

from basestation.language.node import NO_SPAN, SyntaxNode, span_field, syntax_node
from gateway.source import Span


@syntax_node
class Name(SyntaxNode):
    """An identifier as it was written."""

    text: str


# --- expressions -----------------------------------------------------------------------------------------------------


@syntax_node
class Expr(SyntaxNode):
    """The base of expressions."""


@syntax_node
class Bad(Expr):
    """An expression that could not be read. Its error is reported already, so later stages report nothing about it."""


@syntax_node
class Number(Expr):
    """`12` is an int, `1.5` and `2e-3` are floats; never negative (the minus is an operator). 1 and 1.0 differ."""

    value: int | float


@syntax_node
class String(Expr):
    value: str


@syntax_node
class Null(Expr):
    pass


@syntax_node
class ColumnRef(Expr):
    """`a` or `x.a`."""

    qualifier: Name | None
    name: Name


@syntax_node
class Unary(Expr):
    """op is `-` or `NOT`."""

    op: str
    operand: Expr


@syntax_node
class Binary(Expr):
    """op is one of `+ - * / % = <> < <= > >= AND OR` (`!=` and `==` have become `<>` and `=`)."""

    op: str
    left: Expr
    right: Expr
    op_span: Span = span_field(default=NO_SPAN, kw_only=True)

    def chain(self, ops: Collection[str]) -> "tuple[Expr, list[Binary]]":
        """`a + b - c` as (a, the nodes of the two operators), leftmost first. The left side may be very deep."""
        links: list[Binary] = []
        first: Expr = self
        while isinstance(first, Binary) and first.op in ops:
            links.append(first)
            first = first.left
        return first, links[::-1]


@syntax_node
class IsNull(Expr):
    operand: Expr
    negated: bool


@syntax_node
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@syntax_node
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@syntax_node
class InQuery(Expr):
    """`e IN (SELECT …)`; one-off queries only."""

    operand: Expr
    query: "QueryExpression"
    negated: bool


@syntax_node
class Like(Expr):
    operand: Expr
    pattern: Expr
    negated: bool


@syntax_node
class Case(Expr):
    """`CASE WHEN condition THEN value … [ELSE otherwise] END`; branches are (condition, value)."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@syntax_node
class Cast(Expr):
    """`CAST(operand AS type)`; the type's name as written."""

    operand: Expr
    type: Name


@syntax_node
class Call(Expr):
    """`name(arguments)`, for functions and aggregates alike; `COUNT(*)` has star, `COUNT(DISTINCT e)` distinct.

    The name keeps its spelling; functions are found without regard to case.
    """

    name: Name
    arguments: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False

    @property
    def function(self) -> str:
        """The name in capitals."""
        return self.name.text.upper()


@syntax_node
class ScalarSubquery(Expr):
    """`(SELECT …)` where a value is needed; one-off queries only."""

    query: "QueryExpression"


@syntax_node
class Exists(Expr):
    """`EXISTS (SELECT …)`; one-off queries only."""

    query: "QueryExpression"


# --- windows ---------------------------------------------------------------------------------------------------------


@syntax_node
class Duration(Expr):
    """`10 MIN`; the unit in its short form (MS SEC MIN HOUR DAY ROW). An expression in loops only."""

    count: int
    unit: str
    unit_span: Span = span_field(default=NO_SPAN, kw_only=True)


@syntax_node
class WindowBound(SyntaxNode):
    """`NOW` is 0; `NOW-10` is 10 without a unit, `NOW-10 MIN` with one. The sign is always minus."""

    back: int
    unit: str | None = None


@syntax_node
class WindowClause(SyntaxNode):
    """The base of windows."""


@syntax_node
class RangeWindow(WindowClause):
    """`[FROM begin TO end SLIDE slide]`; slide is None if it was left out."""

    begin: WindowBound
    end: WindowBound
    slide: Duration | None


@syntax_node
class NowWindow(WindowClause):
    """`[NOW]`."""


@syntax_node
class UnboundedWindow(WindowClause):
    """`[UNBOUNDED SLIDE slide]`: a landmark window from the query's start."""

    slide: Duration | None


@syntax_node
class ScanWindow(WindowClause):
    """`[SCAN every]`; `RESCAN` means the same."""

    every: Duration


# --- queries ---------------------------------------------------------------------------------------------------------


@syntax_node
class SelectItem(SyntaxNode):
    """An entry of the SELECT list."""

    expr: Expr
    alias: Name | None


@syntax_node
class Star(SyntaxNode):
    """`*` or `x.*`."""

    qualifier: Name | None


@syntax_node
class ExtentSource(SyntaxNode):
    """`road`, or `road.HISTORY`."""

    name: Name
    history: bool = False


@syntax_node
class QuerySource(SyntaxNode):
    """A subquery in FROM: `( query )`, or a converter, which brings its own parentheses."""

    query: "QueryExpression"


@syntax_node
class FromEntry(SyntaxNode):
    """An entry of FROM."""

    source: ExtentSource | QuerySource
    alias: Name | None
    window: WindowClause | None


@syntax_node
class Join(SyntaxNode):
    """`left kind JOIN right ON condition`; kind is INNER, LEFT, RIGHT, FULL or CROSS (which has no condition)."""

    kind: str
    left: "FromEntry | Join"
    right: FromEntry
    condition: Expr | None

    def chain(self) -> "tuple[FromEntry, list[Join]]":
        """`a JOIN b JOIN c` as (a, the nodes of the two joins), leftmost first. The left side may be very deep."""
        links: list[Join] = []
        first: FromEntry | Join = self
        while isinstance(first, Join):
            links.append(first)
            first = first.left
        return first, links[::-1]


@syntax_node
class OrderItem(SyntaxNode):
    """An entry of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None  # None: first when ascending, last when descending


@syntax_node
class QueryExpression(SyntaxNode):
    """The base of SELECT, converters and UNION ALL."""


@syntax_node
class Select(QueryExpression):
    items: tuple[SelectItem | Star, ...]
    entries: tuple[FromEntry | Join, ...]
    where: Expr | None = None
    group_by: tuple[ColumnRef | Bad, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    limit: Number | None = None
    distinct_span: Span = span_field(default=NO_SPAN, kw_only=True)
    grouping_span: Span = span_field(default=NO_SPAN, kw_only=True)  # of GROUP BY, or of HAVING without GROUP BY


@syntax_node
class ConverterQuery(QueryExpression):
    """`RSTREAM(query)`, `ISTREAM(query)` or `DSTREAM(query)`; kind in capitals."""

    kind: str
    query: QueryExpression


@syntax_node
class Union(QueryExpression):
    """`part UNION ALL part …`; ORDER BY and LIMIT of a one-off union belong to the whole of it."""

    parts: tuple[Select | ConverterQuery, ...]
    order_by: tuple[OrderItem, ...] = ()
    limit: Number | None = None


# --- for-loops (semantics 10.8) --------------------------------------------------------------------------------------
# Loop expressions are made of Number, Duration, LoopName, and Binary and Unary over them.


@syntax_node
class LoopName(Expr):
    """`t` or `ST`."""

    text: str


@syntax_node
class WindowIs(SyntaxNode):
    """`WindowIs(name [ROWS], left, right);`"""

    name: Name
    rows: bool
    left: Expr
    right: Expr


@syntax_node
class Loop(SyntaxNode):
    """`FOR (t = first; condition; change) { windows }`.

    first is None if it was left out (t starts at 0); change is the new value of t as an expression
    (`t++` has become `t + 1`, `t -= e` has become `t - e`).
    """

    first: Expr | None
    condition: Expr
    change: Expr
    windows: tuple[WindowIs | Bad, ...]


# --- statements ------------------------------------------------------------------------------------------------------


@syntax_node
class SinceClause(SyntaxNode):
    """`SINCE x`: a tick (int), an RFC 3339 time (str), or a duration before now."""

    start: int | str | Duration


@syntax_node
class StatementClauses(SyntaxNode):
    """The clauses for the network (semantics 11); None for one that was left out."""

    acquire_every: Duration | None = None
    deliver_within: Duration | None = None
    run_for: Duration | None = None  # FOR n unit
    lifetime: Duration | None = None


@syntax_node
class Statement(SyntaxNode):
    """The base of statements."""


@syntax_node
class QueryStatement(Statement):
    """A query with its loops, its start and its clauses."""

    query: QueryExpression
    loops: tuple[Loop, ...] = ()
    since: SinceClause | None = None
    clauses: StatementClauses = StatementClauses()


@syntax_node
class Explain(Statement):
    """`EXPLAIN [ANALYZE] query`."""

    ask: QueryStatement
    analyze: bool = False


@syntax_node
class Revise(Statement):
    """`REVISE name SET a = e, … [WHERE p]`."""

    name: Name
    changes: tuple[tuple[Name, Expr], ...]
    where: Expr | None


@syntax_node
class Delete(Statement):
    """`DELETE FROM name [WHERE p]`."""

    name: Name
    where: Expr | None


@syntax_node
class Insert(Statement):
    """`INSERT INTO name (columns) VALUES (…), (…)`."""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Expr, ...], ...]

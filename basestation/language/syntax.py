"""Syntax: what was written, node by node; not what it means.

Every node is a frozen value that knows its place. Places do not take part in comparison, so two texts that say the
same have equal trees: that is what the printer's round trip is tested with. A name says how it was written; whether
it exists is the binder's question.
"""

from basestation.language.node import Node, node, place
from gateway.source import Span


@node
class Name(Node):
    """An identifier and its place."""

    text: str


# --- expressions -----------------------------------------------------------------------------------------------------


@node
class Expr(Node):
    pass


@node
class Bad(Expr):
    """Where an expression could not be read. It was reported already; whatever looks at it stays silent."""


@node
class Number(Expr):
    """`12` is an int, `1.5` and `2e-3` are floats; never negative (the minus is an operator). 1 and 1.0 differ."""

    value: int | float


@node
class String(Expr):
    value: str


@node
class Null(Expr):
    pass


@node
class Column(Expr):
    """`a` or `x.a`."""

    qualifier: Name | None
    name: Name


@node
class Unary(Expr):
    """op is `-` or `NOT`."""

    op: str
    operand: Expr


@node
class Binary(Expr):
    """op is one of `+ - * / % = <> < <= > >= AND OR` (`!=` and `==` have become `<>` and `=`)."""

    op: str
    left: Expr
    right: Expr
    op_span: Span = place()

    def chain(self, ops):
        """`a + b - c` as a, and the two operators with what stands right of them. The left side may be very deep."""
        links, first = [], self
        while type(first) is Binary and first.op in ops:
            links.append(first)
            first = first.left
        return first, links[::-1]


@node
class IsNull(Expr):
    operand: Expr
    negated: bool


@node
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@node
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@node
class InQuery(Expr):
    """`e IN (SELECT …)`; one-off queries only."""

    operand: Expr
    query: "Query"
    negated: bool


@node
class Like(Expr):
    operand: Expr
    pattern: Expr
    negated: bool


@node
class Case(Expr):
    """`CASE WHEN condition THEN value … [ELSE otherwise] END`; branches are (condition, value)."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@node
class Cast(Expr):
    """`CAST(operand AS type)`; the type's name as written."""

    operand: Expr
    type: Name


@node
class Call(Expr):
    """`name(arguments)`, for functions and aggregates alike; `COUNT(*)` has star, `COUNT(DISTINCT e)` distinct.

    The name keeps its spelling; functions are found without regard to case.
    """

    name: Name
    arguments: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False

    @property
    def function(self):
        return self.name.text.upper()


@node
class Scalar(Expr):
    """`(SELECT …)` where a value is needed; one-off queries only."""

    query: "Query"


@node
class Exists(Expr):
    """`EXISTS (SELECT …)`; one-off queries only."""

    query: "Query"


# --- windows ---------------------------------------------------------------------------------------------------------


@node
class Duration(Node):
    """`10 MIN`; the unit in its short form (MS SEC MIN HOUR DAY ROW)."""

    count: int
    unit: str
    unit_span: Span = place()


@node
class Point(Node):
    """`NOW` is 0; `NOW-10` is 10 without a unit, `NOW-10 MIN` with one. The sign is always minus."""

    back: int
    unit: str | None = None


@node
class Window(Node):
    pass


@node
class Range(Window):
    """`[FROM begin TO end SLIDE slide]`; slide is None where it was left out."""

    begin: Point
    end: Point
    slide: Duration | None


@node
class NowOnly(Window):
    """`[NOW]`."""


@node
class Unbounded(Window):
    """`[UNBOUNDED SLIDE slide]`: a landmark window from the query's start."""

    slide: Duration | None


@node
class ScanEvery(Window):
    """`[SCAN every]`; `RESCAN` means the same."""

    every: Duration


# --- queries ---------------------------------------------------------------------------------------------------------


@node
class Item(Node):
    """An entry of the SELECT list."""

    expr: Expr
    alias: Name | None


@node
class Star(Node):
    """`*` or `x.*`."""

    qualifier: Name | None


@node
class ExtentSource(Node):
    """`road`, or `road.HISTORY`."""

    name: Name
    history: bool = False


@node
class QuerySource(Node):
    """A subquery in FROM: `( query )`, or a converter, which brings its own parentheses."""

    query: "Query"


@node
class Entry(Node):
    """An entry of FROM."""

    source: ExtentSource | QuerySource
    alias: Name | None
    window: Window | None


@node
class Join(Node):
    """`left kind JOIN right ON condition`; kind is INNER, LEFT, RIGHT, FULL or CROSS (which has no condition)."""

    kind: str
    left: "Entry | Join"
    right: Entry
    condition: Expr | None

    def chain(self):
        """`a JOIN b JOIN c` as a, and the two joins. The left side may be very deep."""
        links, first = [], self
        while type(first) is Join:
            links.append(first)
            first = first.left
        return first, links[::-1]


@node
class Order(Node):
    """An entry of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None  # None: as SQL's custom has it (nulls first ascending, last descending)


@node
class Query(Node):
    pass


@node
class Select(Query):
    items: tuple[Item | Star, ...]
    entries: tuple[Entry | Join, ...]
    where: Expr | None = None
    group_by: tuple[Column, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None
    distinct_span: Span = place()
    grouping_span: Span = place()  # of GROUP BY, or of HAVING where that stands alone


@node
class Convert(Query):
    """`RSTREAM(query)`, `ISTREAM(query)` or `DSTREAM(query)`; kind in capitals."""

    kind: str
    query: Query


@node
class Union(Query):
    """`part UNION ALL part …`; ORDER BY and LIMIT of a one-off union belong to the whole of it."""

    parts: tuple[Select | Convert, ...]
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None


# --- for-loops (SEMANTICS 10.8) --------------------------------------------------------------------------------------
# Loop expressions are made of Number, Duration, LoopName, and Binary and Unary over them.


@node
class LoopName(Expr):
    """`t` or `ST`."""

    text: str


@node
class WindowIs(Node):
    """`WindowIs(name [ROWS], left, right);`"""

    name: Name
    rows: bool
    left: Expr | Duration
    right: Expr | Duration


@node
class Loop(Node):
    """`FOR (t = first; condition; change) { windows }`.

    first is None where nothing is said (t starts at 0); change is the new value of t as an expression
    (`t++` has become `t + 1`, `t -= e` has become `t - e`).
    """

    first: Expr | Duration | None
    condition: Expr
    change: Expr | Duration
    windows: tuple[WindowIs | Bad, ...]


# --- statements ------------------------------------------------------------------------------------------------------


@node
class Since(Node):
    """`SINCE x`: a tick (int), an RFC 3339 time (str), or a duration before now."""

    start: int | str | Duration


@node
class Clauses(Node):
    """What a query asks of the network (SEMANTICS 11); None where it asks nothing."""

    acquire_every: Duration | None = None
    deliver_within: Duration | None = None
    lasting: Duration | None = None  # FOR n unit
    lifetime: Duration | None = None


@node
class Statement(Node):
    pass


@node
class Ask(Statement):
    """A query to be answered, with its loops, its start and its clauses."""

    query: Query
    loops: tuple[Loop, ...] = ()
    since: Since | None = None
    clauses: Clauses = Clauses()


@node
class Explain(Statement):
    ask: Ask
    analyze: bool = False


@node
class Revise(Statement):
    """`REVISE name SET a = e, … [WHERE p]`."""

    name: Name
    changes: tuple[tuple[Name, Expr], ...]
    where: Expr | None


@node
class Delete(Statement):
    """`DELETE FROM name [WHERE p]`."""

    name: Name
    where: Expr | None


@node
class Insert(Statement):
    """`INSERT INTO name (columns) VALUES (…), (…)`."""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Expr, ...], ...]

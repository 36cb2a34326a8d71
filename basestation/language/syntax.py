"""Syntax: what was written, node by node; not what it means.

Every node is a frozen value that knows its place. Places do not take part in comparison, so two texts that say the
same have equal trees: that is what the printer's round trip is tested with. A name says how it was written; whether
it exists is the binder's question.
"""

from dataclasses import dataclass, field, fields
from functools import cache, partial

from gateway.source import Span

NOWHERE = Span(0, 0)


# Nodes compare by Node's own methods, not by those that dataclass would make.
_node = partial(dataclass, frozen=True, slots=True, eq=False)


def _place():
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@cache
def _said(node_type):
    """The names of the fields that were said, as opposed to where."""
    return tuple(f.name for f in fields(node_type) if f.compare)


@_node
class Node:
    """Compared without recursion: a chain of ten thousand ANDs is a tree as deep as that."""

    span: Span = _place()

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        pending = [(self, other)]
        while pending:
            mine, theirs = pending.pop()
            if mine is theirs:
                continue
            if type(mine) is not type(theirs):
                return False
            if isinstance(mine, Node):
                pending += [(getattr(mine, name), getattr(theirs, name)) for name in _said(type(mine))]
            elif type(mine) is tuple:
                if len(mine) != len(theirs):
                    return False
                pending += zip(mine, theirs, strict=True)
            elif mine != theirs:
                return False
        return True

    def __hash__(self):
        pending, leaves = [self], []
        while pending:
            node = pending.pop()
            if isinstance(node, Node):
                leaves.append(type(node))
                pending += [getattr(node, name) for name in _said(type(node))]
            elif type(node) is tuple:
                leaves.append(len(node))
                pending += node
            else:
                leaves.append(node)
        return hash(tuple(leaves))


@_node
class Name(Node):
    """An identifier and its place."""

    text: str


# --- expressions -----------------------------------------------------------------------------------------------------


@_node
class Expr(Node):
    pass


@_node
class Bad(Expr):
    """Where an expression could not be read. It was reported already; whatever looks at it stays silent."""


@_node
class Number(Expr):
    """`12` is an int, `1.5` and `2e-3` are floats; never negative (the minus is an operator). 1 and 1.0 differ."""

    value: int | float


@_node
class String(Expr):
    value: str


@_node
class Null(Expr):
    pass


@_node
class Column(Expr):
    """`a` or `x.a`."""

    qualifier: Name | None
    name: Name


@_node
class Unary(Expr):
    """op is `-` or `NOT`."""

    op: str
    operand: Expr


@_node
class Binary(Expr):
    """op is one of `+ - * / % = <> < <= > >= AND OR` (`!=` and `==` have become `<>` and `=`)."""

    op: str
    left: Expr
    right: Expr
    op_span: Span = _place()


@_node
class IsNull(Expr):
    operand: Expr
    negated: bool


@_node
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@_node
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@_node
class InQuery(Expr):
    """`e IN (SELECT …)`; one-off queries only."""

    operand: Expr
    query: "Query"
    negated: bool


@_node
class Like(Expr):
    operand: Expr
    pattern: Expr
    negated: bool


@_node
class Case(Expr):
    """`CASE WHEN condition THEN value … [ELSE otherwise] END`; branches are (condition, value)."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@_node
class Cast(Expr):
    """`CAST(operand AS type)`; the type's name as written."""

    operand: Expr
    type: Name


@_node
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


@_node
class Scalar(Expr):
    """`(SELECT …)` where a value is needed; one-off queries only."""

    query: "Query"


@_node
class Exists(Expr):
    """`EXISTS (SELECT …)`; one-off queries only."""

    query: "Query"


# --- windows ---------------------------------------------------------------------------------------------------------


@_node
class Duration(Node):
    """`10 MIN`; the unit in its short form (MS SEC MIN HOUR DAY ROW)."""

    count: int
    unit: str
    unit_span: Span = _place()


@_node
class Point(Node):
    """`NOW` is 0; `NOW-10` is 10 without a unit, `NOW-10 MIN` with one. The sign is always minus."""

    back: int
    unit: str | None = None


@_node
class Window(Node):
    pass


@_node
class Range(Window):
    """`[FROM begin TO end SLIDE slide]`; slide is None where it was left out."""

    begin: Point
    end: Point
    slide: Duration | None


@_node
class NowOnly(Window):
    """`[NOW]`."""


@_node
class Unbounded(Window):
    """`[UNBOUNDED SLIDE slide]`: a landmark window from the query's start."""

    slide: Duration | None


@_node
class ScanEvery(Window):
    """`[SCAN every]`; `RESCAN` means the same."""

    every: Duration


# --- queries ---------------------------------------------------------------------------------------------------------


@_node
class Item(Node):
    """An entry of the SELECT list."""

    expr: Expr
    alias: Name | None


@_node
class Star(Node):
    """`*` or `x.*`."""

    qualifier: Name | None


@_node
class ExtentSource(Node):
    """`road`, or `road.HISTORY`."""

    name: Name
    history: bool = False


@_node
class QuerySource(Node):
    """A subquery in FROM: `( query )`, or a converter, which brings its own parentheses."""

    query: "Query"


@_node
class Entry(Node):
    """An entry of FROM."""

    source: ExtentSource | QuerySource
    alias: Name | None
    window: Window | None


@_node
class Join(Node):
    """`left kind JOIN right ON condition`; kind is INNER, LEFT, RIGHT, FULL or CROSS (which has no condition)."""

    kind: str
    left: "Entry | Join"
    right: Entry
    condition: Expr | None


@_node
class Order(Node):
    """An entry of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None  # None: as SQL's custom has it (nulls first ascending, last descending)


@_node
class Query(Node):
    pass


@_node
class Select(Query):
    items: tuple[Item | Star, ...]
    entries: tuple[Entry | Join, ...]
    where: Expr | None = None
    group_by: tuple[Column, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None


@_node
class Convert(Query):
    """`RSTREAM(query)`, `ISTREAM(query)` or `DSTREAM(query)`; kind in capitals."""

    kind: str
    query: Query


@_node
class Union(Query):
    """`part UNION ALL part …`; ORDER BY and LIMIT of a one-off union belong to the whole of it."""

    parts: tuple[Select | Convert, ...]
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None


# --- for-loops (SEMANTICS 10.8) --------------------------------------------------------------------------------------
# Loop expressions are made of Number, Duration, LoopName, and Binary and Unary over them.


@_node
class LoopName(Expr):
    """`t` or `ST`."""

    text: str


@_node
class WindowIs(Node):
    """`WindowIs(name [ROWS], left, right);`"""

    name: Name
    rows: bool
    left: Expr | Duration
    right: Expr | Duration


@_node
class Loop(Node):
    """`FOR (t = first; condition; change) { windows }`.

    first is None where nothing is said (t starts at 0); change is the new value of t as an expression
    (`t++` has become `t + 1`, `t -= e` has become `t - e`).
    """

    first: Expr | Duration | None
    condition: Expr
    change: Expr | Duration
    windows: tuple[WindowIs, ...]


# --- statements ------------------------------------------------------------------------------------------------------


@_node
class Since(Node):
    """`SINCE x`: a tick (int), an RFC 3339 time (str), or a duration before now."""

    start: int | str | Duration


@_node
class Clauses(Node):
    """What a query asks of the network (SEMANTICS 11); None where it asks nothing."""

    acquire_every: Duration | None = None
    deliver_within: Duration | None = None
    lasting: Duration | None = None  # FOR n unit
    lifetime: Duration | None = None


@_node
class Statement(Node):
    pass


@_node
class Ask(Statement):
    """A query to be answered, with its loops, its start and its clauses."""

    query: Query
    loops: tuple[Loop, ...] = ()
    since: Since | None = None
    clauses: Clauses = Clauses()


@_node
class Explain(Statement):
    ask: Ask
    analyze: bool = False


@_node
class Revise(Statement):
    """`REVISE name SET a = e, … [WHERE p]`."""

    name: Name
    changes: tuple[tuple[Name, Expr], ...]
    where: Expr | None


@_node
class Delete(Statement):
    """`DELETE FROM name [WHERE p]`."""

    name: Name
    where: Expr | None


@_node
class Insert(Statement):
    """`INSERT INTO name (columns) VALUES (…), (…)`."""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Expr, ...], ...]


# --- schemas (SEMANTICS 13) ------------------------------------------------------------------------------------------


@_node
class AttributeDecl(Node):
    """`name:type {unit '…', sensor '…', scale k, range a .. b}`; the range's ends are Number or Unary minus."""

    name: Name
    type: Name
    unit: String | None = None
    sensor: String | None = None
    scale: Number | None = None
    range: tuple[Expr, Expr] | None = None


@_node
class LateClause(Node):
    policy: str  # revise, append, drop
    horizon: Duration | None = None


@_node
class Sites(Node):
    """`at sites 1, 4 .. 6` as ranges (first, last); `all` has no ranges."""

    ranges: tuple[tuple[int, int], ...]
    all: bool = False


@_node
class ExtentDecl(Node):
    """`name: kind ( attributes ) clauses`; a clause that was not written is None."""

    name: Name
    kind: str
    attributes: tuple[AttributeDecl, ...]
    every: Duration | None = None
    sites: Sites | None = None
    wait: Duration | None = None
    late: LateClause | None = None
    ahead: Duration | None = None
    source: String | None = None

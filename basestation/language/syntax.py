"""Syntax: what was written, node by node; not what it means.

Every node is a frozen value that knows its place. Places do not take part in comparison, so two texts that say the
same have equal trees: that is what the printer's round trip is tested with. A name says how it was written; whether
it exists is the binder's question.
"""

from dataclasses import dataclass, field

from basestation.language.source import Span

NOWHERE = Span(0, 0)


def _place():
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Node:
    span: Span = _place()


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An identifier and its place."""

    text: str


# --- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expr(Node):
    pass


@dataclass(frozen=True, slots=True)
class Bad(Expr):
    """Where an expression could not be read. It was reported already; whatever looks at it stays silent."""


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """`12` is an int, `1.5` and `2e-3` are floats; never negative (the minus is an operator)."""

    value: int | float

    def __eq__(self, other):  # 1 and 1.0 are different texts
        return type(other) is Number and type(other.value) is type(self.value) and other.value == self.value

    def __hash__(self):
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class String(Expr):
    value: str


@dataclass(frozen=True, slots=True)
class Null(Expr):
    pass


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """`a` or `x.a`."""

    qualifier: Name | None
    name: Name


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """op is `-` or `NOT`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """op is one of `+ - * / % = <> < <= > >= AND OR` (`!=` and `==` have become `<>` and `=`)."""

    op: str
    left: Expr
    right: Expr
    op_span: Span = _place()

    # A chain of ten thousand ANDs is a tree that leans to the left as deep as that: it is compared without recursion.

    def __eq__(self, other):
        if type(other) is not Binary:
            return NotImplemented
        mine, theirs = self, other
        while type(mine) is Binary and type(theirs) is Binary:
            if mine is theirs:
                return True
            if mine.op != theirs.op or mine.right != theirs.right:
                return False
            mine, theirs = mine.left, theirs.left
        return mine == theirs

    def __hash__(self):
        node, rights = self, []
        while type(node) is Binary:
            rights.append((node.op, node.right))
            node = node.left
        return hash((node, *rights))


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class InQuery(Expr):
    """`e IN (SELECT …)`; one-off queries only."""

    operand: Expr
    query: "Query"
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Expr):
    operand: Expr
    pattern: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """`CASE WHEN condition THEN value … [ELSE otherwise] END`; branches are (condition, value)."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`CAST(operand AS type)`; the type's name as written."""

    operand: Expr
    type: Name


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Scalar(Expr):
    """`(SELECT …)` where a value is needed; one-off queries only."""

    query: "Query"


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    """`EXISTS (SELECT …)`; one-off queries only."""

    query: "Query"


# --- windows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """`10 MIN`; the unit in its short form (MS SEC MIN HOUR DAY ROW)."""

    count: int
    unit: str
    unit_span: Span = _place()


@dataclass(frozen=True, slots=True)
class Point(Node):
    """`NOW` is 0; `NOW-10` is 10 without a unit, `NOW-10 MIN` with one. The sign is always minus."""

    back: int
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    pass


@dataclass(frozen=True, slots=True)
class Range(Window):
    """`[FROM begin TO end SLIDE slide]`; slide is None where it was left out."""

    begin: Point
    end: Point
    slide: Duration | None


@dataclass(frozen=True, slots=True)
class NowOnly(Window):
    """`[NOW]`."""


@dataclass(frozen=True, slots=True)
class Unbounded(Window):
    """`[UNBOUNDED SLIDE slide]`: a landmark window from the query's start."""

    slide: Duration | None


@dataclass(frozen=True, slots=True)
class ScanEvery(Window):
    """`[SCAN every]`; `RESCAN` means the same."""

    every: Duration


# --- queries ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item(Node):
    """An entry of the SELECT list."""

    expr: Expr
    alias: Name | None


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*` or `x.*`."""

    qualifier: Name | None


@dataclass(frozen=True, slots=True)
class ExtentSource(Node):
    """`road`, or `road.HISTORY`."""

    name: Name
    history: bool = False


@dataclass(frozen=True, slots=True)
class QuerySource(Node):
    """A subquery in FROM: `( query )`, or a converter, which brings its own parentheses."""

    query: "Query"


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """An entry of FROM."""

    source: ExtentSource | QuerySource
    alias: Name | None
    window: Window | None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """`left kind JOIN right ON condition`; kind is INNER, LEFT, RIGHT, FULL or CROSS (which has no condition)."""

    kind: str
    left: "Entry | Join"
    right: Entry
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class Order(Node):
    """An entry of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None  # None: as SQL's custom has it (nulls first ascending, last descending)


@dataclass(frozen=True, slots=True)
class Query(Node):
    pass


@dataclass(frozen=True, slots=True)
class Select(Query):
    items: tuple[Item | Star, ...]
    entries: tuple[Entry | Join, ...]
    where: Expr | None = None
    group_by: tuple[Column, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None


@dataclass(frozen=True, slots=True)
class Convert(Query):
    """`RSTREAM(query)`, `ISTREAM(query)` or `DSTREAM(query)`; kind in capitals."""

    kind: str
    query: Query


@dataclass(frozen=True, slots=True)
class Union(Query):
    """`part UNION ALL part …`; ORDER BY and LIMIT of a one-off union belong to the whole of it."""

    parts: tuple[Select | Convert, ...]
    order_by: tuple[Order, ...] = ()
    limit: Number | None = None


# --- for-loops (SEMANTICS 10.8) --------------------------------------------------------------------------------------
# Loop expressions are made of Number, Duration, LoopName, and Binary and Unary over them.


@dataclass(frozen=True, slots=True)
class LoopName(Expr):
    """`t` or `ST`."""

    text: str


@dataclass(frozen=True, slots=True)
class WindowIs(Node):
    """`WindowIs(name [ROWS], left, right);`"""

    name: Name
    rows: bool
    left: Expr | Duration
    right: Expr | Duration


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Since(Node):
    """`SINCE x`: a tick (int), an RFC 3339 time (str), or a duration before now."""

    start: int | str | Duration


@dataclass(frozen=True, slots=True)
class Clauses(Node):
    """What a query asks of the network (SEMANTICS 11); None where it asks nothing."""

    acquire_every: Duration | None = None
    deliver_within: Duration | None = None
    lasting: Duration | None = None  # FOR n unit
    lifetime: Duration | None = None


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Ask(Statement):
    """A query to be answered, with its loops, its start and its clauses."""

    query: Query
    loops: tuple[Loop, ...] = ()
    since: Since | None = None
    clauses: Clauses = Clauses()


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    ask: Ask
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class Revise(Statement):
    """`REVISE name SET a = e, … [WHERE p]`."""

    name: Name
    changes: tuple[tuple[Name, Expr], ...]
    where: Expr | None


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """`DELETE FROM name [WHERE p]`."""

    name: Name
    where: Expr | None


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """`INSERT INTO name (columns) VALUES (…), (…)`."""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Expr, ...], ...]


# --- schemas (SEMANTICS 13) ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttributeDecl(Node):
    """`name:type {unit '…', sensor '…', scale k, range a .. b}`; the range's ends are Number or Unary minus."""

    name: Name
    type: Name
    unit: String | None = None
    sensor: String | None = None
    scale: Number | None = None
    range: tuple[Expr, Expr] | None = None


@dataclass(frozen=True, slots=True)
class LateClause(Node):
    policy: str  # revise, append, drop
    horizon: Duration | None = None


@dataclass(frozen=True, slots=True)
class Sites(Node):
    """`at sites 1, 4 .. 6` as ranges (first, last); `all` has no ranges."""

    ranges: tuple[tuple[int, int], ...]
    all: bool = False


@dataclass(frozen=True, slots=True)
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

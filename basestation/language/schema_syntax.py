"""Syntax of schemas: the declarations of extents as they were written (semantics 13)."""

from basestation.language.node import SyntaxNode, syntax_node
from basestation.language.syntax import Duration, Expr, Name, Number, String


@syntax_node
class AttributeDecl(SyntaxNode):
    """`name:type {unit '…', sensor '…', scale k, range a .. b}`; the range's ends are Number or Unary minus."""

    name: Name
    type: Name
    unit: String | None = None
    sensor: String | None = None
    scale: Number | None = None
    range: tuple[Expr, Expr] | None = None


@syntax_node
class LateClause(SyntaxNode):
    policy: str  # revise, append, drop
    horizon: Duration | None = None


@syntax_node
class SitesClause(SyntaxNode):
    """`at sites 1, 4 .. 6` as ranges (first, last); `all` has no ranges."""

    ranges: tuple[tuple[int, int], ...]
    all: bool = False


@syntax_node
class ExtentDecl(SyntaxNode):
    """`name: kind ( attributes ) clauses`; a clause that was not written is None."""

    name: Name
    kind: str
    attributes: tuple[AttributeDecl, ...]
    every: Duration | None = None
    sites: SitesClause | None = None
    wait: Duration | None = None
    late: LateClause | None = None
    ahead: Duration | None = None
    source: String | None = None

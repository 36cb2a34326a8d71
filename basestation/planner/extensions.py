"""The constructs beyond the SNEEql paper that a statement uses, by the section that defines each."""

from collections.abc import Iterator
from dataclasses import fields

from basestation.language import syntax
from basestation.language.node import SyntaxNode
from basestation.planner.functions import AGGREGATES

_PAPER_AGGREGATES = ("MIN", "MAX", "AVG", "SUM", "COUNT")
_PAPER_UNITS = ("SEC", "MIN", "HOUR", "ROW")


def parts_of(written: SyntaxNode) -> Iterator[SyntaxNode]:
    """The syntax nodes directly below a syntax node."""
    for field in fields(written):
        yield from _nodes(getattr(written, field.name))


def _nodes(value: object) -> Iterator[SyntaxNode]:
    if isinstance(value, SyntaxNode):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _nodes(inner)


def walk(written: SyntaxNode) -> Iterator[SyntaxNode]:
    """The node and all nodes below it, without recursion: a chain of operators may be long."""
    pending = [written]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(list(parts_of(found))))


def list_extensions(statement: SyntaxNode) -> tuple[tuple[str, str], ...]:
    """Each extension that the statement uses, once: (section, construct), in order of sections."""
    found: set[tuple[str, str]] = set()
    for node in walk(statement):
        found.update(_extensions(node))
    return tuple(sorted(found, key=lambda a: ([int(n) for n in a[0].split(".")], a[1])))


def _extensions(node: SyntaxNode) -> Iterator[tuple[str, str]]:
    match node:
        case syntax.Explain():
            yield "10.1", "EXPLAIN"
        case syntax.Duration(unit=unit) if unit not in _PAPER_UNITS:
            yield "10.2", f"the unit {unit}"
        case syntax.WindowBound(unit=str() as unit):
            yield "10.2", "offsets with a unit"
            if unit not in _PAPER_UNITS:
                yield "10.2", f"the unit {unit}"
        case syntax.NowWindow():
            yield "10.3", "[NOW]"
        case syntax.UnboundedWindow():
            yield "10.3", "[UNBOUNDED …]"
        case syntax.RangeWindow(slide=None):
            yield "10.3", "a window without SLIDE"
        case syntax.Star():
            yield "10.4", "*"
        case syntax.Binary(op="%"):
            yield "10.4", "%"
        case syntax.Between():
            yield "10.4", "BETWEEN"
        case syntax.InList():
            yield "10.4", "IN"
        case syntax.Like():
            yield "10.4", "LIKE"
        case syntax.IsNull():
            yield "10.4", "IS NULL"
        case syntax.Null():
            yield "10.4", "NULL"
        case syntax.Case():
            yield "10.4", "CASE"
        case syntax.Cast():
            yield "10.4", "CAST"
        case syntax.Call(distinct=True):
            yield "10.5", "COUNT(DISTINCT …)"
        case syntax.Call(function=name) if name not in _PAPER_AGGREGATES:
            yield ("10.5" if name in AGGREGATES else "10.4"), name
        case syntax.Select(order_by=order, limit=limit, distinct=distinct) if order or limit or distinct:
            for used, word in ((distinct, "DISTINCT"), (order, "ORDER BY"), (limit, "LIMIT")):
                if used:
                    yield "10.6", word
        case syntax.Join(kind=kind):
            yield "10.6", f"{kind} JOIN"
        case syntax.ScalarSubquery() | syntax.Exists() | syntax.InQuery():
            yield "10.6", "a subquery outside FROM"
        case syntax.Union(order_by=order, limit=limit):
            yield "10.6", "UNION ALL"
            if order:
                yield "10.6", "ORDER BY"
            if limit:
                yield "10.6", "LIMIT"
        case syntax.ExtentSource(history=True):
            yield "10.7", "HISTORY"
        case syntax.SinceClause():
            yield "10.7", "SINCE"
        case syntax.Loop():
            yield "10.8", "a for-loop"
        case syntax.StatementClauses(acquire_every=every, deliver_within=within, run_for=run_for, lifetime=lifetime):
            for clause, word in (
                (every, "ACQUIRE EVERY"),
                (within, "DELIVER WITHIN"),
                (run_for, "FOR"),
                (lifetime, "LIFETIME"),
            ):
                if clause is not None:
                    yield "11", word
        case syntax.Revise() | syntax.Delete() | syntax.Insert():
            yield "12.2", type(node).__name__.upper()

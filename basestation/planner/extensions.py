"""Additions: which constructs beyond the paper a statement uses, by their sections of SEMANTICS."""

from dataclasses import fields

from basestation.language import syntax
from basestation.language.node import SyntaxNode
from basestation.planner.functions import AGGREGATES

_PAPER_AGGREGATES = ("MIN", "MAX", "AVG", "SUM", "COUNT")
_PAPER_UNITS = ("SEC", "MIN", "HOUR", "ROW")


def parts_of(written):
    """The syntax nodes directly below a syntax node."""
    for field in fields(written):
        yield from _nodes(getattr(written, field.name))


def _nodes(value):
    if isinstance(value, SyntaxNode):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _nodes(inner)


def walk(written):
    """The node and all below, without recursion: written chains may be long."""
    pending = [written]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(list(parts_of(found))))


def list_extensions(statement):
    """Each addition of part II that the statement uses, once: (section, what), in order of sections."""
    found = set()
    for node in walk(statement):
        found.update(_additions(node))
    return tuple(sorted(found, key=lambda a: ([int(n) for n in a[0].split(".")], a[1])))


def _additions(node):
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
        case syntax.StatementClauses(acquire_every=every, deliver_within=within, run_for=lasting, lifetime=lifetime):
            for used, word in (
                (every, "ACQUIRE EVERY"),
                (within, "DELIVER WITHIN"),
                (lasting, "FOR"),
                (lifetime, "LIFETIME"),
            ):
                if used is not None:
                    yield "11", word
        case syntax.Revise() | syntax.Delete() | syntax.Insert():
            yield "12.2", type(node).__name__.upper()

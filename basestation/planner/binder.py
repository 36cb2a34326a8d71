"""Binds statements: resolves every name, types every expression and checks the rules of semantics section 2.

This module binds statements, their clauses and corrections; `query_binder` binds queries.
"""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import replace

from acquisition.extent import Catalog, Extent, ExtentKind, LatePolicy
from acquisition.schema import Type
from acquisition.ticks import tick_of_rfc3339
from basestation.algebra.expression import Column, Expression
from basestation.language import syntax
from basestation.language.node import SyntaxNode
from basestation.language.parser import parse
from basestation.planner.catalog import whole_ticks
from basestation.planner.diagnostic_report import Report
from basestation.planner.expression_binder import UNKNOWN, ExpressionBinder
from basestation.planner.extensions import list_extensions
from basestation.planner.loop_binder import LoopBinder
from basestation.planner.plan import Correction, Plan, QueryOptions
from basestation.planner.query_binder import QueryBinder
from basestation.planner.scope import Scope, ScopeEntry, extent_columns, tag_columns
from basestation.planner.source_binder import Bound, Subquery
from gateway.source import Source, did_you_mean

_ONLY_QUERIES = "only the SELECT list and HAVING of a window query aggregate"


def bind_text(text: str, catalog: Catalog, name: str | None = None) -> list[Plan | Correction]:
    """The plan or correction of each statement of a text. Raises DiagnosticError with all errors of the text."""
    source = Source(text, name)
    parsed = parse(source)
    report = Report(source, parsed.diagnostics)
    bound = [bind(statement, catalog, report) for statement in parsed.statements]
    report.raise_errors()
    return [each for each in bound if each is not None]


def bind(statement: syntax.Statement, catalog: Catalog, report: Report) -> Plan | Correction | None:
    """The plan or correction of one statement; None after an error, which is in the report."""
    match statement:
        case syntax.Explain(ask=ask):
            return _bind_query(ask, statement, catalog, report)
        case syntax.QueryStatement():
            return _bind_query(statement, statement, catalog, report)
        case syntax.Revise() | syntax.Delete() | syntax.Insert():
            return _correction(statement, catalog, report)
    raise TypeError(f"no statement: {statement!r}")


def rebind(plan: Plan, *, acquire_every: syntax.Duration | None, lifetime: syntax.Duration | None) -> Plan:
    """Bind the statement of a valid query again with other clauses, from its syntax tree."""
    statement = plan.statement
    ask = statement.ask if isinstance(statement, syntax.Explain) else statement
    if not isinstance(ask, syntax.QueryStatement):
        raise TypeError(f"no query: {statement!r}")
    clauses = replace(ask.clauses, acquire_every=acquire_every, lifetime=lifetime)
    report = Report(Source(""))
    bound = bind(replace(ask, clauses=clauses), plan.catalog, report)
    report.raise_errors()
    if not isinstance(bound, Plan):
        raise TypeError(f"no query: {statement!r}")
    return bound


# --- queries ---------------------------------------------------------------------------------------------------------


def _bind_query(
    ask: syntax.QueryStatement, statement: syntax.Statement, catalog: Catalog, report: Report
) -> Plan | None:
    options = _bind_options(ask, catalog.tick_ms, report)
    ids = iter(range(1, 2**31))
    loops = LoopBinder(ask.loops, report, ids.__next__, catalog.tick_ms) if ask.loops else None
    binder = QueryBinder(catalog, report, ids.__next__, options, loops)
    bound = binder.outermost(ask.query)
    if bound is None:
        return None
    _check_options(ask, options, bound, binder.streams, report)
    return Plan(statement, catalog, bound.node, bound.is_one_off, options, list_extensions(statement))


def _bind_options(ask: syntax.QueryStatement, tick_ms: int, report: Report) -> QueryOptions:
    def ticks(duration: syntax.Duration | None) -> int | None:
        return None if duration is None else whole_ticks(duration, report, tick_ms)

    since = since_ago = None
    if ask.since is not None:
        match ask.since.start:
            case syntax.Duration() as duration:
                since_ago = ticks(duration)
            case str() as text:
                since = _instant(text, ask.since, tick_ms, report)
            case int() as tick:
                since = tick
    if ask.since is not None and since is not None and since < 0:
        report.error("SN434", f"tick {since} is before all ticks", ask.since, help="the first possible tick is 0")
        since = 0
    clauses = ask.clauses
    return QueryOptions(
        since,
        since_ago,
        ticks(clauses.acquire_every),
        ticks(clauses.deliver_within),
        ticks(clauses.run_for),
        ticks(clauses.lifetime),
    )


def _instant(text: str, place: SyntaxNode, tick_ms: int, report: Report) -> int | None:
    try:
        return tick_of_rfc3339(text, tick_ms)
    except ValueError:
        report.error(
            "SN432", f"'{text}' is no RFC 3339 time at a whole tick", place, help="for example '2026-11-18T08:00:00Z'"
        )
        return None


def _check_options(
    ask: syntax.QueryStatement, options: QueryOptions, bound: Bound, streams: Sequence[Extent], report: Report
) -> None:
    """Check the clauses against the streams that the query reads (semantics 11)."""
    clauses = ask.clauses
    if bound.is_one_off:
        for clause in (ask.since, clauses.acquire_every, clauses.deliver_within, clauses.run_for, clauses.lifetime):
            if clause is not None:
                report.error(
                    "SN418",
                    "a one-off query is answered once, at its start; this clause is for continuous ones",
                    clause,
                )
        return
    sensed = [extent for extent in streams if extent.kind is ExtentKind.SENSED]
    if not sensed:
        for clause in (clauses.acquire_every, clauses.deliver_within, clauses.lifetime):
            if clause is not None:
                report.error("SN418", "this clause is about sampling, and the query reads no sensed extent", clause)
    every, within = options.acquire_every, options.deliver_within
    for extent in sensed:
        if every is None or clauses.acquire_every is None or extent.interval is None:
            continue
        if every % extent.interval and not report.has_error_in(clauses.acquire_every.span):
            report.error(
                "SN419",
                f"`{extent.name}` is sampled every {extent.interval} ticks; {every} is no multiple of that",
                clauses.acquire_every,
                help=f"the next one is {-(-every // extent.interval) * extent.interval} ticks",
            )
    for extent in streams if sensed else ():
        if within is None or clauses.deliver_within is None:
            continue
        early = extent.late is not LatePolicy.REVISE and within < extent.wait
        if early and not report.has_error_in(clauses.deliver_within.span):
            report.error(
                "SN420",
                f"windows over `{extent.name}` wait {extent.wait} ticks and are never corrected (late {extent.late})",
                clauses.deliver_within,
                help=f"at least {extent.wait} ticks are possible",
            )


# --- corrections (12.2) ----------------------------------------------------------------------------------------------


def _correction(
    statement: syntax.Revise | syntax.Delete | syntax.Insert, catalog: Catalog, report: Report
) -> Correction | None:
    extent = catalog.find(statement.name.text)
    if extent is None:
        names = [e.name for e in catalog]
        report.error(
            "SN201",
            f"there is no extent `{statement.name.text}`",
            statement.name,
            expected=names if len(names) <= 8 else (),
            help=did_you_mean(statement.name.text, names),
        )
        return None
    if extent.kind is ExtentKind.STORED:
        report.error(
            "SN429", f"`{extent.name}` is a table: it changes by a new version, not by corrections", statement.name
        )
        return None
    ids = iter(range(1, 2**31))
    columns, tags = extent_columns(extent, extent.name, ids.__next__), tag_columns(extent.name, ids.__next__)
    scope = Scope((ScopeEntry(extent.name, columns, tags),))
    typing = ExpressionBinder(scope, report, lambda written: _no_subquery(written, report), aggregates=_ONLY_QUERIES)
    how = type(statement).__name__.lower()
    changes: tuple[tuple[Column, Expression], ...] = ()
    match statement:
        case syntax.Insert():
            return _insert(statement, extent, columns, tags, typing, ids, report)
        case syntax.Revise():
            bound = [_change(name, value, extent, columns, typing, report) for name, value in statement.changes]
            names = [name.text for name, _ in statement.changes]
            for i, (name, _) in enumerate(statement.changes):
                if name.text in names[:i]:
                    report.error("SN110", f"`{name.text}` is set twice", name)
            changes = tuple(c for c in bound if c is not None)
    predicate = None if statement.where is None else typing.predicate(statement.where)
    return Correction(statement, extent, how, columns, tags, predicate, changes)


def _no_subquery(written: Subquery, report: Report) -> None:
    report.error("SN409", "a subquery outside FROM stands in one-off queries only", written)


def _identifying(extent: Extent) -> set[str]:
    """The attributes that identify a tuple, which REVISE cannot set: tick, index, and of a reading site and time."""
    known = {"tick", "index"}
    if extent.site_attribute:
        known.add("site")
    if extent.time_attribute:
        known.add("time")
    return known


def _change(
    name: syntax.Name,
    value: syntax.Expr,
    extent: Extent,
    columns: Sequence[Column],
    typing: ExpressionBinder,
    report: Report,
) -> tuple[Column, Expression] | None:
    bound = typing.value(value)
    if name.text in _identifying(extent) or (extent.kind is ExtentKind.SENSED and name.text == "_site"):
        report.error(
            "SN430",
            f"`{name.text}` says which tuple it is; REVISE cannot set it",
            name,
            help="DELETE the tuple and INSERT another",
        )
        return None
    column = next((c for c in columns if c.name == name.text), None)
    if column is None:
        names = [c.name for c in columns if c.name]
        report.error(
            "SN202",
            f"`{extent.name}` has no attribute `{name.text}`",
            name,
            expected=names if len(names) <= 8 else (),
            help=did_you_mean(name.text, names),
        )
        return None
    return (column, bound) if _fits(bound, column, value, report) else None


def _fits(bound: Expression, column: Column, place: SyntaxNode, report: Report) -> bool:
    """Whether a column can take a value: integers become floats, no other type changes."""
    if bound is UNKNOWN:
        return False
    fits = bound.type is None or bound.type is column.type or (bound.type.whole and column.type is not Type.STRING)
    if not fits:
        report.error(
            "SN310",
            f"`{column.name}` is of type {column.type}, this is of type {bound.type}",
            place,
            help=f"CAST(… AS {column.type})",
        )
    return fits


def _count_of(things: Sized, what: str) -> str:
    return f"{len(things)} {what}{'s' * (len(things) != 1)}"


def _insert(
    statement: syntax.Insert,
    extent: Extent,
    attributes: Sequence[Column],
    tags: tuple[Column, Column],
    typing: ExpressionBinder,
    ids: Iterator[int],
    report: Report,
) -> Correction:
    tick = tags[0]
    site = Column(ids.__next__(), Type.INTEGER, "_site", extent.name)
    settable = {c.name: c for c in attributes if c.name} | {"tick": tick}
    if extent.time_attribute:
        del settable["time"]  # it is the same as the tick
    if extent.kind is ExtentKind.SENSED and not extent.site_attribute:
        settable["_site"] = site
    columns: list[Column | None] = []
    for name in statement.columns:
        if name.text not in settable:
            report.error(
                "SN202",
                f"INSERT into `{extent.name}` takes no `{name.text}`",
                name,
                expected=tuple(settable) if len(settable) <= 8 else (),
                help=did_you_mean(name.text, settable),
            )
        elif settable[name.text] in columns:
            report.error("SN110", f"`{name.text}` stands twice", name)
        columns.append(settable.get(name.text))
    if extent.kind is ExtentKind.SENSED and None not in columns:
        needed = [tick, next((c for c in attributes if extent.site_attribute and c.name == "site"), site)]
        for column in needed:
            if column not in columns and column.name:
                report.error(
                    "SN431",
                    f"a reading of `{extent.name}` needs its {column.name.lstrip('_')}",
                    statement.name,
                    help=f"add the column `{column.name}`",
                )
    bare = ExpressionBinder(Scope(()), report, typing.subquery, aggregates=_ONLY_QUERIES)
    rows: list[tuple[Expression, ...]] = []
    for row in statement.rows:
        if len(row) != len(columns):
            place: SyntaxNode = row[min(len(row), len(columns)) - 1] if row else statement
            report.error("SN431", f"{_count_of(columns, 'column')}, but {_count_of(row, 'value')}", place)
            continue
        values = [bare.value(value) for value in row]
        for value, taken, at in zip(values, columns, row, strict=True):
            if taken is not None:
                _fits(value, taken, at, report)
        rows.append(tuple(values))
    return Correction(statement, extent, "insert", tuple(c for c in columns if c), tags, rows=tuple(rows))

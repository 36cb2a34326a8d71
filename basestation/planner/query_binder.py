"""Binds SELECT, converters and unions to trees of the algebra (section 5 of the paper, semantics 2.9).

The order is always: product of all of FROM, WHERE, grouping and aggregation, HAVING, SELECT list, converter.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from acquisition.extent import Catalog, Extent
from basestation.algebra.converters import DStream, IStream, RStream
from basestation.algebra.expression import Column
from basestation.algebra.node import PlanNode, StreamNode, WindowNode
from basestation.algebra.one_off import TableUnion
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.language import syntax
from basestation.language.node import SyntaxNode
from basestation.planner.diagnostic_report import Report
from basestation.planner.expression_binder import UNKNOWN, ExpressionBinder
from basestation.planner.from_binder import BoundFrom, FromBinder
from basestation.planner.loop_binder import LoopBinder
from basestation.planner.plan import QueryOptions
from basestation.planner.scope import tag_columns
from basestation.planner.select_binder import (
    bind_one_off_select,
    bind_order_and_limit,
    bind_select_list,
    bind_window_select,
    find_aliases,
)
from basestation.planner.source_binder import Bound, Subquery
from gateway.source import Span

_CONVERTERS = {"RSTREAM": RStream, "ISTREAM": IStream, "DSTREAM": DStream}


class QueryBinder:
    """Binds the queries of one statement. `streams` collects the sensed and pushed extents that they read, nested ones too."""

    def __init__(
        self,
        catalog: Catalog,
        report: Report,
        new_id: Callable[[], int],
        options: QueryOptions,
        loops: LoopBinder | None,
    ) -> None:
        self.catalog, self.report, self.new_id, self.options = catalog, report, new_id, options
        self.loops = loops
        self.streams: list[Extent] = []

    def outermost(self, written: syntax.QueryExpression) -> Bound | None:
        """The statement's own query; its loops belong to the one SELECT below its converters."""
        if self.loops is not None and isinstance(_below_converters(written), syntax.Union):
            self.report.error("SN415", "a loop belongs to one SELECT, here is a union", written)
            return None
        return self.query(written, self.loops)

    def query(self, written: syntax.QueryExpression, loops: LoopBinder | None = None) -> Bound | None:
        """The bound query, or None after an error."""
        match written:
            case syntax.ConverterQuery():
                return self._convert(written, loops)
            case syntax.Union():
                return self._union(written)
            case syntax.Select():
                return self._select(written, loops)
        raise TypeError(f"no query: {written!r}")

    # --- converters and unions ---------------------------------------------------------------------------------------

    def _convert(self, written: syntax.ConverterQuery, loops: LoopBinder | None) -> Bound | None:
        inner = self.query(written.query, loops)
        if inner is None:
            return None
        if isinstance(inner.node, StreamNode):
            if self.report.has_error_in(Span(written.query.span.end, written.span.end)):
                return None  # a loop inside the parentheses may have made windows of it
            self.report.error(
                "SN404",
                f"{written.kind} makes a stream of windows; this query is a stream already",
                written.query,
                help=f"leave {written.kind} out, or give the stream in FROM a window",
            )
            return None
        node = _CONVERTERS[written.kind](_window_node(inner.node), tag_columns(None, self.new_id))
        return Bound(node, inner.columns)

    def _union(self, written: syntax.Union) -> Bound | None:
        bound = [self.query(part) for part in written.parts]
        parts = [part for part in bound if part is not None]
        if any(not part.is_one_off for part in parts):
            self._one_off_only("ORDER BY", written.order_by)
            self._one_off_only("LIMIT", () if written.limit is None else (written.limit,))
        if len(parts) < len(bound):
            return None
        first = parts[0]
        for part, place in zip(parts, written.parts, strict=True):
            if not part.is_one_off and not part.is_stream:
                self.report.error(
                    "SN414",
                    "UNION ALL puts streams together, this is a window query",
                    place,
                    help="make a stream of it: RSTREAM(…), ISTREAM(…) or DSTREAM(…)",
                )
                return None
            if part.is_one_off != first.is_one_off:
                self.report.error("SN414", "UNION ALL puts streams together, or one-off queries, not both", place)
                return None
            if not self._equal_types(first, part, place):
                return None
        columns = tuple(
            _union_column(self.new_id(), same) for same in zip(*(part.columns for part in parts), strict=True)
        )
        nodes = tuple(part.node for part in parts)
        if not first.is_one_off:
            streams = tuple(node for node in nodes if isinstance(node, StreamNode))
            return Bound(StreamUnion(streams, columns, tag_columns(None, self.new_id)), columns)
        tables = tuple(map(_window_node, nodes))
        from_union = Bound(TableUnion(tables, columns), columns, is_one_off=True)
        return bind_order_and_limit(from_union, written, self)

    def _equal_types(self, first: Bound, part: Bound, place: SyntaxNode) -> bool:
        ours, theirs = ([c.type for c in side.columns] for side in (first, part))
        if len(ours) != len(theirs):
            self.report.error(
                "SN306",
                f"the parts of UNION ALL have equal columns; the first has {len(ours)}, this {len(theirs)}",
                place,
            )
            return False
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True), 1):
            if a is not b and not (a.whole and b.whole):
                self.report.error(
                    "SN306",
                    f"column {number} is {a} in the first part of UNION ALL and {b} in this",
                    place,
                    help="CAST one of them",
                )
                return False
        return True

    def _one_off_only(self, what: str, places: Sequence[SyntaxNode | Span]) -> None:
        """Report a clause of one-off queries at the first of its places; no place, no error."""
        if places:
            self.report.error(
                "SN409",
                f"{what} stands in one-off queries only",
                places[0],
                help="a continuous answer is a bag: sort or cut where it is shown, or ask once over what is on record: "
                "FROM extent.HISTORY … ORDER BY … LIMIT …",
            )

    # --- SELECT ------------------------------------------------------------------------------------------------------

    def _select(self, written: syntax.Select, loops: LoopBinder | None) -> Bound | None:
        source = FromBinder(self, written, loops).bind()
        if source.kind == "once":
            return bind_one_off_select(source, written, self)
        self._one_off_only("DISTINCT", (written.distinct_span,) if written.distinct else ())
        self._one_off_only("ORDER BY", written.order_by)
        self._one_off_only("LIMIT", () if written.limit is None else (written.limit,))
        if source.kind == "stream":
            return self._stream(source, written)
        return bind_window_select(source, written, self)

    def _stream(self, source: BoundFrom, written: syntax.Select) -> Bound | None:
        """A stream query: one stream, selected and projected (2.2)."""
        grouping = bool(written.group_by) or written.having is not None
        if grouping:
            self.report.error(
                "SN421",
                "GROUP BY and HAVING need a window: a stream has no end to group up to",
                written.grouping_span,
                help="give the stream in FROM a window, for example [FROM NOW-5 TO NOW SLIDE 5 MIN]",
            )
        endless = "a stream has no end; give the stream in FROM a window"
        scope = replace(source.scope, aliases=frozenset(find_aliases(written.items)))
        where = ExpressionBinder(scope, self.report, self.no_subquery, aggregates=endless)
        typing = replace(where, aggregates=None) if grouping else where
        predicate = None if written.where is None else where.predicate(written.where)
        outputs = bind_select_list(written.items, typing, self)
        if source.node is None or predicate is UNKNOWN or outputs is None or grouping:
            return None
        if not isinstance(source.node, StreamNode):
            raise TypeError(f"a stream query reads no stream: {source.node!r}")
        below = source.node if predicate is None else StreamSelect(predicate, source.node)
        node = StreamProject(outputs, below)
        return Bound(node, node.columns, interval=source.interval)

    def subquery(self, written: Subquery) -> PlanNode | None:
        """The node of a subquery outside FROM, which must be a one-off query; None after an error."""
        bound = self.query(written.query)
        if bound is not None and not bound.is_one_off:
            self.report.error(
                "SN409", "a subquery outside FROM is a one-off query itself: it reads tables, without windows", written
            )
            return None
        return bound.node if bound is not None else None

    def no_subquery(self, written: Subquery) -> None:
        """Report a subquery outside FROM where none may stand."""
        self.report.error(
            "SN409",
            "a subquery outside FROM stands in one-off queries only",
            written,
            help="join with it instead: subqueries of type stream may stand in FROM",
        )


def _window_node(node: PlanNode) -> WindowNode:
    if not isinstance(node, WindowNode):
        raise TypeError(f"no node of windows: {node!r}")
    return node


def _below_converters(written: syntax.QueryExpression) -> syntax.QueryExpression:
    while isinstance(written, syntax.ConverterQuery):
        written = written.query
    return written


def _union_column(id: int, columns: Sequence[Column]) -> Column:
    """The column of a union: named by the first part, with a scale only if all parts have the same."""
    first = columns[0]
    scale = first.scale if all(c.scale == first.scale for c in columns) else None
    return Column(id, first.type, first.name, first.qualifier, scale, first.unit)

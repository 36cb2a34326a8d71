"""Compiler: the plan of a query as one statement of Spark SQL.

Each operator of the algebra becomes a part of the statement; Spark's optimizer pushes selections and drops columns. An operator
that Spark cannot answer as the live engine does raises SparkRefusedError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acquisition.extent import ExtentKind, LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode, WindowNode, walk
from basestation.algebra.one_off import Distinct, Limit, Sort, TableJoin, TableUnion
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.history.aggregate_sql import compile_aggregate
from basestation.history.converter_sql import convert
from basestation.history.loop_sql import loop_product
from basestation.history.product_sql import product
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import ScalarCompiler, columns_text, name_of, unscale
from basestation.history.source_sql import Ticks, read_extent
from basestation.history.statement import (
    ArchiveView,
    Check,
    HistoryRange,
    SparkStatement,
    StreamRelation,
    WindowRelation,
)
from basestation.history.table_sql import read_once, read_scan, read_table
from basestation.history.window_sql import landmark_windows, row_windows, time_windows
from basestation.planner.plan import Plan
from basestation.results.schema import make_unique


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query in Spark SQL.

    `text` gives `columns`: the `tags` (`_tick`, for windows `_n`, in a loop `_t`), and the columns of the query under `names`; `order` is their
    order. `windows` gives the windows, empty ones too; None of a stream. `checks` run before. `inexact` are the names of columns that may differ in the last digits.
    """

    text: str
    windows: str | None
    checks: tuple[Check, ...]
    names: tuple[str, ...]
    inexact: frozenset[str]
    order: str
    tags: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.tags, *self.names)


def compile_plan(plan: Plan, sources: Mapping[str, ArchiveView], span: HistoryRange, prefix: str = "") -> CompiledQuery:
    """The statement of a query over the archive of its extents. SparkRefusedError where Spark has no exact way."""
    return _Compiler(plan, sources, span, prefix).compile()


class _Compiler:
    def __init__(self, plan: Plan, sources: Mapping[str, ArchiveView], span: HistoryRange, prefix: str) -> None:
        self._plan, self._tick_ms = plan, plan.catalog.tick_ms
        options = plan.options
        if options.lifetime is not None:
            raise SparkRefusedError("LIFETIME plans for motes; leave it out of a query over history")
        if options.since is not None:
            span = HistoryRange(options.since, span.until, span.first, span.ask)
        elif options.since_ago is not None:
            span = HistoryRange(span.until - options.since_ago, span.until, span.first, span.ask)
        self._is_limited = options.run_for is not None
        if options.run_for is not None:
            span = HistoryRange(span.start, min(span.until, span.start + options.run_for), span.first, span.ask)
        scalars = ScalarCompiler(self._subquery)
        self.statement = SparkStatement(sources, span, scalars, prefix)
        self.statement.is_ordered, self.statement.is_limited = needs_order(plan.root), self._is_limited
        self.statement.has_arrivals = self._is_limited and any(isinstance(n, StreamNode) for n in walk(plan.root))
        self.statement.has_arrivals |= any(isinstance(node, Scan | Once) and node.history for node in walk(plan.root))

    def compile(self) -> CompiledQuery:
        root = self._plan.root
        columns = root.columns
        tags: tuple[str, ...] = ("_tick",)
        names = tuple(make_unique(column.label for column in columns))
        listed = "".join(f", `{name.replace('`', '``')}`" for name in names)
        if isinstance(root, StreamNode):
            ticks = self.statement.span.start, self.statement.span.until
            stream = self._stream(root, ticks)
            body = f"SELECT _tick{self._outputs(columns, names)} FROM {stream.name}"
            if self._is_limited or self.statement.is_ordered or self.statement.has_arrivals:
                body += f" WHERE _arr BETWEEN {ticks[0]} AND {ticks[1]}"
            windows, order = None, "_tick" + listed
        else:
            relation = self._windows(root)
            t = ", _t" if relation.has_t else ""
            kept = ", _ord" if self.statement.is_ordered else ""
            order = "_tick, _n" + (kept or listed)
            body = f"SELECT _w AS _tick, _n{t}{self._outputs(columns, names)}{kept} FROM {relation.name}"
            tags = ("_tick", "_n", *(["_t"] if t else []))
            windows = self.statement.text(f"SELECT _w AS _tick, _n{t} FROM {relation.windows}")
        inexact = frozenset(n for n, c in zip(names, columns, strict=True) if c in self.statement.scalars.inexact)
        checks = tuple(
            Check(self.statement.text(f"SELECT count(1) FROM ({check.text})"), check.reason)
            for check in dict.fromkeys(self.statement.checks)
        )
        return CompiledQuery(self.statement.text(body), windows, checks, names, inexact, order, tags)

    def _outputs(self, columns: Sequence[Column], names: Sequence[str]) -> str:
        texts = [name_of(c) if c.scale is None else unscale(name_of(c), c.scale) for c in columns]
        return "".join(f", {text} AS `{name.replace('`', '``')}`" for text, name in zip(texts, names, strict=True))

    def _subquery(self, plan: PlanNode) -> str:
        if not isinstance(plan, WindowNode):
            raise SparkRefusedError("a subquery that is a stream")
        return f"SELECT * FROM {self._windows(plan).name}"

    # --- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, node: PlanNode, ticks: Ticks) -> StreamRelation:
        match node:
            case StreamAcquire():
                stream = read_extent(self.statement, node.extent, node.attributes, ticks, self._tick_ms, node.interval)
                return self._tagged(node, stream)
            case StreamReceive():
                stream = read_extent(self.statement, node.extent, node.attributes, ticks, self._tick_ms, None)
                return self._tagged(node, stream)
            case StreamSelect(predicate=predicate, child=child):
                stream = self._tagged(node, self._stream(child, ticks))
                body = f"SELECT * FROM {stream.name} WHERE {self.statement.scalars.predicate(predicate)}"
                return self._named("selected", body, stream)
            case StreamProject(child=child):
                stream = self._tagged(node, self._stream(child, ticks))
                tags = "_tick, _arr, _ord, _idx, _sec"
                body = f"SELECT {tags}{self._projected(node.outputs)} FROM {stream.name}"
                return self._tagged(node, self._named("projected", body, stream))
            case StreamUnion():
                return self._union(node, ticks)
            case Converter(child=child):
                relation = self._windows(child)
                stream = convert(self.statement, node, relation)
                if self.statement.is_ordered or self._is_limited:
                    self._check_unrevised(stream)
                return self._tagged(node, stream)
        raise SparkRefusedError(f"{type(node).__name__} has no form in Spark")

    def _tagged(self, node: StreamNode, stream: StreamRelation) -> StreamRelation:
        tick, index = node.tags
        self.statement.scalars.tags |= {tick: "_tick", index: "_idx"}
        return stream

    def _named(self, what: str, body: str, of: StreamRelation) -> StreamRelation:
        return StreamRelation(self.statement.add(what, body), of.is_append, of.extents, of.is_converted)

    def _projected(self, outputs: Sequence[tuple[Column, Expression]]) -> str:
        scalars, texts = self.statement.scalars, []
        for column, e in outputs:
            if column.scale is not None and isinstance(e, ex.Attr):
                texts.append(f", {scalars.plain(e.column)} AS {name_of(column)}")
                continue
            made = scalars.scalar(e, column.type)
            if not made.is_exact:
                scalars.inexact.add(column)
            texts.append(f", {made.finite} AS {name_of(column)}")
        return "".join(texts)

    def _aligned(self, child: PlanNode, attributes: Sequence[Column]) -> str:
        """The columns of a part of a union, under the names and scales of the union."""
        texts = []
        for own, column in zip(child.columns, attributes, strict=True):
            text = name_of(own)
            if own.scale is not None and column.scale is None:
                text = unscale(text, own.scale)
            elif column.scale is None and column.type is not own.type:
                text = f"CAST({text} AS DOUBLE)" if column.type.value == "float" else text
            if own in self.statement.scalars.inexact:
                self.statement.scalars.inexact.add(column)
            texts.append(f", {text} AS {name_of(column)}")
        return "".join(texts)

    def _union(self, node: StreamUnion, ticks: Ticks) -> StreamRelation:
        parts = [self._stream(part, ticks) for part in node.parts]
        if any(part.is_append for part in parts) and not all(part.is_append for part in parts):
            raise SparkRefusedError("a union of streams, of which only some are `late append`")
        texts = [
            f"SELECT _tick, _arr, concat(array({at}L), _ord) AS _ord{self._aligned(part, node.attributes)} FROM {stream.name}"
            for at, (part, stream) in enumerate(zip(node.parts, parts, strict=True))
        ]
        index = "row_number() OVER (ORDER BY _arr, _ord)" if self.statement.is_ordered else "NULL"
        body = f"SELECT *, CAST({index} AS BIGINT) AS _idx FROM ({' UNION ALL '.join(texts)})"
        extents = frozenset().union(*(part.extents for part in parts))
        converted = any(part.is_converted for part in parts)
        name = self.statement.add("united", f"SELECT *, _idx AS _sec FROM ({body})")
        return self._tagged(node, StreamRelation(name, parts[0].is_append, extents, converted))

    def _check_unrevised(self, stream: StreamRelation) -> None:
        """A stream from windows counts what revisions add in the order of their delivery; here nothing may have been revised."""
        for name in sorted(stream.extents):
            source = self.statement.sources[name]
            if source.extent.kind is not ExtentKind.STORED and source.extent.late is LatePolicy.REVISE:
                self.statement.checks.append(
                    Check(
                        f"SELECT 1 FROM {self.statement.entered[name]} WHERE _late",
                        f"the query counts the rows or indexes of a stream from windows, which late tuples of `{name}` have revised",
                    )
                )

    # --- windows -----------------------------------------------------------------------------------------------------

    def _windows(self, node: PlanNode) -> WindowRelation:
        statement, span = self.statement, self.statement.span
        match node:
            case TimeWindow(child=child):
                ticks = span.start + node.begin, span.until + node.end
                return time_windows(statement, node, self._stream(child, ticks))
            case RowWindow(child=child):
                return row_windows(statement, node, self._stream(child, (0, span.until)))
            case LandmarkWindow(child=child):
                return landmark_windows(statement, node, self._stream(child, (span.start, span.until)))
            case Scan():
                return read_scan(statement, node, self._tick_ms)
            case Once():
                return read_once(statement, node, self._tick_ms)
            case WindowSelect(predicate=predicate, child=child):
                relation = self._windows(child)
                body = f"SELECT * FROM {relation.name} WHERE {statement.scalars.predicate(predicate)}"
                return self._renamed("selected", body, relation)
            case WindowProject(child=child):
                relation = self._windows(child)
                kept = ", _tick, _sec" if relation.has_order else ""
                t = ", _t" if relation.has_t else ""
                body = f"SELECT _w, _n{t}, _ord{kept}{self._projected(node.outputs)} FROM {relation.name}"
                return self._renamed("projected", body, relation)
            case WindowAggregation():
                return self._aggregate(node)
            case LoopWindow():
                return self._product([node])
            case WindowCrossProduct(inputs=inputs):
                return self._product(inputs)
            case TableJoin() | TableUnion() | Distinct() | Sort() | Limit():
                return self._table(node)
        raise SparkRefusedError(f"{type(node).__name__} has no form in Spark")

    def _renamed(self, what: str, body: str, of: WindowRelation) -> WindowRelation:
        name = self.statement.add(what, body)
        return WindowRelation(name, of.windows, of.grid, of.extents, of.has_order, of.has_t, of.most_rows)

    def _product(self, inputs: Sequence[PlanNode]) -> WindowRelation:
        loops = [node for node in inputs if isinstance(node, LoopWindow)]
        if not loops:
            return product(self.statement, [(self._windows(node), node.columns) for node in inputs])
        until = self.statement.span.until
        streams = [(node, self._stream(node.child, (0, until))) for node in loops]
        return loop_product(self.statement, streams, list(inputs), self._read_table)

    def _read_table(self, node: PlanNode) -> tuple[str, str, str]:
        if not isinstance(node, Once):
            raise SparkRefusedError(f"{type(node).__name__} beside a for-loop has no form in Spark")
        return read_table(self.statement, node, self._tick_ms)

    def _aggregate(self, node: WindowAggregation) -> WindowRelation:
        relation = self._windows(node.child)
        scalars = self.statement.scalars
        order = "struct(_tick, _sec)" if relation.has_order else None
        if any(e.name in ("FIRST", "LAST") for _, e in node.aggregates) and order is None:
            raise SparkRefusedError("FIRST and LAST over more than one stream")
        most_rows = self._most_rows(node.child)
        keys = []
        for column, e in node.groups:
            if not isinstance(e, ex.Attr) or e.column in scalars.inexact:
                raise SparkRefusedError("GROUP BY a value that Spark rounds otherwise than the live engine")
            keys.append((name_of(column), scalars.plain(e.column)))
        made = []
        for column, e in node.aggregates:
            found = compile_aggregate(scalars, e, order, most_rows)
            if not found.is_exact:
                scalars.inexact.add(column)
            made.append(f", {found.finite} AS {name_of(column)}")
        t = ", _t" if relation.has_t else ""
        grouped = ", ".join(["_w", "_n", *(["_t"] if t else []), *(text for _, text in keys)])
        listed = "".join(f", {text} AS {name}" for name, text in keys)
        if node.grouped:
            first = "min(_ord)" if self.statement.is_ordered else "CAST(array() AS ARRAY<BIGINT>)"
            body = f"SELECT _w, _n{t}, {first} AS _ord{listed}{''.join(made)} FROM {relation.name} GROUP BY {grouped}"
        else:
            counts = {name_of(c) for c, e in node.aggregates if e.name == "COUNT"}
            inner = f"SELECT _w, _n{''.join(made)} FROM {relation.name} GROUP BY _w, _n"
            names = [name_of(column) for column, _ in node.aggregates]
            outputs = "".join(f", coalesce(a.{n}, 0L) AS {n}" if n in counts else f", a.{n}" for n in names)
            windows_t = ", v._t" if t else ""
            body = (
                f"SELECT v._w, v._n{windows_t}, array(0L) AS _ord{outputs} FROM {relation.windows} v LEFT JOIN (\n{inner}) a "
                f"ON a._w = v._w AND a._n = v._n"
            )
        name = self.statement.add("aggregated", body)
        return WindowRelation(name, relation.windows, relation.grid, relation.extents, False, relation.has_t)

    def _most_rows(self, node: PlanNode) -> int | None:
        """No window below has more rows; None where that is not known."""
        most = 1
        for each in walk(node):
            if isinstance(each, Converter | LoopWindow | Scan | Once | TableUnion):
                return None
            if isinstance(each, StreamAcquire | StreamReceive):
                rows = self.statement.sources[each.extent.name].rows
                if rows is None:
                    return None
                most *= max(2, rows)  # so that the product is above the sum, which a union has
        return most

    # --- one-off queries ---------------------------------------------------------------------------------------------

    def _table(self, node: PlanNode) -> WindowRelation:
        statement, scalars = self.statement, self.statement.scalars
        match node:
            case TableJoin(kind=kind, left=left, right=right, condition=condition):
                a, b = self._windows(left), self._windows(right)
                on = scalars.predicate(condition)
                order = "concat(coalesce(a._ord, array(9223372036854775807L)), coalesce(b._ord, array(0L)))"
                columns = columns_text((*left.columns, *right.columns))
                body = f"SELECT {statement.span.ask}L AS _w, 1L AS _n, {order} AS _ord{columns} FROM {a.name} a {kind} JOIN {b.name} b ON {on}"
                return self._renamed("joined", body, WindowRelation("", a.windows, a.grid, a.extents | b.extents))
            case TableUnion(parts=parts, attributes=attributes):
                made = [(part, self._windows(part)) for part in parts]
                texts = [
                    f"SELECT _w, _n, concat(array({at}L), _ord) AS _ord{self._aligned(part, attributes)} FROM {relation.name}"
                    for at, (part, relation) in enumerate(made)
                ]
                first = made[0][1]
                extents = frozenset().union(*(relation.extents for _, relation in made))
                united = WindowRelation("", first.windows, first.grid, extents)
                return self._renamed("united", " UNION ALL ".join(texts), united)
            case Distinct(child=child):
                relation = self._windows(child)
                self._refuse_inexact(child.columns, "DISTINCT")
                names = ", ".join(name_of(column) for column in child.columns)
                body = f"SELECT *, row_number() OVER (PARTITION BY {names} ORDER BY _ord) AS _copy FROM {relation.name}"
                body = f"SELECT _w, _n, _ord{columns_text(child.columns)} FROM ({body}) WHERE _copy = 1"
                return self._renamed("distinct", body, relation)
            case Sort(child=child, keys=keys):
                relation = self._windows(child)
                ordered = []
                for e, descending, nulls_first in keys:
                    made_key = scalars.scalar(e)
                    if not made_key.is_exact:
                        raise SparkRefusedError("ORDER BY a value that Spark rounds otherwise than the live engine")
                    nulls = "NULLS FIRST" if nulls_first else "NULLS LAST"
                    ordered.append(f"{made_key.finite} {'DESC' if descending else 'ASC'} {nulls}")
                number = f"CAST(row_number() OVER (ORDER BY {', '.join([*ordered, '_ord'])}) AS BIGINT)"
                body = f"SELECT _w, _n, array({number}) AS _ord{columns_text(child.columns)} FROM {relation.name}"
                return self._renamed("sorted", body, relation)
            case Limit(child=child, count=count):
                relation = self._windows(child)
                columns = columns_text(child.columns)
                body = f"SELECT *, row_number() OVER (ORDER BY _ord) AS _place FROM {relation.name}"
                body = f"SELECT _w, _n, _ord{columns} FROM ({body}) WHERE _place <= {count}"
                return self._renamed("limited", body, relation)
        raise SparkRefusedError(f"{type(node).__name__} has no form in Spark")

    def _refuse_inexact(self, columns: Sequence[Column], what: str) -> None:
        if any(column in self.statement.scalars.inexact for column in columns):
            raise SparkRefusedError(f"{what} compares values that Spark rounds otherwise than the live engine")


def needs_order(root: PlanNode) -> bool:
    """Whether indexes, rows or the order of tuples matter to the answer."""
    for node in walk(root):
        match node:
            case RowWindow() | LandmarkWindow(rows=True) | Limit() | Sort() | Distinct():
                return True
            case LoopWindow(loop=loop) if loop.rows:
                return True
            case Scan(history=True) | Once(history=True):
                return any(column.name == "index" for column in node.columns)
            case WindowAggregation(aggregates=aggregates):
                if any(e.name in ("FIRST", "LAST") for _, e in aggregates):
                    return True
    indexes = {node.tags[1] for node in walk(root) if isinstance(node, StreamNode)}
    read = {column for node in walk(root) for e in node.expressions for column in ex.columns_of(e)}
    return bool(indexes & read)

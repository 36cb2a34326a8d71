"""Binds FROM: its sources, their windows, and the kind of query that follows from them (semantics 2.2, 2.6, 10.8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from basestation.algebra.expression import Column
from basestation.algebra.node import PlanNode, StreamNode, WindowNode
from basestation.algebra.one_off import TableJoin
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LoopWindow
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.language import syntax
from basestation.planner.aggregation import aggregate_calls
from basestation.planner.catalog import whole_ticks
from basestation.planner.expression_binder import UNKNOWN, ExpressionBinder, any_unknown
from basestation.planner.loop_binder import LoopBinder
from basestation.planner.scope import Scope, ScopeEntry, requalify
from basestation.planner.source_binder import BoundEntry, QueryContext, bind_source
from basestation.planner.window_binder import bind_window


@dataclass(frozen=True, slots=True)
class BoundFrom:
    """A bound FROM. `kind` is stream, windows or once; `node` is None after an error. `interval` in ticks as in Bound.

    `unordered` says what to write in place of FIRST and LAST; None where FROM is one stream, so that its tuples have one order.
    """

    kind: str
    scope: Scope
    node: PlanNode | None
    interval: int | None = None
    unordered: str | None = None


class FromBinder:
    """Binds the FROM of one SELECT; `loops` are its for-loops, if it has any."""

    def __init__(self, binder: QueryContext, select: syntax.Select, loops: LoopBinder | None) -> None:
        self.binder, self.report = binder, binder.report
        self.select, self.loops = select, loops

    def bind(self) -> BoundFrom:
        """The bound FROM. Errors go to the report."""
        written = [entry for tree in self.select.entries for entry in _entries(tree)]
        entries = [bind_source(entry, self.binder) for entry in written]
        known = [entry for entry in entries if entry is not None]
        complete = bool(entries) and None not in entries
        twice = self._twice(known)
        kind = self._kind(known, written, complete)
        named = tuple(ScopeEntry(e.name, e.bound.columns, _tags(e) if kind == "stream" else None) for e in known)
        scope = Scope(named, complete, twice)
        if self.loops is not None:
            streams = {e.name for e in known if e.name and e.bound.is_stream}
            if complete:
                self.loops.check_names(streams, {e.name for e in known if e.is_table and e.name})
        if kind == "stream":
            return BoundFrom(kind, scope, known[0].bound.node, known[0].bound.interval)
        if kind == "once":
            tables = self._tables(known, scope) if complete else None
            return BoundFrom(kind, scope, tables, unordered=self._unordered(known) if complete else None)
        self._no_joins()
        bound = [self._window(entry) for entry in known]
        nodes = tuple(node for node in bound if node is not None)
        node = _product(nodes) if complete and len(nodes) == len(bound) else None
        return BoundFrom("windows", scope, node, unordered=self._unordered(known) if complete else None)

    def _twice(self, entries: Iterable[BoundEntry]) -> frozenset[str]:
        """The names that more than one entry has. Each repetition of a name is an error."""
        seen: set[str] = set()
        twice: set[str] = set()
        for entry in entries:
            if entry.name is None:
                continue
            if entry.name in seen:
                place = entry.written.alias or entry.written.source
                self.report.error(
                    "SN204",
                    f"two entries of FROM are called `{entry.name}`",
                    place,
                    help="give one of them another name with AS",
                )
                twice.add(entry.name)
            seen.add(entry.name)
        return frozenset(twice)

    def _kind(self, entries: Sequence[BoundEntry], written: Sequence[syntax.FromEntry], complete: bool) -> str:
        if self.loops is not None:
            return "windows"
        if complete and len(entries) == 1 and entries[0].bound.is_stream and entries[0].written.window is None:
            return "stream"
        windowless = all(entry.window is None for entry in written)
        if windowless and entries and all(entry.is_table for entry in entries):
            return "once"
        return "windows"

    def _unordered(self, entries: Sequence[BoundEntry]) -> str | None:
        """The help for FIRST and LAST over these entries; None where they have an order."""
        if all(entry.is_table and entry.written.window is None for entry in entries):
            return "sort the rows: ORDER BY … LIMIT 1 gives the first one, ORDER BY … DESC LIMIT 1 the last one"
        if len(entries) > 1:
            return "take it of one stream below: FROM RSTREAM(SELECT LAST(…) AS last FROM … […]) […] AS x, …"
        table = entries[0].bound.node
        if not isinstance(table, Once):
            return None
        if table.history:
            return f"read the stream itself: FROM {table.extent.name} [UNBOUNDED SLIDE 1 HOUR]"
        return "ask once, without SCAN: ORDER BY … LIMIT 1 gives the first row, ORDER BY … DESC LIMIT 1 the last one"

    def _no_joins(self) -> None:
        for tree in self.select.entries:
            if isinstance(tree, syntax.Join):
                self.report.error(
                    "SN409",
                    "JOIN stands in one-off queries only",
                    tree,
                    help="list the entries in FROM, with commas, and put the condition into WHERE",
                )

    # --- windows -----------------------------------------------------------------------------------------------------

    def _window(self, entry: BoundEntry) -> WindowNode | None:
        """The window node of an entry, or None after an error."""
        written, bound = entry.written.window, entry.bound
        if self.loops is not None:
            return self._looped(entry, self.loops)
        if isinstance(bound.node, Once):
            return self._scanned(entry, bound.node)
        if written is None:
            self.report.error(
                "SN401",
                "a stream next to anything else in FROM needs a window",
                entry.written,
                help="for example [FROM NOW-5 TO NOW SLIDE 5 MIN]",
            )
            return None
        if isinstance(written, syntax.ScanWindow):
            self.report.error(
                "SN403",
                "SCAN reads tables, this is a stream",
                written,
                help="for example [FROM NOW-5 TO NOW SLIDE 5 MIN]",
            )
            return None
        if not isinstance(bound.node, StreamNode):
            raise TypeError(f"no stream: {bound.node!r}")
        node = bind_window(bound.node, written, bound.interval, self.report, self.binder.catalog.tick_ms)
        if isinstance(written, syntax.UnboundedWindow) and node is not None:
            self._bounded(written)
        return node

    def _bounded(self, written: syntax.UnboundedWindow) -> None:
        """A landmark window is legal if its state does not grow, or if FOR ends it (10.3, 14)."""
        if self.binder.options.run_for is None and not self._merges():
            self.report.error(
                "SN413",
                "a window without bound that is not merely aggregated grows for ever",
                written,
                help="say how long the query runs, for example FOR 1 DAY, or use only aggregates that merge",
            )

    def _merges(self) -> bool:
        """Whether this SELECT has one entry and only aggregates that merge."""
        calls = aggregate_calls(self.select)
        folds = bool(calls) or bool(self.select.group_by)
        return (
            len(self.select.entries) == 1
            and folds
            and not any(c.distinct or c.function in ("MEDIAN", "QUANTILE") for c in calls)
        )

    def _scanned(self, entry: BoundEntry, table: Once) -> WindowNode | None:
        written = entry.written.window
        what = f"the history of `{table.extent.name}`" if table.history else f"table `{entry.name}`"
        if written is None:
            self.report.error(
                "SN408",
                f"{what} stands beside something that is read again and again: how often is it scanned?",
                entry.written,
                help="for example [SCAN 10 MIN]",
            )
            return None
        if not isinstance(written, syntax.ScanWindow):
            self.report.error(
                "SN402",
                f"{what} is scanned, not cut into windows",
                written,
                help="for example [SCAN 10 MIN]",
            )
            return None
        return Scan(
            table.extent,
            whole_ticks(written.every, self.report, self.binder.catalog.tick_ms),
            table.attributes,
            table.history,
        )

    def _looped(self, entry: BoundEntry, loops: LoopBinder) -> WindowNode | None:
        if entry.written.window is not None:
            self.report.error(
                "SN415",
                "in a query with a loop the windows are the loop's",
                entry.written.window,
                help="leave the window out",
            )
            return None
        if isinstance(entry.bound.node, Once):
            return entry.bound.node
        if entry.name is None or entry.name not in loops.ranges:
            if loops.complete:
                what = f"stream `{entry.name}`" if entry.name else "a subquery without an alias"
                self.report.error(
                    "SN415",
                    f"{what} stands in no WindowIs",
                    entry.written,
                    help="add WindowIs(name, left, right); to a loop",
                )
            return None
        loop, left, right = loops.ranges[entry.name]
        if any_unknown((loop.first, loop.condition, loop.change, left, right)):
            return None
        if not isinstance(entry.bound.node, StreamNode):
            raise TypeError(f"no stream: {entry.bound.node!r}")
        return LoopWindow(entry.bound.node, loop, left, right)

    # --- one-off -----------------------------------------------------------------------------------------------------

    def _tables(self, entries: Iterable[BoundEntry], scope: Scope) -> WindowNode | None:
        """The product of the entries of a one-off query, with its explicit joins; None after an error."""
        of = {id(entry.written): entry for entry in entries}
        bound = [self._joined(tree, of, scope.twice) for tree in self.select.entries]
        nodes = tuple(node for node in bound if node is not None)
        return _product(nodes) if len(nodes) == len(bound) else None

    def _joined(
        self, tree: syntax.FromEntry | syntax.Join, of: Mapping[int, BoundEntry], twice: frozenset[str]
    ) -> WindowNode | None:
        """An entry and all that is joined to it, from left to right; each ON sees the entries before it."""
        first, joins = tree.chain() if isinstance(tree, syntax.Join) else (tree, ())
        node: WindowNode | None = _table(of[id(first)])
        inside = [_named(of[id(first)])]
        for join in joins:
            right = of[id(join.right)]
            inside.append(_named(right))
            condition = None
            if join.condition is not None:
                scope = Scope(tuple(inside), twice=twice)
                typing = ExpressionBinder(
                    scope, self.report, self.binder.subquery, aggregates="ON joins tuple by tuple"
                )
                condition = typing.predicate(join.condition, "ON")
            if node is None or condition is UNKNOWN:
                node = None
            elif condition is None:
                node = WindowCrossProduct((node, _table(right)))
            else:
                node = TableJoin(join.kind, node, _table(right), condition)
        return node


def _product(nodes: tuple[WindowNode, ...]) -> WindowNode:
    return nodes[0] if len(nodes) == 1 else WindowCrossProduct(nodes)


def _table(entry: BoundEntry) -> WindowNode:
    if not isinstance(entry.bound.node, WindowNode):
        raise TypeError(f"no table: {entry.bound.node!r}")
    return entry.bound.node


def _tags(entry: BoundEntry) -> tuple[Column, Column]:
    """Tick and index of a stream, qualified with the name of the entry if it has one."""
    if not isinstance(entry.bound.node, StreamNode):
        raise TypeError(f"no stream: {entry.bound.node!r}")
    tags = entry.bound.node.tags
    if entry.name is None:
        return tags
    tick, index = requalify(tags, entry.name)
    return tick, index


def _named(entry: BoundEntry) -> ScopeEntry:
    return ScopeEntry(entry.name, entry.bound.columns)


def _entries(tree: syntax.FromEntry | syntax.Join) -> list[syntax.FromEntry]:
    """The entries of a join tree from left to right."""
    if isinstance(tree, syntax.Join):
        first, joins = tree.chain()
        return [first, *(join.right for join in joins)]
    return [tree]

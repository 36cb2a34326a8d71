"""FROM: what is read, which kind of query that makes it, and the windows on it (SEMANTICS 2.2, 2.6, 10.8)."""

from dataclasses import dataclass

from basestation.algebra.node import WindowNode
from basestation.algebra.one_off import TableJoin
from basestation.algebra.table import Scan
from basestation.algebra.window import LoopWindow
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.language import syntax
from basestation.planner.aggregation import aggregate_calls
from basestation.planner.catalog import whole_ticks
from basestation.planner.expression_binder import UNKNOWN, ExpressionBinder, any_unknown
from basestation.planner.scope import Scope, ScopeEntry, requalify
from basestation.planner.source_binder import bind_source
from basestation.planner.window_binder import bind_window


@dataclass(frozen=True, slots=True)
class BoundFrom:
    """A bound FROM. `kind` is stream, windows or once; `node` is None where an error left none.

    `one_stream`: exactly one entry, and it is a stream, so that its tuples have one order.
    """

    kind: str
    scope: Scope
    node: WindowNode | None
    interval: int | None = None
    one_stream: bool = False


class FromBinder:
    def __init__(self, binder, select, loops):
        self.binder, self.report = binder, binder.report
        self.select, self.loops = select, loops

    def bind(self):
        written = [entry for tree in self.select.entries for entry in _entries(tree)]
        entries = [bind_source(entry, self.binder) for entry in written]
        known = [entry for entry in entries if entry is not None]
        complete = bool(entries) and None not in entries
        twice = self._twice(known)
        kind = self._kind(known, written, complete)
        named = tuple(ScopeEntry(e.name, e.bound.columns, _tags(e) if kind == "stream" else None) for e in known)
        scope = Scope(named, complete, twice)
        if self.loops is not None:
            streams = {e.name for e in known if e.name and e.bound.streams}
            if complete:
                self.loops.check_names(streams, {e.name for e in known if e.table})
        if kind == "stream":
            return BoundFrom(kind, scope, known[0].bound.node, known[0].bound.interval)
        if kind == "once":
            return BoundFrom(kind, scope, self._tables(known, scope) if complete else None)
        self._no_joins()
        nodes = [self._window(entry) for entry in known]
        node = None
        if complete and None not in nodes:
            node = nodes[0] if len(nodes) == 1 else WindowCrossProduct(tuple(nodes))
        one_stream = len(written) == 1 and bool(known) and known[0].bound.streams
        return BoundFrom("windows", scope, node, one_stream=one_stream)

    def _twice(self, entries):
        """The names that more than one entry has; each entry that takes a name again is reported."""
        seen, twice = set(), set()
        for entry in entries:
            if entry.name is not None and entry.name in seen:
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

    def _kind(self, entries, written, complete):
        if self.loops is not None:
            return "windows"
        if complete and len(entries) == 1 and entries[0].bound.streams and entries[0].written.window is None:
            return "stream"
        windowless = all(entry.window is None for entry in written)
        if windowless and entries and all(entry.table for entry in entries):
            return "once"
        return "windows"

    def _no_joins(self):
        for tree in self.select.entries:
            if isinstance(tree, syntax.Join):
                self.report.error(
                    "SN409",
                    "JOIN stands in one-off queries only",
                    tree,
                    help="list the entries in FROM, with commas, and put the condition into WHERE",
                )

    # --- windows -----------------------------------------------------------------------------------------------------

    def _window(self, entry):
        """The window node of an entry, or None after an error."""
        written, bound = entry.written.window, entry.bound
        if self.loops is not None:
            return self._looped(entry)
        if entry.table:
            return self._scanned(entry)
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
        node = bind_window(bound.node, written, bound.interval, self.report, self.binder.catalog.tick_ms)
        if isinstance(written, syntax.UnboundedWindow) and node is not None:
            self._bounded(written)
        return node

    def _bounded(self, written):
        """A landmark window is legal where its state does not grow, or where FOR gives it an end (10.3, 14)."""
        if self.binder.options.lasting is None and not self._merges():
            self.report.error(
                "SN413",
                "a window without bound that is not merely aggregated grows for ever",
                written,
                help="say how long the query runs, for example FOR 1 DAY, or use only aggregates that merge",
            )

    def _merges(self):
        """Whether this SELECT folds its one entry into aggregates that merge."""
        calls = aggregate_calls(self.select)
        folds = bool(calls) or bool(self.select.group_by)
        return (
            len(self.select.entries) == 1
            and folds
            and not any(c.distinct or c.function in ("MEDIAN", "QUANTILE") for c in calls)
        )

    def _scanned(self, entry):
        written, table = entry.written.window, entry.bound.node
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

    def _looped(self, entry):
        if entry.written.window is not None:
            self.report.error(
                "SN415",
                "in a query with a loop the windows are the loop's",
                entry.written.window,
                help="leave the window out",
            )
            return None
        if entry.table:
            return entry.bound.node
        if entry.name is None or entry.name not in self.loops.ranges:
            if self.loops.complete:
                what = f"stream `{entry.name}`" if entry.name else "a subquery without an alias"
                self.report.error(
                    "SN415",
                    f"{what} stands in no WindowIs",
                    entry.written,
                    help="add WindowIs(name, left, right); to a loop",
                )
            return None
        loop, left, right = self.loops.ranges[entry.name]
        if any_unknown((loop.first, loop.condition, loop.change, left, right)):
            return None
        return LoopWindow(entry.bound.node, loop, left, right)

    # --- one-off -----------------------------------------------------------------------------------------------------

    def _tables(self, entries, scope):
        """The product of the entries, with the explicit joins among them; None after an error."""
        of = {id(entry.written): entry for entry in entries}
        nodes = [self._joined(tree, of, scope.twice) for tree in self.select.entries]
        if None in nodes:
            return None
        return nodes[0] if len(nodes) == 1 else WindowCrossProduct(tuple(nodes))

    def _joined(self, tree, of, twice):
        """An entry with all that is joined to it, from left to right; each ON sees what stands before it."""
        first, joins = tree.chain() if isinstance(tree, syntax.Join) else (tree, ())
        node, inside = of[id(first)].bound.node, [_named(of[id(first)])]
        for join in joins:
            right = of[id(join.right)]
            inside.append(_named(right))
            condition = None
            if join.kind != "CROSS":
                scope = Scope(tuple(inside), twice=twice)
                typing = ExpressionBinder(
                    scope, self.report, self.binder.subquery, aggregates="ON joins tuple by tuple"
                )
                condition = typing.predicate(join.condition, "ON")
            if node is None or right.bound.node is None or condition is UNKNOWN:
                node = None
            elif join.kind == "CROSS":
                node = WindowCrossProduct((node, right.bound.node))
            else:
                node = TableJoin(join.kind, node, right.bound.node, condition)
        return node


def _tags(entry):
    """Tick and index as the entry shows them: by its name, if it has one."""
    tags = entry.bound.node.tags
    return tags if entry.name is None else requalify(tags, entry.name)


def _named(entry):
    return ScopeEntry(entry.name, entry.bound.columns)


def _entries(tree):
    """The entries of a join tree from left to right."""
    if isinstance(tree, syntax.Join):
        first, joins = tree.chain()
        return [first, *(join.right for join in joins)]
    return [tree]

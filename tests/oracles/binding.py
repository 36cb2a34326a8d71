"""Binding: from syntax to streams and windows, with the checks of 2.2, 2.3 and part II that come before any data."""

from dataclasses import replace

from basestation.language import syntax
from tests.oracles import aggregates
from tests.oracles.coverage import site_test
from tests.oracles.errors import RejectedError
from tests.oracles.expressions import Binder, Column, Scope, children, conjuncts, has_aggregate
from tests.oracles.loops import LoopProduct, LoopWindows
from tests.oracles.one_off import OneOff
from tests.oracles.relational import SelectWindows
from tests.oracles.schema import ticks
from tests.oracles.select_list import aggregates_here, grouping, no_one_off_clauses, select_list
from tests.oracles.streams import ConverterStream, ExtentStream, SelectStream, UnionStream
from tests.oracles.windows import RowWindows, ScanWindows, TableSource, TimeWindows, WindowProduct, history_rows

HISTORY_BEFORE, HISTORY_BEHIND = ("tick", "index"), ("_site", "_arrival")  # 10.7


def is_stream(bound):
    return hasattr(bound, "view")


class QueryBinder:
    """Binds the queries of one statement. `world` has logs, tables and extents by name."""

    def __init__(self, world, context, loops=()):
        self.world, self.context, self.loops = world, context, loops

    def query(self, query, limit=None, top=False):
        match query:
            case syntax.Select():
                return self.select(query, limit, top)
            case syntax.ConverterQuery():
                inner = self.query(query.query, limit, top)
                if is_stream(inner):
                    raise RejectedError("static", f"{query.kind} of a stream")  # 2.2
                return ConverterStream(query.kind, inner, self.context)
            case syntax.Union():
                return self.union(query, limit)
        raise RejectedError("syntax", "not a query")

    def union(self, query, limit):
        """10.6: continuous, of stream queries with equal types; or one-off."""
        parts = [self.query(part, limit) for part in query.parts]
        for part in parts[1:]:
            if len(part.columns) != len(parts[0].columns) or any(
                _kind(a.type) != _kind(b.type) for a, b in zip(part.columns, parts[0].columns, strict=True)
            ):
                raise RejectedError("type", "the parts of a union have different types")
        columns = tuple(
            replace(c, scale=c.scale if all(p.columns[i].scale == c.scale for p in parts) else None)
            for i, c in enumerate(parts[0].columns)  # columns named by the first
        )
        if all(isinstance(part, OneOff) for part in parts):
            return OneOff.union(parts, columns, query)
        if not all(is_stream(part) for part in parts) or query.order_by or query.limit:
            raise RejectedError("static", "a union is of stream queries, or one-off")
        return UnionStream(parts, columns, self.context)

    # --- SELECT ------------------------------------------------------------------------------------------------------

    def select(self, select, limit, top):
        loops = self.loops if top else ()
        entries = [_leaves(e) for e in select.entries]
        flat = [entry for leaves in entries for entry in leaves]
        looped = {w.name.text for loop in loops for w in loop.windows}
        kinds = [self.kind(entry, looped) for entry in flat]
        names = [n for n in map(self.name, flat) if n]
        if len(set(names)) < len(names):
            raise RejectedError("name", "two entries with the same name")  # 2.3
        if looped - set(names):
            raise RejectedError("name", f"not in FROM: {', '.join(looped - set(names))}")
        if kinds == ["stream"]:
            no_one_off_clauses(select)
            return self.stream_query(select, flat[0], limit)
        if "stream" in kinds:
            raise RejectedError("static", "a stream without a window")  # 2.2
        if "loop" not in kinds and all(kind == "table" for kind in kinds):
            return OneOff(self, select)
        if any(isinstance(e, syntax.Join) for e in select.entries):
            raise RejectedError("static", "JOIN exists in one-off queries only")
        no_one_off_clauses(select)
        if "loop" in kinds:
            if set(kinds) - {"loop", "table"}:
                raise RejectedError("static", "entries without a WindowIs must be stored extents")  # 10.8
        elif "table" in kinds:
            raise RejectedError("static", "a table without SCAN beside windows")  # 2.6
        return self.window_query(select, flat, loops, limit)

    def kind(self, entry, looped):
        """The kind of an entry of FROM: stream, window, scan, table or loop (2.2)."""
        source, window = entry.source, entry.window
        if isinstance(source, syntax.ExtentSource):
            extent = self.world.extents.get(source.name.text)
            if extent is None:
                raise RejectedError("name", f"no extent is called {source.name.text}")
            if source.history and extent.kind == "stored":
                raise RejectedError("static", "a stored extent has no history")
            table = source.history or extent.kind == "stored"
        else:
            table = False
        scan = isinstance(window, syntax.ScanWindow)
        if window is not None and scan != table:
            raise RejectedError("static", "[FROM …] on a table, or SCAN on a stream")  # 2.2
        if self.name(entry) in looped:
            if window is not None or table:
                raise RejectedError("static", "WindowIs names a stream without a window")
            return "loop"
        if table:
            return "scan" if scan else "table"
        return "stream" if window is None else "window"

    def name(self, entry):
        """2.3: an extent is known by its alias if it has one, else by its own name; a subquery by its alias."""
        if entry.alias:
            return entry.alias.text
        return entry.source.name.text if isinstance(entry.source, syntax.ExtentSource) else None

    def stream(self, entry):
        """The stream under an entry of FROM, with its columns as they are called there."""
        name = self.name(entry)
        if isinstance(entry.source, syntax.ExtentSource):
            return self.extent_stream(entry.source.name.text, name)
        stream = self.query(entry.source.query)
        if not is_stream(stream):
            raise RejectedError("static", "a window query directly in FROM")  # 2.7
        if name:  # 2.3: all its columns are qualified by the alias only
            stream.columns = tuple(replace(c, qualifier=name) for c in stream.columns)
        return stream

    def extent_stream(self, extent, name):
        stream = ExtentStream(self.world.logs[extent], name, self.context)
        every, declared = self.context.acquire, self.world.extents[extent].interval
        if every is None or declared is None:
            return stream
        if every % declared:
            raise RejectedError("static", "ACQUIRE EVERY takes a multiple of each interval")  # 11
        # 11: the readings at the multiples of it, indexes as after a selection
        multiples = lambda env: env.tick % every == 0  # noqa: E731
        return SelectStream(stream, stream.columns, multiples, None, [], stream.site_places, self.context)

    def table(self, entry):
        name, source = self.name(entry), entry.source
        extent = self.world.extents[source.name.text]
        attributes = tuple(Column(name, a.name, a.type, a.scale) for a in extent.attributes)
        if not source.history:
            table = self.world.tables[extent.name]
            return TableSource(attributes, lambda tick, clock: table.scan(tick), lambda clock: clock)
        log = self.world.logs[extent.name]
        before, behind = (tuple(Column(name, n, "integer") for n in ns) for ns in (HISTORY_BEFORE, HISTORY_BEHIND))
        columns = (*before, *attributes, *behind)
        return TableSource(columns, lambda tick, clock: history_rows(log, tick, clock), log.watermark)

    def stream_query(self, select, entry, limit):
        if select.group_by or select.having or any(has_aggregate(i) for i in _expressions(select)):
            raise RejectedError("static", "no aggregates in a stream query")  # 2.2
        child = self.stream(entry)
        names = tuple({self.name(entry), *(c.qualifier for c in child.columns)} - {None})
        scope = Scope(child.columns, tags=True, names=names)
        where = Binder(scope).predicate(select.where) if select.where is not None else None
        columns, items, origins = select_list(select.items, scope, Binder(scope))
        sites = {i for i, place in enumerate(origins) if place in child.site_places}
        excludes = self.excludes(select.where, scope, child.site_places)
        stream = SelectStream(child, columns, where, items, excludes, sites, self.context)
        stream.limit = limit
        return stream

    def window_query(self, select, entries, loops, limit):
        streams, columns, offsets = {}, [], []
        for place, entry in enumerate(entries):
            extent = isinstance(entry.source, syntax.ExtentSource)
            stored = extent and (entry.source.history or self.world.extents[entry.source.name.text].kind == "stored")
            streams[place] = self.table(entry) if stored else self.stream(entry)
            offsets.append(len(columns))
            columns += streams[place].columns
        scope = Scope(tuple(columns), keyed=len(entries) == 1 and is_stream(streams[0]))
        excludes = {
            place: self.excludes(select.where, scope, {offsets[place] + p for p in stream.site_places})
            for place, stream in streams.items() if is_stream(stream)
        }  # fmt: skip
        if loops:
            source = self.loop_product(entries, loops, streams, excludes)
        else:
            source = WindowProduct([
                self.windowed(entry, streams[place], excludes.get(place, [])) for place, entry in enumerate(entries)
            ])  # fmt: skip
        where = Binder(scope).predicate(select.where) if select.where is not None else None
        group = grouping(select, scope)
        having = Binder(scope, group).predicate(select.having) if select.having is not None else None
        if any(isinstance(e.window, syntax.UnboundedWindow) for e in entries):
            self.check_landmark(select)
        out, items, _ = select_list(select.items, scope, Binder(scope, group))
        return SelectWindows(source, out, where, items, _places(select, scope, group), having, self.context, limit)

    def excludes(self, where, scope, places):
        """12.3: the conjuncts over `site` alone, as functions of the site."""
        found = []
        for conjunct in conjuncts(where):
            binder = Binder(scope)
            predicate = binder.predicate(conjunct)
            if binder.used and binder.used <= set(places):
                found.append(site_test(predicate, places, len(scope.columns)))
        return found

    # --- windows -----------------------------------------------------------------------------------------------------

    def windowed(self, entry, source, excludes):
        window = entry.window
        if isinstance(window, syntax.ScanWindow):
            every = ticks(window.every, self.context.tick_ms)
            self.context.grids.add(every)
            return ScanWindows(source, every, self.context)
        rows, back, ahead, slide = self.shape(window, source)
        if not rows:
            self.context.grids.add(slide)
        make = RowWindows if rows else TimeWindows
        return make(source, back, ahead, slide, excludes, self.context)

    def shape(self, window, stream):
        """(counts rows, first offset or None for a landmark, last offset, slide)."""
        slide = getattr(window, "slide", None)
        if slide is None and stream.interval is None:
            raise RejectedError("static", "SLIDE is required here")  # 10.3
        rows = slide is not None and slide.unit == "ROW"
        step = stream.interval if slide is None else slide.count if rows else ticks(slide, self.context.tick_ms)
        if isinstance(window, syntax.NowWindow):
            return False, 0, 0, step  # [NOW] is [FROM NOW TO NOW SLIDE i]
        if isinstance(window, syntax.UnboundedWindow):
            return rows, None, 0, step
        return rows, *(self.offset(p, slide, rows) for p in (window.begin, window.end)), step

    def offset(self, point, slide, rows):
        if not point.back:
            return 0  # NOW
        unit = point.unit or (slide.unit if slide else None)  # 2.4, 10.2: the unit of SLIDE where it has none
        if unit is None or (unit == "ROW") != rows:
            raise RejectedError("static", "an offset needs a unit, and time and rows do not mix")  # 10.2, 10.3
        return -point.back if rows else -ticks(syntax.Duration(point.back, unit), self.context.tick_ms)

    def check_landmark(self, select):
        """10.3: without aggregates that merge, UNBOUNDED needs FOR."""
        growing = any(_grows(e) for e in _expressions(select)) or len(select.entries) > 1  # a product keeps its tuples
        if not self.context.run_for and (growing or not aggregates_here(select)):
            raise RejectedError("static", "UNBOUNDED without aggregates that merge needs FOR")

    def loop_product(self, entries, loops, streams, excludes):
        places = {self.name(entry): place for place, entry in enumerate(entries)}
        named = [w.name.text for loop in loops for w in loop.windows]
        if len(set(named)) < len(named):
            raise RejectedError("static", "a stream stands in exactly one WindowIs")
        bound = []
        for loop in loops:
            windows = sorted(((places[w.name.text], w) for w in loop.windows), key=lambda pw: pw[0])
            bound.append((windows[0][0], LoopWindows(
                loop, [(p, streams[p], excludes[p], w.left, w.right) for p, w in windows], self.context
            )))  # fmt: skip
        bound.sort(key=lambda pl: pl[0])  # 14: loops in the order of their first stream in FROM
        tables = {place: s for place, s in streams.items() if not is_stream(s)}
        return LoopProduct([loop for _, loop in bound], tables, len(entries), self.context)


def _kind(type_):
    return "integer" if type_ == "time" else type_  # 1.8: time and integer mix freely


def _leaves(entry):
    if isinstance(entry, syntax.Join):
        return [*_leaves(entry.left), entry.right]
    return [entry]


def _expressions(select):
    found = [item.expr for item in select.items if isinstance(item, syntax.SelectItem)]
    return [*found, *([select.having] if select.having is not None else [])]


def _grows(expr):
    if isinstance(expr, syntax.Call) and (expr.function in aggregates.GROWING or expr.distinct):
        return True
    return any(_grows(child) for child in children(expr))


def _places(select, scope, group):
    """The grouping columns in their order; None where the query does not aggregate."""
    if group is None:
        return None
    return [scope.find(c.qualifier.text if c.qualifier else None, c.name.text) for c in select.group_by]

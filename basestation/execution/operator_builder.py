"""Build: a plan becomes operators: streams, windows over them, blocks; in the order in which they take their steps."""

from collections import Counter

from basestation.algebra import converters, table, window
from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression_signature import signature
from basestation.algebra.factors import extract_ranges
from basestation.algebra.node import StreamNode, rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.vector import Vector
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.ingest.history import HistoryTable
from basestation.execution.joins.join_detection import find_join, make_join
from basestation.execution.joins.join_inputs import JoinStore, store_signature
from basestation.execution.output.epoch_marks import EpochReporter
from basestation.execution.output.output_group import OutputGroup
from basestation.execution.output.outputs import StreamOutput, WindowOutput
from basestation.execution.output.shared_filter import SharedFilterOutput
from basestation.execution.output.window_views import ViewSplit, make_view, split_view
from basestation.execution.query_block import QueryBlock
from basestation.execution.relational.subqueries import Subqueries, find_subqueries
from basestation.execution.relational.table_operators import TABLE_NODES
from basestation.execution.slices.partial_slices import MergedStream, PartialSlices
from basestation.execution.slices.slice_windows import SharedSlices, SliceWindows
from basestation.execution.streams.converters import ConverterStream
from basestation.execution.streams.extent_stream import ExtentStream
from basestation.execution.streams.filter_stream import FilterStream, SharedFilterStream
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.streams.union import UnionStream
from basestation.execution.windowing.for_loops import ForLoop, ForLoops, LoopInput
from basestation.execution.windowing.loop_windows import LoopRowWindows, LoopTimeWindows
from basestation.execution.windowing.stream_windows import RowWindows, TimeWindows
from basestation.execution.windowing.table_windows import OnceWindow, ScanWindows
from basestation.execution.windowing.window_store import TickOrderedStore
from basestation.progress.query_scope import QueryScope
from gateway.errors import MoteloomError

_INSIDE = WindowSelect | WindowProject | WindowAggregation | WindowCrossProduct | WindowJoin | TABLE_NODES


class UnsupportedPlanError(MoteloomError):
    """The plan is valid, and this version cannot run it. `what` names the part that is missing."""

    def __init__(self, what):
        super().__init__(f"{what} cannot be executed yet")
        self.what = what


class StartBeforeRecordError(MoteloomError):
    """A query is to begin before what is on record. `first` is the first tick that it could begin at."""

    def __init__(self, since, first):
        super().__init__(f"tick {since} is before all that is on record")
        self.first = first


def start_tick(options, now):
    """The tick that SINCE names (10.7), for a query asked in clock tick `now`; None without it."""
    return options.since if options.since_ago is None else now - options.since_ago


def last_tick(options, now):
    """The tick with which a query ends that is asked in clock tick `now` (FOR, 11); None where it does not."""
    start = start_tick(options, now)
    return None if options.lasting is None else (now if start is None else start) + options.lasting


class RunningQuery:
    """One query that runs: its output, and the operators that it stands on."""

    # There may be many.
    __slots__ = (
        "_alike",
        "_graph",
        "_member",
        "_signatures",
        "blocks",
        "folds",
        "key",
        "number",
        "output_group",
        "sensed",
    )

    def __init__(self, number, plan, root, graph, alike, intakes, tables, now, first, reports_from):
        """`plan` is as it was bound, `root` its tree as it was rewritten; `first` is the first tick on record.

        By extent, reports that readings were filtered say something about the query from `find_report_starts` on.
        """
        missing = find_unsupported(plan)
        if missing:
            raise UnsupportedPlanError(missing)
        self.number = number
        early = plan.options.deliver_within is not None  # then a window that was answered may be none (11)
        apart = ViewSplit(root, root.columns) if early else split_view(root)
        taken = alike.take(apart.windows, wide=apart.open)
        shown = make_view(apart, taken)  # which may bring aggregates of its own into what is taken
        self.key = key = _Building(plan, taken, graph, intakes, tables, now, first, reports_from).output(apart, shown)
        self._graph, self._alike, self._signatures = graph, alike, tuple(taken.signatures)
        below = graph.below(key)
        self._member = below[-1]
        self._member.enter(number)
        output = self._member.output
        if output.output_group is None:
            within = plan.options.deliver_within
            output.output_group = OutputGroup(output, below, within, within is not None or may_cover_ahead(plan.root))
        self.output_group = output.output_group
        self.blocks = tuple(each for block in below if isinstance(block, QueryBlock) for each in block.all)
        acquired = {node.extent.name for node in walk(plan.root) if isinstance(node, StreamAcquire)}
        self.sensed = tuple(intakes[name] for name in sorted(acquired))
        self.folds = tuple(node.number for node in walk(root) if isinstance(node, StreamMerged))

    def stop(self):
        """Use nothing any more."""
        self._member.leave(self.number)
        self._graph.release([self.key])
        self._alike.release(self._signatures)

    @property
    def joins(self):
        """The joins of the query, those of subqueries before those around them."""
        return [block.join for block in self.blocks if block.join is not None]

    def join_plans(self):
        """The plan of each of the joins."""
        return [join.plan for join in self.joins]


class _Building:
    """How a plan becomes operators: those that another query has made already are used, others are made."""

    def __init__(self, plan, taken, graph, intakes, tables, now, first, reports_from):
        self._taken, self._graph, self._intakes, self._tables = taken, graph, intakes, tables
        self._since, self._reports_from = start_tick(plan.options, now), reports_from
        self._start, self._first = now if self._since is None else self._since, first
        self._within = plan.options.deliver_within
        self._limit = last_tick(plan.options, now)
        self._era = now, self._since, self._limit, self._within  # what begins with a query is shared within one
        self._opened = None  # the node of a stream of which it is not known yet what of it somebody wants
        self._named = {c.id for node in walk(taken.root) for e in node.expressions for c in ex.columns_of(e)}
        excludes = find_site_exclusions(plan.root, intakes)
        self._excludes = {new.id: excludes[old.id] for old, new in taken.columns.items() if old.id in excludes}
        streams = [node for node in walk(plan.root) if isinstance(node, StreamAcquire | StreamReceive)]
        self._reads = Counter(node.extent.name for node in streams)

    def output(self, apart, shown):
        """The key of what a query has of an output: its own rows of windows, or of a stream."""
        root = self._taken.root
        if isinstance(root, StreamNode):
            key = "output", self._taken.number(root), self._era
            self._graph.get(key, lambda: self._member(root) or self._alone(root))
            return key
        self._opened = root.child if apart.open else None
        # Which sites conditions leave out is told in the coverage.
        masks = tuple(mask.tobytes() for masks in self._excludes.values() for mask in masks)
        windows = "windows", self._taken.number(root), apart.open, masks, self._era
        key = "shown", windows, shown.signature
        self._graph.get(key, lambda: self._graph.get(windows, lambda: self._windows(apart.open, masks)).join(shown))
        return key

    def _windows(self, *how):
        """What is said of windows. Where their stream is open, it knows who wants what of it."""
        block = self._block(self._taken.root, self._limit, *how)
        return WindowOutput(block, block.inputs[0].stream.predicates if self._opened is not None else None)

    def _alone(self, root):
        stream = self._stream(root, self._limit)
        keys = max((intake.keys for intake in self._intakes.values()), default=0)
        return StreamOutput(stream, root.columns, self._limit, self._start, self._since, keys)

    def _member(self, root):
        """A plain query that begins now, whose conditions are ranges of what an extent gives, is one of many; else None."""
        if self._since is not None or self._within is not None:
            return None
        outputs = tuple((column, ex.Attr(column)) for column in root.columns)
        if isinstance(root, StreamProject):
            outputs, root = root.outputs, root.child
        if not isinstance(root, StreamSelect) or not isinstance(root.child, StreamAcquire | StreamReceive):
            return None
        ranges, others = extract_ranges(root.predicate)
        if not ranges or self._names_index(root.child):
            return None
        key, make = self._extent(root.child, (), -NEVER)
        standing = self._graph.get(("standing", key), lambda: SharedFilterOutput(self._graph.get(key, make)))
        return standing.join(ranges, others, outputs, self._limit, self._epochs_told(root.child, standing))

    def _epochs_told(self, node, standing):
        """(signature, EpochsTold) of what one of many is told of epochs: it may exclude other sites than the others."""
        if not isinstance(node, StreamAcquire):
            return None
        key, seen = self._extent(node, self._excludes.get(node.tags[0].id, ()))
        told = EpochReporter(standing.stream, self._start, self._limit, seen())
        return (*key, self._start, self._limit), told

    # --- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, node, limit=None):
        key, make = self._stream_of(node, self._taken.number(node), limit)
        return self._graph.get(key, make)

    def _stream_of(self, node, number, limit):
        """(key, how it is made) of a stream."""
        match node:
            case StreamAcquire() | StreamReceive() if node is self._opened:
                below, make = self._extent(node, self._excludes.get(node.tags[0].id, ()))
                key = "wanted", number, below, self._taken.number(self._taken.root), self._era
                return key, lambda: SharedFilterStream(self._graph.get(below, make), PredicateSet())
            case StreamAcquire() | StreamReceive():
                return self._extent(node, self._excludes.get(node.tags[0].id, ()))
            case StreamMerged(number=fold):
                acquired = [
                    (n, self._excludes.get(n.tags[0].id, ())) for n in walk(node) if isinstance(n, StreamAcquire)
                ]
                masks = tuple(mask.tobytes() for _, excludes in acquired for mask in excludes)
                return ("merged", number, masks), lambda: MergedStream(self._intakes[fold], acquired)
            case StreamProject(outputs=outputs, child=StreamSelect(predicate=predicate, child=child)):
                return self._filter(number, child, predicate, outputs, node.tags, limit)
            case StreamProject(outputs=outputs, child=child):
                return self._filter(number, child, None, outputs, node.tags, limit)
            case StreamSelect(predicate=predicate, child=child):
                return self._filter(number, child, predicate, None, node.tags, limit)
            case StreamUnion(parts=parts):
                names_index = self._names_index(node)
                key = "union", number, names_index, limit, self._era
                parts_of = lambda: [self._stream(part, limit) for part in parts]  # noqa: E731 - made when it is
                return key, lambda: UnionStream(node, parts_of(), names_index, self._start)
            case converters.Converter(child=child):
                names_index, kind = self._names_index(node), type(node).__name__
                key = "converter", number, names_index, limit, self._era
                return key, lambda: ConverterStream(kind, self._block(child, limit), node.tags, names_index)
        raise TypeError(f"no stream operator: {type(node).__name__}")

    def _extent(self, node, masks, reports_from=None):
        """The same of an extent, of which sites under masks are excluded; reports count from what is said of the query on."""
        if reports_from is None:
            reports_from = self._reports_from.get(node.extent.name, -NEVER)
        scope = QueryScope(frozenset(getattr(node, "reads", ())), reports_from)
        names_index, number = self._names_index(node), self._taken.number(node)
        alone, intake = self._reads[node.extent.name] == 1, self._intakes[node.extent.name]
        key = "extent", number, names_index, alone, tuple(mask.tobytes() for mask in masks), scope
        return key, lambda: ExtentStream(node, intake, names_index, masks, alone, scope)

    def _names_index(self, node):
        return node.tags[1].id in self._named

    def _filter(self, number, child, predicate, outputs, tags, limit):
        below, _ = self._stream_of(child, self._taken.number(child), None)
        key = "filter", number, limit, below
        return key, lambda: FilterStream(self._stream(child), predicate, outputs, tags, limit)

    # --- windows -----------------------------------------------------------------------------------------------------

    def _block(self, node, limit, *of):
        key = "block", self._taken.number(node), limit, self._era, *of
        return self._graph.get(key, lambda: self._made(node, limit, bool(of)))

    def _made(self, node, limit, shown=False):
        """A block. Those of subqueries outside FROM, which are over tables, are its own."""
        leaves = tuple(_leaves(node))
        joined = find_join(node, leaves)
        steps = dict(joined[1]) if joined else {}
        level = find_level(node)
        inputs = [self._begun(self._input(leaf, steps.get(place), level)) for place, leaf in enumerate(leaves)]
        once = all(isinstance(leaf, table.Once) for leaf in leaves)  # others have no subqueries outside FROM
        options = [(query.plan, self._made(query.plan, None)) for query in find_subqueries(node)] if once else []
        subqueries = Subqueries(options) if options else None
        join = make_join(node, joined, inputs, leaves, shown) if joined and subqueries is None else None
        within = None if once else self._within  # a one-off query takes no clause
        loops = self._loops(leaves, inputs)
        return QueryBlock(node, inputs, leaves, join, self._start - 1, limit, loops, subqueries, within)

    def _loops(self, leaves, inputs):
        """The for-loops of a SELECT, in the order of their first stream in FROM (14); None where it has none."""
        loops, streams = {}, {}
        for place, (leaf, each) in enumerate(zip(leaves, inputs, strict=True)):
            if isinstance(leaf, window.LoopWindow):
                loops[leaf.loop.t.id] = leaf.loop
                streams.setdefault(leaf.loop.t.id, []).append(LoopInput(place, each, leaf.left, leaf.right))
        made = [ForLoop(loop, streams[t], self._start, self._first) for t, loop in loops.items()]
        return ForLoops(made, len(inputs)) if made else None

    def _begun(self, each):
        """Rows are counted from what is here already, older than the query or not (1.1)."""
        if isinstance(each, RowWindows):
            each.load_rows(each.stream.all(), self._since)
        return each

    def _input(self, leaf, steps, level):
        """`steps` are what is between the leaf and the join that it is in, None where it is in none."""
        match leaf:
            case window.TimeWindow(begin=begin, end=end, slide=slide, child=child):
                store = self._store(leaf, steps, level)
                columns = () if child is self._opened else child.columns
                return TimeWindows(self._stream(child), columns, begin, end, slide, self._start, store)
            case window.LandmarkWindow(slide=slide, rows=False, child=child):
                store = self._store(leaf, steps, level)
                return TimeWindows(self._stream(child), child.columns, None, 0, slide, self._start, store)
            case SliceAggregation(child=child):
                return SliceWindows(self._stream(child), leaf, self._start, self._slices(leaf, level))
            case window.RowWindow(begin=begin, end=end, slide=slide, child=child):
                return RowWindows(self._stream(child), child.columns, begin, end, slide)
            case window.LandmarkWindow(slide=slide, child=child):
                return RowWindows(self._stream(child), child.columns, None, 0, slide)
            case window.LoopWindow(loop=loop, child=child) if loop.rows:
                return LoopRowWindows(self._stream(child), child.columns, self._start)
            case window.LoopWindow(child=child):
                return LoopTimeWindows(self._stream(child), child.columns, self._store(leaf, steps, level))
            case table.Scan(interval=interval, attributes=attributes):
                return ScanWindows(self._table(leaf), interval, attributes, self._start)
            case table.Once(attributes=attributes):
                return OnceWindow(self._table(leaf), attributes, self._start)
        raise TypeError(f"no window operator: {type(leaf).__name__}")

    def _store(self, leaf, steps, level):
        """The tuples that windows of time over a stream may reach, for blocks of one level: all look, then it changes."""
        below, _ = self._stream_of(leaf.child, self._taken.number(leaf.child), None)
        if steps is None:
            return self._graph.get(("inside", level, below), lambda: TickOrderedStore(self._stream(leaf.child), level))
        # Streams that are alike have other columns where one query joins them; they are held once all the same.
        begun = self._era if is_per_query(leaf.child) else None
        key = "held", level, store_signature(leaf, steps), begun
        return self._graph.get(key, lambda: JoinStore(self._stream(leaf.child), level, leaf, steps))

    def _slices(self, leaf, level):
        below, _ = self._stream_of(leaf.child, self._taken.number(leaf.child), None)
        keys = tuple(signature(key) for _, key in leaf.groups)
        cut = keys, leaf.grouped, leaf.begin, leaf.end, leaf.slide
        if isinstance(leaf.child, StreamMerged):
            key = "arrived", level, self._taken.number(leaf), below, self._era if leaf.begin is None else None
            return self._graph.get(key, lambda: PartialSlices(self._stream(leaf.child), level, leaf, self._start))
        if leaf.begin is None:  # what is settled cannot be folded again for others
            cut = *cut, self._era, self._taken.number(leaf)
        key = "slices", level, cut, below
        return self._graph.get(key, lambda: SharedSlices(self._stream(leaf.child), level, leaf, self._start))

    def _table(self, leaf):
        return HistoryTable(self._intakes[leaf.extent.name]) if leaf.history else self._tables[leaf.extent.name]


def find_level(node):
    """How many converters lie below an operator, one above another."""
    levels = {}

    def note(each):
        below = max((levels[id(child)] for child in each.children), default=0)
        levels[id(each)] = below + isinstance(each, converters.Converter)
        return each

    rebuild(node, note)
    return levels[id(node)]


def is_per_query(node):
    """Whether a stream is another for every query that begins at another time."""
    return any(isinstance(each, converters.Converter | StreamUnion) for each in walk(node))


def _leaves(node):
    """The nodes below which a block's inputs begin, from left to right."""
    if isinstance(node, _INSIDE):
        return [leaf for child in node.children for leaf in _leaves(child)]
    return [node]


def find_unsupported(plan):
    """The first part of a plan that cannot be executed, or None."""
    options = plan.options
    if options.lifetime is not None:
        return "LIFETIME"
    for node in walk(plan.root):
        match node:
            case StreamAcquire(extent=extent) | table.Scan(extent=extent) | table.Once(extent=extent) if (
                extent.sites is None
            ):
                return "`at sites all` without a deployment"
    return None


def find_history_extents(root):
    """The extents whose history a plan reads, in subqueries too."""
    found = {n.extent for n in walk(root) if isinstance(n, table.Scan | table.Once) and n.history}
    return found.union(*(find_history_extents(query.plan) for query in find_subqueries(root)))


def may_cover_ahead(root):
    """Whether a window may cover readings after its tick: rows of a union, some of them stamped ahead, beside readings."""
    rows = any(
        isinstance(node, window.RowWindow)
        or (isinstance(node, window.LandmarkWindow) and node.rows)
        or (isinstance(node, window.LoopWindow) and node.loop.rows)
        for node in walk(root)
    )
    unions = [{type(below) for below in walk(node)} for node in walk(root) if isinstance(node, StreamUnion)]
    return rows and any({StreamAcquire, StreamReceive} <= below for below in unions)


# --- coverage --------------------------------------------------------------------------------------------------------


def find_site_exclusions(root, intakes):
    """For each StreamAcquire, by its tick column: masks of the sites that conjuncts over `site` alone leave out (12.3)."""
    found = {}
    _excludes(root, (), found, intakes)
    return found


def _excludes(node, terms, found, intakes):
    """`terms` are the conjuncts of WHERE above the node, over its columns; they follow plain projections only (14)."""
    match node:
        case StreamAcquire(extent=extent, attributes=attributes):
            site = next((c for c in attributes if extent.site_attribute and c.name == "site"), None)
            sites = intakes[extent.name].epochs.sites
            masks = []
            for term in terms:
                if site is not None and ex.columns_of(term) == {site}:
                    masks.append(~Evaluation({site.id: Vector(sites)}, len(sites)).of(term).is_true)
            found[node.tags[0].id] = tuple(masks)
            return
        case StreamSelect(predicate=predicate) | WindowSelect(predicate=predicate):
            terms = (*terms, *ex.conjuncts(predicate))
        case StreamProject(outputs=outputs) | WindowProject(outputs=outputs):
            plain = {column: e for column, e in outputs if isinstance(e, ex.Attr)}
            terms = tuple(ex.substitute(t, plain) for t in terms if ex.columns_of(t) <= set(plain))
        case WindowAggregation() | converters.Converter() | StreamUnion():
            terms = ()
    for child in node.children:
        _excludes(child, terms, found, intakes)

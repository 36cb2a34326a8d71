"""Operator builder: makes operators of a plan: streams, windows over them, blocks and outputs.

Each operator has a key that says all that it depends on. An operator that another query has built under the same key is used
again. Those that differ between queries that begin at different times have the `era` of the query in their keys. Windows of time
lie on one grid for all queries, so blocks of them do not: each query remembers which of their windows are its own.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from basestation.algebra import converters, table, window
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.factors import extract_ranges
from basestation.algebra.loop_grid import find_loop_grid
from basestation.algebra.node import PlanNode, StreamNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation, TickRange, find_loop_ends
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.history import HistoryTable
from basestation.execution.ingest.intake import Intake
from basestation.execution.ingest.partial_intake import PartialIntake
from basestation.execution.ingest.stored_table import StoredTable
from basestation.execution.interfaces import DeliveryIntake, ScannedTable, WindowSource
from basestation.execution.joins.join_detection import find_join, make_join
from basestation.execution.joins.join_inputs import JoinStore, Steps, store_signature
from basestation.execution.output.converter_output import ConverterOutput
from basestation.execution.output.epoch_marks import EpochReporter
from basestation.execution.output.shared_filter import SharedFilterOutput, Subscriber
from basestation.execution.output.shared_windows import ViewMember
from basestation.execution.output.stream_output import StreamOutput
from basestation.execution.output.window_output import WindowOutput
from basestation.execution.output.window_views import ViewSplit, WindowView
from basestation.execution.plan_checks import (
    SiteMasks,
    begins_with_query,
    depends_on_order,
    find_leaves,
    find_level,
    find_site_exclusions,
    is_per_query,
    last_tick,
    start_tick,
)
from basestation.execution.plan_interning import InternedPlan
from basestation.execution.query_block import QueryBlock
from basestation.execution.relational.subqueries import Subqueries, find_subqueries
from basestation.execution.slices.filtered_slices import FilteredSlices, FilteredSliceWindows, group_by_filter
from basestation.execution.slices.landmark_slices import LandmarkSlices
from basestation.execution.slices.loop_slices import LoopSliceWindows, cut_slices
from basestation.execution.slices.partial_slices import MergedStream, PartialSlices
from basestation.execution.slices.ranged_slices import RangedSlices, RangedSliceWindows
from basestation.execution.slices.slice_windows import SharedSlices, SliceWindows
from basestation.execution.streams.converters import ConverterStream
from basestation.execution.streams.extent_stream import ExtentStream
from basestation.execution.streams.filter_stream import FilterStream, Outputs, SharedFilterStream
from basestation.execution.streams.lineage_stream import LineageStream
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.streams.stream import Stream
from basestation.execution.streams.union import UnionStream
from basestation.execution.windowing.for_loops import ForLoop, ForLoops, LoopInput
from basestation.execution.windowing.loop_windows import LoopRowWindows, LoopTimeWindows
from basestation.execution.windowing.row_windows import RowWindows
from basestation.execution.windowing.stream_windows import StreamWindows
from basestation.execution.windowing.table_windows import OnceWindow, ScanWindows
from basestation.execution.windowing.time_windows import TimeWindows
from basestation.execution.windowing.window_store import TickOrderedStore, WindowStore
from basestation.planner.plan import Plan
from basestation.progress.query_scope import QueryScope

Key = tuple[Hashable, ...]
ExtentNode = StreamAcquire | StreamReceive
StreamT = TypeVar("StreamT", bound=Stream)
Made = tuple[Key, Callable[[], StreamT]]
"""(the key of a stream, how it is made)."""


class OperatorBuilder:
    """Builds the operators of one plan."""

    def __init__(
        self,
        plan: Plan,
        shared: InternedPlan,
        graph: OperatorGraph,
        intakes: Mapping[str | int, DeliveryIntake[Any]],
        tables: Mapping[str, StoredTable],
        now: int,
        first: int,
        reports_from: Mapping[str, int],
        live: bool,
    ) -> None:
        """`shared` is the tree of the plan over shared columns; the other arguments are as in RunningQuery."""
        self._shared, self._graph, self._intakes, self._tables = shared, graph, intakes, tables
        self._since, self._reports_from = start_tick(plan.options, now), reports_from
        self._start, self._first = now if self._since is None else self._since, first
        self._live = live
        self._within = plan.options.deliver_within
        self._limit = last_tick(plan.options, now)
        self._era: Key = (now, self._since, self._limit, self._within)
        self._opened: PlanNode | None = None  # the stream whose readers' predicates are collected as they come and go
        self._filtered = False  # whether the aggregates of the query are of tuples under a filter
        self._range: TickRange | None = None  # that of the windows of slices of the query, if it may share them
        self._ranged = False  # whether the query shares windows of slices with other ranges
        self._filtered_leaf: PlanNode | None = None  # the input of a join that has only tuples that views read
        self._named = {c.id for node in walk(shared.root) for e in node.expressions for c in ex.columns_of(e)}
        by_extent = {intake.extent.name: intake for intake in intakes.values() if isinstance(intake, Intake)}
        excludes = find_site_exclusions(plan.root, by_extent)
        self._excludes = {new.id: excludes[old.id] for old, new in shared.columns.items() if old.id in excludes}
        streams = [node for node in walk(plan.root) if isinstance(node, ExtentNode)]
        self._reads = Counter(node.extent.name for node in streams)
        early = self._within is not None  # rows that are answered early may be numbered otherwise later (11)
        windows = shared.root.child if isinstance(shared.root, converters.Converter) else shared.root
        is_ordered = depends_on_order(plan.root)
        self._shares = self._since is None and not begins_with_query(windows, self._named, early, is_ordered)
        """Whether queries that begin at other ticks have the same windows."""
        if self._shares:
            scopes = tuple((node.extent.name, reports_from.get(node.extent.name)) for node in streams)
            self._block_era: Key = (self._within, scopes)
        else:
            self._block_era = self._era

    def enter(self, member: StreamOutput | ConverterOutput | Subscriber | ViewMember, number: int) -> None:
        """Add the query, by its number, to what it has of its output."""
        if isinstance(member, ConverterOutput):
            member.enter(number, self._start, self._limit)
        elif isinstance(member, ViewMember):
            member.enter(number, self._start if self._shares else None, self._limit)
        else:
            member.enter(number)

    def output(self, split: ViewSplit, view: WindowView) -> Key:
        """Build an output, and return the key of what the query has of it: its view of windows, or a stream."""
        root = self._shared.root
        key: Key
        if isinstance(root, StreamNode):
            key = "output", self._shared.number(root), self._block_era
            self._graph.get(key, lambda: self._subscribe(root) or self._stream_output(root))
            return key
        [self._opened] = root.children if split.open else [None]
        self._filtered = split.filter is not None
        if split.filtered_input is not None:
            product = root.child if isinstance(root, WindowSelect) else root
            self._filtered_leaf = product.children[split.filtered_input]
        # Coverage says which sites conditions leave out.
        masks = tuple(mask.tobytes() for masks in self._excludes.values() for mask in masks)
        how: Key = split.open, split.filtered_input, self._filtered, masks
        windows: Key = "windows", self._shared.number(root), how, self._block_era
        if view.range is not None:
            self._range, self._ranged = view.range, self._joins_ranges(windows, view.range)
            how = *how, self._ranged
            windows = *windows, self._ranged
        key = "shown", windows, view.signature
        self._graph.get(key, lambda: self._graph.get(windows, lambda: self._window_output(*how)).join(view))
        return key

    def _joins_ranges(self, windows: Key, range_: TickRange) -> bool:
        """Whether the windows of the query are those of queries with other ranges.

        The first range has windows of its own: these cost less than those of several ranges do.
        """
        alone = self._graph.find((*windows, False))
        if alone is None:
            return self._graph.find((*windows, True)) is not None
        [source] = alone.block.inputs
        return range_ != (source.begin, source.end)

    def _window_output(self, *how: Hashable) -> WindowOutput:
        """An output of windows. If their stream is open, it filters by the predicates of all views."""
        key = "block", self._shared.number(self._shared.root), self._block_era, how
        block = self._graph.get(key, lambda: self._make_block(self._shared.root, self._limit, shown=True))
        source = block.inputs[0]
        stream = source.stream if isinstance(source, StreamWindows) else None
        return WindowOutput(block, stream.predicates if isinstance(stream, SharedFilterStream) else None)

    def _stream_output(self, root: StreamNode) -> StreamOutput | ConverterOutput:
        if self._shares and isinstance(root, converters.Converter):
            return self._converter_output(root)
        stream = self._stream(root, self._limit)
        return StreamOutput(stream, root.columns, self._limit, self._start, self._since, self._correction_ticks)

    def _converter_output(self, root: converters.Converter) -> ConverterOutput:
        """An output of a converter for queries that may begin and end at different ticks."""
        key: Key = "shared converter", self._shared.number(root), self._block_era
        stream = self._graph.get(key, lambda: self._converter(root, self._limit, False, self._block_era))
        block = self._block(root.child, self._limit, self._block_era)
        return ConverterOutput(stream, block, root.columns, root.tags, self._correction_ticks)

    @property
    def _correction_ticks(self) -> int:
        """For how many ticks a reading may still come that changes the report of its epoch."""
        return max((i.keys for i in self._intakes.values() if isinstance(i, Intake | PartialIntake)), default=0)

    def _subscribe(self, root: StreamNode) -> Subscriber | None:
        """A share of a SharedFilterOutput, for a plain query that begins now and compares attributes with ranges."""
        if self._since is not None or self._within is not None:
            return None
        outputs: Outputs = tuple((column, ex.Attr(column)) for column in root.columns)
        if isinstance(root, StreamProject):
            outputs, root = root.outputs, root.child
        if not isinstance(root, StreamSelect):
            return None
        extent = root.child
        if not isinstance(extent, ExtentNode):
            return None
        ranges, others = extract_ranges(root.predicate)
        if not ranges or self._names_index(extent):
            return None
        key, make = self._extent(extent, (), -NEVER)
        shared = self._graph.get(("shared filter", key), lambda: SharedFilterOutput(self._graph.get(key, make)))
        return shared.join(ranges, others, outputs, self._limit, self._epoch_reporter(extent, shared))

    def _epoch_reporter(self, node: ExtentNode, shared: SharedFilterOutput) -> tuple[Key, EpochReporter] | None:
        """(signature, reporter) of the epochs of a sensed extent as the query sees them: it may exclude other sites."""
        if not isinstance(node, StreamAcquire):
            return None
        key, seen = self._extent(node, self._masks(node))
        reporter = EpochReporter(shared.stream, self._start, self._limit, seen())
        return (*key, self._start, self._limit), reporter

    # --- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, node: PlanNode, limit: int | None = None) -> Stream:
        key, make = self._describe_stream(node, self._shared.number(node), limit)
        return self._graph.get(key, make)

    def _stream_key(self, node: PlanNode) -> Key:
        return self._describe_stream(node, self._shared.number(node), None)[0]

    def _describe_stream(self, node: PlanNode, number: int, limit: int | None) -> Made[Stream]:
        """(key, how it is made) of a stream."""
        match node:
            case StreamAcquire() | StreamReceive() if node is self._opened:
                below, make = self._extent(node, self._masks(node))
                key = "open", number, below, self._shared.number(self._shared.root), self._block_era
                return key, lambda: SharedFilterStream(self._graph.get(below, make), PredicateSet())
            case StreamAcquire() | StreamReceive():
                return self._extent(node, self._masks(node))
            case StreamMerged(number=fold):
                acquired = [(each, self._masks(each)) for each in walk(node) if isinstance(each, StreamAcquire)]
                masks = tuple(mask.tobytes() for _, excludes in acquired for mask in excludes)
                intake = self._intakes[fold]
                if not isinstance(intake, PartialIntake):
                    raise TypeError(f"expected the intake of a fold, found {type(intake).__name__}")
                return ("merged", number, masks), lambda: MergedStream(intake, acquired)
            case StreamProject(outputs=outputs, child=StreamSelect(predicate=predicate, child=child)):
                return self._filter(node, number, child, predicate, outputs, limit)
            case StreamProject(outputs=outputs, child=child):
                return self._filter(node, number, child, None, outputs, limit)
            case StreamSelect(predicate=predicate, child=child):
                return self._filter(node, number, child, predicate, None, limit)
            case StreamUnion(parts=parts):
                names_index = self._names_index(node)
                union: Key = "union", number, names_index, limit, () if self._shares and not names_index else self._era
                return union, lambda: UnionStream(
                    node, [self._stream(part, limit) for part in parts], names_index, self._start
                )
            case converters.Converter():
                names_index, era = self._names_index(node), (limit, self._era)
                converter: Key = "converter", number, names_index, era
                return converter, lambda: self._converter(node, limit, names_index, era)
        raise TypeError(f"expected a stream operator, found {type(node).__name__}")

    def _converter(self, node: converters.Converter, limit: int | None, names_index: bool, era: Key) -> ConverterStream:
        return ConverterStream(type(node).__name__, self._block(node.child, limit, era), node.tags, names_index)

    def _extent(self, node: ExtentNode, masks: SiteMasks, reports_from: int | None = None) -> Made[ExtentStream]:
        """(key, how it is made) of the stream of an extent, of which the sites under masks are excluded."""
        if reports_from is None:
            reports_from = self._reports_from.get(node.extent.name, -NEVER)
        reads = node.reads if isinstance(node, StreamAcquire) else ()
        scope = QueryScope(frozenset(reads), reports_from)
        names_index, number = self._names_index(node), self._shared.number(node)
        alone, intake = self._reads[node.extent.name] == 1, self._intakes[node.extent.name]
        if not isinstance(intake, Intake):
            raise TypeError(f"expected the intake of an extent, found that of a fold over {node.extent.name}")
        key = "extent", number, names_index, alone, tuple(mask.tobytes() for mask in masks), scope
        return key, lambda: ExtentStream(node, intake, names_index, masks, alone, scope)

    def _masks(self, node: ExtentNode) -> SiteMasks:
        """Masks of the sites that conditions of the query leave out."""
        return self._excludes.get(node.tags[0].id, ())

    def _names_index(self, node: StreamNode) -> bool:
        """Whether the query reads the index of a stream."""
        return node.tags[1].id in self._named

    def _filter(
        self,
        node: StreamNode,
        number: int,
        child: PlanNode,
        predicate: Expression | None,
        outputs: Outputs | None,
        limit: int | None,
    ) -> Made[Stream]:
        key = "filter", number, limit, self._stream_key(child)
        return key, lambda: FilterStream(self._stream(child), predicate, outputs, node.tags, limit)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _block(self, node: PlanNode, limit: int | None, era: Key) -> QueryBlock:
        key = "block", self._shared.number(node), era
        return self._graph.get(key, lambda: self._make_block(node, limit))

    def _make_block(self, node: PlanNode, limit: int | None, shown: bool = False) -> QueryBlock:
        """A block. The blocks of subqueries outside FROM, which are over tables, belong to it."""
        leaves = tuple(find_leaves(node))
        detected = find_join(node, leaves)
        steps: dict[int, Steps] = dict(detected[1]) if detected else {}
        level = find_level(node)
        inputs = [self._load_rows(self._input(leaf, steps.get(place), level)) for place, leaf in enumerate(leaves)]
        once = all(isinstance(leaf, table.Once) for leaf in leaves)  # other blocks have no subqueries outside FROM
        blocks = [(query.plan, self._make_block(query.plan, None)) for query in find_subqueries(node)] if once else []
        subqueries = Subqueries([*blocks]) if blocks else None
        join = make_join(node, detected, inputs, leaves, shown) if detected and subqueries is None else None
        within = None if once else self._within  # a one-off query has no such clause
        loops = self._loops(leaves, inputs)
        return QueryBlock(node, inputs, leaves, join, self._start - 1, limit, loops, subqueries, within)

    def _loops(self, leaves: Sequence[PlanNode], inputs: Sequence[WindowSource]) -> ForLoops | None:
        """The for-loops of a SELECT, in the order of their first stream in FROM (14); None where it has none."""
        loops: dict[int, window.LoopRange] = {}
        streams: dict[int, list[LoopInput]] = {}
        for place, (leaf, source) in enumerate(zip(leaves, inputs, strict=True)):
            ends = find_loop_ends(leaf)
            if ends is not None and isinstance(source, LoopTimeWindows | LoopRowWindows | LoopSliceWindows):
                loops[ends.loop.t.id] = ends.loop
                streams.setdefault(ends.loop.t.id, []).append(LoopInput(place, source, ends.left, ends.right))
        # Rows that are answered before they are complete (11) may be combined otherwise later: all combinations are made again.
        shifts = len(loops) > 1 and self._within is not None and any(isinstance(i, LoopRowWindows) for i in inputs)
        resumes = self._live and not shifts
        made = [ForLoop(loop, streams[t], self._start, self._first, resumes) for t, loop in loops.items()]
        return ForLoops(made, len(inputs)) if made else None

    def _load_rows(self, source: WindowSource) -> WindowSource:
        """Number the rows that are here already, older than the query or not (1.1)."""
        if isinstance(source, RowWindows):
            source.load_rows(source.stream.all(), self._since)
        return source

    # --- windows -----------------------------------------------------------------------------------------------------

    def _input(self, leaf: PlanNode, steps: Steps | None, level: int) -> WindowSource:
        """The windows of a leaf. `steps` are between the leaf and the join that it is in; None if it is in none."""
        match leaf:
            case window.TimeWindow(begin=begin, end=end, slide=slide, child=child):
                store = self._store(leaf, steps, level)
                columns: tuple[Column, ...] = () if child is self._opened else child.columns
                return TimeWindows(self._stream(child), columns, begin, end, slide, self._start, store)
            case window.LandmarkWindow(slide=slide, rows=False, child=child):
                store = self._store(leaf, steps, level)
                return TimeWindows(self._stream(child), child.columns, None, 0, slide, self._start, store)
            case SliceAggregation(child=child) if self._range is not None and leaf is self._shared.root:
                ranged = replace(leaf, begin=self._range.begin, end=self._range.end)
                if not self._ranged:
                    return SliceWindows(self._stream(child), ranged, self._start, self._slices(ranged, level))
                return RangedSliceWindows(
                    self._stream(child), ranged, self._start, self._ranged_slices(leaf, ranged, level)
                )
            case SliceAggregation(child=child) if self._filtered and leaf is self._shared.root:
                store = self._filtered_slices(leaf, level)
                return FilteredSliceWindows(store.lineage, group_by_filter(leaf), self._start, store)
            case SliceAggregation(loop=window.LoopEnds() as ends):
                return self._loop_slices(leaf, ends, level)
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
        raise TypeError(f"expected a window operator, found {type(leaf).__name__}")

    def _loop_slices(self, leaf: SliceAggregation, ends: window.LoopEnds, level: int) -> LoopSliceWindows:
        """The windows of a for-loop over slices, which queries that begin at other ticks cut elsewhere."""
        grid = find_loop_grid(ends)
        if grid is None:
            raise TypeError("expected a loop whose windows lie on a grid")
        stream = self._stream(leaf.child)
        cut, start = cut_slices(leaf, grid, self._start)
        key = "loop slices", level, self._shared.number(leaf), self._stream_key(leaf.child), self._era
        kind = SharedSlices if cut.begin is not None else LandmarkSlices
        store = self._graph.get(key, lambda: kind(stream, level, cut, start))
        return LoopSliceWindows(stream, cut, start, store)

    def _store(self, leaf: window.StreamWindow, steps: Steps | None, level: int) -> WindowStore:
        """The tuples that time windows over a stream may reach, for all blocks of one level."""
        stream = leaf.child
        if steps is None:
            key: Key = "tuples", level, self._stream_key(stream)
            return self._graph.get(key, lambda: TickOrderedStore(self._stream(stream), level))
        # Equal streams have other columns where one query joins them; their tuples are held once nevertheless.
        era = self._era if is_per_query(stream, self._named if self._shares else None) else None
        filtered = leaf is self._filtered_leaf
        key = "join tuples", level, store_signature(leaf, steps), era, filtered
        return self._graph.get(key, lambda: JoinStore(self._stream(stream), level, leaf, steps, filtered))

    def _slices(self, leaf: SliceAggregation, level: int) -> SharedSlices:
        stream, below = leaf.child, self._stream_key(leaf.child)
        keys = tuple(signature(key) for _, key in leaf.groups)
        cut: Key = keys, leaf.grouped, leaf.begin, leaf.end, leaf.slide
        if isinstance(stream, StreamMerged):
            era = self._era if leaf.begin is None else None
            key: Key = "partial slices", level, self._shared.number(leaf), below, era
            return self._graph.get(
                key, lambda: PartialSlices(cast(MergedStream, self._stream(stream)), level, leaf, self._start)
            )
        if leaf.begin is None:  # final slices of a landmark window were merged, so later queries cannot use them
            cut = *cut, self._era, self._shared.number(leaf)
        key, kind = ("slices", level, cut, below), SharedSlices if leaf.begin is not None else LandmarkSlices
        return self._graph.get(key, lambda: kind(self._stream(stream), level, leaf, self._start))

    def _ranged_slices(self, leaf: SliceAggregation, ranged: SliceAggregation, level: int) -> RangedSlices:
        """The slices of all ranges, of which `ranged` has the first."""
        key: Key = "ranged slices", level, self._shared.number(leaf), self._stream_key(leaf.child), self._block_era
        return self._graph.get(key, lambda: RangedSlices(self._stream(leaf.child), level, ranged, self._start))

    def _filtered_slices(self, leaf: SliceAggregation, level: int) -> FilteredSlices:
        keys = tuple(signature(key) for _, key in leaf.groups)
        cut: Key = keys, leaf.grouped, leaf.begin, leaf.end, leaf.slide
        key: Key = "filtered slices", level, cut, self._stream_key(leaf.child)

        def make() -> FilteredSlices:
            stream = self._graph.get(("lineage", key), lambda: LineageStream(self._stream(leaf.child)))
            return FilteredSlices(stream, level, leaf, self._start)

        return self._graph.get(key, make)

    def _table(self, leaf: table.Scan | table.Once) -> ScannedTable:
        if not leaf.history:
            return self._tables[leaf.extent.name]
        intake = self._intakes[leaf.extent.name]
        if not isinstance(intake, Intake):
            raise TypeError(f"expected the intake of an extent, found that of a fold over {leaf.extent.name}")
        return HistoryTable(intake)

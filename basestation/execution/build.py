"""Build: a plan becomes operators: streams, windows over them, blocks; in the order in which they take their steps."""

from collections import Counter

from basestation.algebra import converters, table, window
from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.node import StreamNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
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
from basestation.execution.asking import Subqueries, queries_of
from basestation.execution.block import Block
from basestation.execution.converting import ConverterStream
from basestation.execution.history import Archived
from basestation.execution.looping import Loop, LoopRows, Loops, LoopTimes, Named
from basestation.execution.oneoff import NODES
from basestation.execution.outputs import StreamOutput, WindowOutput
from basestation.execution.slicing import SliceWindows
from basestation.execution.streams import ExtentStream, FilterStream
from basestation.execution.union import UnionStream
from basestation.execution.windowing import OnceWindow, OverStream, RowWindows, ScanWindows, TimeWindows

_INSIDE = WindowSelect | WindowProject | WindowAggregation | WindowCrossProduct | WindowJoin | NODES


class NotYet(Exception):
    """The plan is valid, and this version cannot run it. `what` names the part that is missing."""

    def __init__(self, what):
        super().__init__(f"{what} cannot be executed yet")
        self.what = what


class TooEarly(Exception):
    """A query is to begin before what is on record. `first` is the first tick that it could begin at."""

    def __init__(self, since, first):
        super().__init__(f"tick {since} is before all that is on record")
        self.first = first


def begins(asked, now):
    """The tick that SINCE names (10.7), for a query asked in clock tick `now`; None without it."""
    return asked.since if asked.since_ago is None else now - asked.since_ago


class Query:
    """One query that runs: its streams in the order of their steps, and its output."""

    def __init__(self, number, plan, root, intakes, tables, now, first=0):
        """`plan` is as it was bound, `root` its tree as it was rewritten; `first` is the first tick on record."""
        missing = unsupported(plan)
        if missing:
            raise NotYet(missing)
        self._since = begins(plan.asked, now)
        start = now if self._since is None else self._since
        self.number, self._intakes, self._tables, self._start = number, intakes, tables, start
        self.within = plan.asked.deliver_within
        self.hasty = self.within is not None or covers_ahead(plan.root)
        self._limit = None if plan.asked.lasting is None else start + plan.asked.lasting
        self._named = {c.id for node in walk(root) for e in node.expressions for c in ex.columns_of(e)}
        self._excludes = excludes_of(plan.root, intakes)
        streams = [node for node in walk(plan.root) if isinstance(node, StreamAcquire | StreamReceive)]
        self._reads = Counter(node.extent.name for node in streams)
        acquired = {node.extent.name for node in walk(plan.root) if isinstance(node, StreamAcquire)}
        self.sensed = [intakes[name] for name in sorted(acquired)]
        self._first = first
        self._streams, self._blocks, self._scans = [], [], []
        if isinstance(root, StreamNode):
            self._output = StreamOutput(number, self._stream(root, self._limit), root.columns, self._limit)
            self._output.begin_with(self._output.stream.all(), self._since)
        else:
            self._output = WindowOutput(number, self._block(root, self._limit), root.columns)

    def step(self, steps, clock):
        """One step: what the query has to say at the end of clock tick `clock`."""
        for stream in self._streams:
            if isinstance(stream, ExtentStream):
                stream.step(steps)
            else:
                stream.step(clock)
        return self._output.step(clock)

    @property
    def halt(self):
        """Why the query cannot go on, or None."""
        return next((block.halt for block in self._blocks if block.halt is not None), None)

    @property
    def calm(self):
        """Whether many clock ticks in which nothing comes late may be ended as one: nothing hangs on when it was told."""
        return not (self.hasty or self._scans or any(block.loops for block in self._blocks))

    @property
    def joins(self):
        """The joins of the query, those of subqueries before those around them."""
        return [block.join for block in self._blocks if block.join is not None]

    def join_plans(self):
        """The plan of each of the joins."""
        return [join.plan for join in self.joins]

    def forget(self):
        """Let go of what no window to come, no revision and no coverage can ask for; tell what is still needed.

        Answers are revised back to the longest horizon below; what the clock has passed by that is settled.
        """
        read = [stream for stream in self._streams if isinstance(stream, ExtentStream)]
        horizon = max((stream.intake.horizon for stream in read), default=0)
        marks = [each.watermark for each in (*read, *(windows for _, windows in self._scans))]
        self._output.forget(min(marks, default=0) - horizon)
        needed = {}
        for stream in read:
            name = stream.extent.name
            needed[name] = min(stream.needed, needed.get(name, stream.needed))
        return needed

    # --- streams -----------------------------------------------------------------------------------------------------

    def _stream(self, node, limit=None):
        stream = self._made(node, limit)
        self._streams.append(stream)
        return stream

    def _made(self, node, limit):
        match node:
            case StreamAcquire() | StreamReceive():
                names_index = node.tags[1].id in self._named
                excludes = self._excludes.get(node.tags[0].id, ())
                alone = self._reads[node.extent.name] == 1
                return ExtentStream(node, self._intakes[node.extent.name], names_index, excludes, self._start, alone)
            case StreamProject(outputs=outputs, child=StreamSelect(predicate=predicate, child=child)):
                return FilterStream(self._stream(child), predicate, outputs, node.tags, limit)
            case StreamProject(outputs=outputs, child=child):
                return FilterStream(self._stream(child), None, outputs, node.tags, limit)
            case StreamSelect(predicate=predicate, child=child):
                return FilterStream(self._stream(child), predicate, None, node.tags, limit)
            case StreamUnion(parts=parts):
                names_index = node.tags[1].id in self._named
                return UnionStream(node, [self._stream(part, limit) for part in parts], names_index)
            case converters.Converter(child=child):
                block = self._block(child, limit)
                return ConverterStream(type(node).__name__, block, node.tags, node.tags[1].id in self._named)
        raise TypeError(f"no stream operator: {type(node).__name__}")

    # --- windows -----------------------------------------------------------------------------------------------------

    def _block(self, node, limit):
        leaves = tuple(_leaves(node))
        inputs = [self._begun(self._input(leaf)) for leaf in leaves]
        once = all(isinstance(leaf, table.Once) for leaf in leaves)  # others have no subqueries outside FROM
        asked = [(query.plan, self._block(query.plan, None)) for query in queries_of(node)] if once else []
        subqueries = Subqueries(asked) if asked else None
        within = None if once else self.within  # a one-off query takes no clause
        block = Block(node, inputs, leaves, self._start - 1, limit, self._loops(node, inputs), subqueries, within)
        self._blocks.append(block)
        return block

    def _loops(self, node, inputs):
        """The for-loops of a SELECT, in the order of their first stream in FROM (14); None where it has none."""
        loops, streams = {}, {}
        for place, (leaf, each) in enumerate(zip(_leaves(node), inputs, strict=True)):
            if isinstance(leaf, window.LoopWindow):
                loops[leaf.loop.t.id] = leaf.loop
                streams.setdefault(leaf.loop.t.id, []).append(Named(place, each, leaf.left, leaf.right))
        made = [Loop(loop, streams[t], self._start, self._first) for t, loop in loops.items()]
        return Loops(made, len(inputs)) if made else None

    def _begun(self, each):
        """Windows hold what is here already, older than the query or not (1.1)."""
        if isinstance(each, OverStream):
            each.begin_with(each.stream.all(), self._since)
        return each

    def _input(self, leaf):
        match leaf:
            case window.TimeWindow(begin=begin, end=end, slide=slide, child=child):
                return TimeWindows(self._stream(child), child.columns, begin, end, slide, self._start)
            case SliceAggregation(child=child):
                return SliceWindows(self._stream(child), leaf, self._start)
            case window.LandmarkWindow(slide=slide, rows=False, child=child):
                return TimeWindows(self._stream(child), child.columns, None, 0, slide, self._start)
            case window.RowWindow(begin=begin, end=end, slide=slide, child=child):
                return RowWindows(self._stream(child), child.columns, begin, end, slide)
            case window.LandmarkWindow(slide=slide, child=child):
                return RowWindows(self._stream(child), child.columns, None, 0, slide)
            case window.LoopWindow(loop=loop, child=child) if loop.rows:
                return LoopRows(self._stream(child), child.columns, self._start)
            case window.LoopWindow(child=child):
                return LoopTimes(self._stream(child), child.columns)
            case table.Scan(interval=interval, attributes=attributes):
                return self._read(leaf, ScanWindows(self._table(leaf), interval, attributes, self._start))
            case table.Once(attributes=attributes):
                return self._read(leaf, OnceWindow(self._table(leaf), attributes, self._start))
        raise TypeError(f"no window operator: {type(leaf).__name__}")

    def _table(self, leaf):
        return Archived(self._intakes[leaf.extent.name]) if leaf.history else self._tables[leaf.extent.name]

    def _read(self, leaf, windows):
        """Note who reads a history, which is kept for as long as it is read."""
        if leaf.history:
            self._scans.append((leaf.extent.name, windows))
        return windows

    def histories(self):
        """{extent: the first tick that its history may still be asked for}."""
        needed = {}
        for name, windows in self._scans:
            needed[name] = min(windows.needed, needed.get(name, windows.needed))
        return needed


def _leaves(node):
    """The nodes below which a block's inputs begin, from left to right."""
    if isinstance(node, _INSIDE):
        return [leaf for child in node.children for leaf in _leaves(child)]
    return [node]


def unsupported(plan):
    """The first part of a plan that cannot be executed, or None."""
    asked = plan.asked
    if asked.lifetime is not None:
        return "LIFETIME"
    for node in walk(plan.root):
        match node:
            case StreamAcquire(extent=extent) | table.Scan(extent=extent) | table.Once(extent=extent) if (
                extent.sites is None
            ):
                return "`at sites all` without a deployment"
    return None


def histories_of(root):
    """The extents whose history a plan reads, in subqueries too."""
    found = {n.extent for n in walk(root) if isinstance(n, table.Scan | table.Once) and n.history}
    return found.union(*(histories_of(query.plan) for query in queries_of(root)))


def covers_ahead(root):
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


def excludes_of(root, intakes):
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
                    masks.append(~Evaluation({site.id: Vector(sites)}, len(sites)).of(term).true)
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

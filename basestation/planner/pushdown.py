"""Split: what of a plan may run on motes, and for everything that stays, why.

Where an operator runs must not show in any answer, so one moves only if it is exact there for every value that its
sensors can give, for every tuple that may come late, and for whatever is asked above it. What moves is an operator of
`innet`; selections and joins are asked again at the base station, of the readings that came, so more may come than one
query wants. A fold takes the place of the readings below it: it *feeds* the aggregation that it was made from.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from acquisition.extent import Catalog, Extent, LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.notation import label
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect
from basestation.planner.lowering import Lowering, NotPushableError, RawRanges, lower_acquire
from basestation.planner.plan import Plan
from gateway.frame import MAX_FRAME, payload_room
from innet.deployment import Deployment
from innet.operators import MoteOperator
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import SensorValue, all_of
from innet.operators.mote_select import MoteSelect
from innet.operators.site_join import SiteJoin
from innet.operators.slices import SlicePattern
from innet.operators.value_ranges import Interval
from innet.partials import PartialShape
from innet.payload.partial import size_of
from innet.placement.placement import conditions, is_about_site
from innet.program.opcodes import MAX_KEYS

MAX_READINGS = 2**32 - 1
"""In one partial, as its states and its frames count them."""
READING_COUNT = None
"""Of a source: the aggregate is the number of readings, which every partial has."""


@dataclass(frozen=True, slots=True)
class PushdownDecision:
    """What was decided about one operator of the plan. `code` is one word to count by: `moves`, or what keeps it."""

    operator: str
    is_pushed_down: bool
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class FoldCandidate:
    """An aggregation that partials come for instead of readings.

    `sources` has for each of its aggregates the place of the state, in the fold, that holds it; `instead` is what has
    to be delivered where the fold does not run.
    """

    node: SliceAggregation
    fold: Fold
    sources: tuple[int | None, ...]
    unfolded_readings: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class PushdownPlan:
    """`readings` are what has to be delivered whatever is folded."""

    readings: tuple[Deliver, ...]
    fold_candidates: tuple[FoldCandidate, ...]
    decisions: tuple[PushdownDecision, ...]

    @property
    def inside(self) -> tuple[Deliver | Fold, ...]:
        """Everything that may run on motes, running there."""
        return *self.readings, *(feed.fold for feed in self.fold_candidates)


def plan_pushdown(plan: Plan, root: PlanNode, raw: RawRanges | None = None, corrected: frozenset[str] = frozenset(),
          mtu: int = MAX_FRAME) -> PushdownPlan:  # fmt: skip
    """`root` is the plan's tree after its rewrites.

    `corrected` are the extents whose readings may be revised, deleted or inserted by hand: those have to be here, one
    by one, so nothing that leaves any out moves. `mtu` is how long frames may be.
    """
    return _PushdownPlanner(plan, root, raw or {}, corrected, payload_room(mtu)).split()


def raw_ranges(deployment: Deployment, catalog: Catalog) -> dict[SensorValue, Interval]:
    """What the sensors of a deployment can give for each attribute, in multiples of the attribute's scale."""
    found: dict[SensorValue, Interval] = {}
    for extent in catalog:
        for attribute in extent.schema:
            name = attribute.sensor or attribute.name
            specs = [mote.sensors[name] for mote in deployment.motes.values() if name in mote.sensors]
            for spec in specs:
                ends = (_rescaled(end, spec.scale, attribute.scale or 0) for end in (spec.raw_min, spec.raw_max))
                interval, place = Interval(*ends), SensorValue(extent.name, attribute.name)
                found[place] = found[place].hull(interval) if place in found else interval
    return found


def _rescaled(multiple: int, scale: int, wanted: int) -> int:
    """A multiple of 10^-scale as the nearest one of another scale, halves away from zero (SEMANTICS 13)."""
    if wanted >= scale:
        return multiple * 10 ** (wanted - scale)
    step = 10 ** (scale - wanted)
    return (abs(multiple) + step // 2) // step * (1 if multiple >= 0 else -1)


class _PushdownPlanner:
    def __init__(self, plan: Plan, root: PlanNode, raw: RawRanges, corrected: frozenset[str], room: int) -> None:
        self.plan, self.root, self.raw, self.corrected, self.room = plan, root, raw, corrected, room
        self.decisions: list[PushdownDecision] = []
        self.fold_candidates: list[FoldCandidate] = []
        named = {column for node in walk(root) for e in node.expressions for column in ex.columns_of(e)}
        self.reads = Counter(n.extent.name for n in walk(root) if isinstance(n, StreamAcquire))
        self.recorded = {n.extent.name for n in walk(root) if isinstance(n, Scan | Once) and n.history}
        self.indexed = {n.extent.name for n in walk(root) if isinstance(n, StreamAcquire) and n.tags[1] in named}

    def split(self) -> PushdownPlan:
        self._look(self.root, ordered=False)
        fed = {id(feed.node) for feed in self.fold_candidates}
        return PushdownPlan(tuple(self._deliveries(self.root, fed)), tuple(self.fold_candidates), tuple(self.decisions))

    # --- what is decided ---------------------------------------------------------------------------------------------

    def _look(self, node: PlanNode, ordered: bool) -> None:
        """Decide about a node and all below it. `ordered`: somebody above sees the order of the tuples in a window."""
        if not any(isinstance(below, StreamAcquire) for below in walk(node)):
            return  # no mote measures anything of it
        match node:
            case SliceAggregation():
                if self._decide(node, lambda: self._feed(node, ordered)):
                    return
            case WindowAggregation():
                self._decide(node, lambda: self._unsliced(node))
            case StreamSelect() if _sensed(node) is not None:
                self._decide(node, lambda: self._selection(node))
            case StreamJoin() if _sensed(node) is not None:
                self._decide(node, lambda: self._condition(node))
            case WindowJoin() | WindowCrossProduct():
                self.decisions.append(PushdownDecision(label(node), False, "join", _apart(node)))
            case WindowSelect():
                asks = "it asks of windows, and those are put together at the base station"
                self.decisions.append(PushdownDecision(label(node), False, "nested", asks))
            case StreamAcquire():
                sampled = ", ".join(lower_acquire(node).sampled) or "nothing but that it is there"
                self.decisions.append(
                    PushdownDecision(label(node), True, "moves", f"of each reading is sent: {sampled}")
                )
        for child in node.children:
            self._look(child, ordered or isinstance(node, Converter))

    def _decide(self, node: PlanNode, lowered) -> bool:
        try:
            reason = lowered()
        except NotPushableError as stays:
            self.decisions.append(PushdownDecision(label(node), False, stays.code, stays.reason))
            return False
        self.decisions.append(PushdownDecision(label(node), True, "moves", reason))
        return True

    def _free(self, extents: list[Extent]) -> None:
        """Stays where every reading is needed here, whatever is asked of it."""
        for extent in extents:
            if extent.name in self.corrected:
                raise NotPushableError(
                    "corrected", f"readings of `{extent.name}` may be corrected, which takes having them here"
                )
            if extent.name in self.recorded:
                raise NotPushableError(
                    "history", f"the query reads the history of `{extent.name}`, where all readings have to be"
                )

    def _selection(self, node: StreamSelect) -> str:
        acquired = _sensed(node)
        self._free([a.extent for a in acquired])
        for a in acquired:
            if a.extent.name in self.indexed:
                raise NotPushableError(
                    "index", f"the query names the index of `{a.extent.name}`, which counts what is filtered, too"
                )
        if self._as_far_as_it_moves(node.child) is None:
            raise NotPushableError("join", "it asks of pairs, and those are put together at the base station")
        moved, kept = self._conjuncts(node, acquired)
        if not moved:
            raise kept[0]
        if kept:
            return f"in part: {kept[0].reason}"
        return "a mote sends only what passes, and reports the rest as filtered"

    def _conjuncts(self, node: StreamSelect, acquired: list[StreamAcquire]):
        """The conjuncts of a selection that motes can ask, and why they cannot ask the others."""
        lowering, moved, kept = Lowering.over(acquired, self.raw), [], []
        for term in ex.conjuncts(node.predicate):
            try:
                moved.append(lowering.predicate(ex.substitute(term, _values(node.child))))
            except NotPushableError as stays:
                kept.append(stays)
        return moved, kept

    def _condition(self, node: StreamJoin) -> str:
        self._pair(node)
        return "both readings of a pair are of one mote, which sends them only if they match"

    def _pair(self, node: StreamJoin) -> MoteOperator:
        """A join as an operator of motes; the pairs of different sites, and of different ticks, are no affair of theirs."""
        acquired = _sensed(node)
        if acquired is None or len(acquired) != 2 or acquired[0].extent.name == acquired[1].extent.name:
            raise NotPushableError("join", "only two different extents are joined on motes")
        left, right = acquired
        self._free([left.extent, right.extent])
        if set(left.extent.sites or ()) != set(right.extent.sites or ()) or left.interval != right.interval:
            raise NotPushableError(
                "join", f"`{left.extent.name}` and `{right.extent.name}` are not sampled at the same sites and ticks"
            )
        values = {**_values(node.left), **_values(node.right)}
        keys = [tuple(ex.substitute(side, values) for side in key) for key in node.keys]
        sites = {
            c
            for a in acquired
            for c in a.attributes
            if a.extent.site_attribute and c.name == a.extent.site_attribute.name
        }
        on_site = [key for key in keys if all(isinstance(side, ex.Attr) and side.column in sites for side in key)]
        if not on_site:
            raise NotPushableError("join", "it pairs readings of different sites")
        lowering = Lowering.over(acquired, self.raw)
        terms = [lowering.predicate(ex.Compare("=", *key)) for key in keys if key not in on_site]
        return SiteJoin(self._stream(node.left), self._stream(node.right), all_of(terms))

    def _stream(self, node: PlanNode) -> MoteOperator:
        """A stream with all its conditions, as an operator of motes."""
        match node:
            case StreamAcquire():
                return lower_acquire(node)
            case StreamProject(child=child):
                return self._stream(child)
            case StreamSelect(child=child):
                acquired = _sensed(node)
                self._free([a.extent for a in acquired])
                moved, kept = self._conjuncts(node, acquired)
                if kept:
                    raise kept[0]
                return MoteSelect(self._stream(child), all_of(moved))
            case StreamJoin():
                return self._pair(node)
        raise NotPushableError("nested", f"it stands on {label(node)}, which is made at the base station")

    # --- aggregates --------------------------------------------------------------------------------------------------

    def _unsliced(self, node: WindowAggregation) -> str:
        grown = next((aggregate for _, aggregate in node.aggregates if not aggregate.is_mergeable), None)
        if grown is not None:
            name = "COUNT(DISTINCT …)" if grown.distinct else grown.name
            raise NotPushableError("readings", f"{name} needs the readings themselves")
        late = {a.extent.late for a in walk(node) if isinstance(a, StreamAcquire)}
        if LatePolicy.APPEND in late:
            raise NotPushableError(
                "late", "of a `late append` extent, which windows hold a reading depends on its own arrival"
            )
        match node.child:
            case RowWindow() | LandmarkWindow(rows=True):
                raise NotPushableError(
                    "rows", "its windows count rows, and which rows those are is known only where all are"
                )
            case LoopWindow():
                raise NotPushableError("loop", "the windows of a loop have no slices that are known beforehand")
            case TimeWindow() | LandmarkWindow():
                raise NotPushableError("nested", "its windows are empty, or FIRST or LAST goes by indexes of a union")
        raise NotPushableError("nested", "it aggregates what is put together from several windows")

    def _feed(self, node: SliceAggregation, ordered: bool) -> str:
        acquired = _sensed(node.child)
        if acquired is None:
            raise NotPushableError("nested", "its stream is made at the base station")
        if self.plan.options.since is not None or self.plan.options.since_ago is not None:
            raise NotPushableError("since", "it begins in the past, of which there are readings and no partials")
        if ordered and node.groups:
            raise NotPushableError(
                "order", "a converter above sees the order of its groups, which partials do not tell"
            )
        if twice := next((a.extent.name for a in acquired if self.reads[a.extent.name] > 1), None):
            raise NotPushableError(
                "twice", f"the query reads `{twice}` in several places, and coverage counts each reading once"
            )
        extent, interval = acquired[0].extent, acquired[0].interval
        slices = _slices(node, interval)
        for a in acquired:
            self._free([a.extent])
            self._in_time(a.extent, slices, interval)
        self._counted(extent, slices, interval)
        child, lowering, values = self._stream(node.child), Lowering.over(acquired, self.raw), _values(node.child)
        if len({(a.extent.wait, a.extent.late, a.extent.horizon, a.extent.ahead) for a in acquired}) > 1:
            raise NotPushableError("late", "its extents wait for readings, or treat late ones, in different ways")
        if len(acquired) > 1 and any(is_about_site(term) for term in conditions(Deliver(child, extent.name, ()))):
            raise NotPushableError("join", "a condition on the sites of one extent leaves readings of the other due")
        keys = tuple(lowering.value(ex.substitute(e, values)) for _, e in node.groups)
        if len(keys) > MAX_KEYS:
            raise NotPushableError("long", f"it groups by more than {MAX_KEYS} columns")
        states, sources = _states([aggregate for _, aggregate in node.aggregates], lowering, values)
        fold = Fold(child, extent.name, slices, keys, states)
        size = size_of(PartialShape(0, extent.sites or (), len(keys), fold.kinds, slices), 1, 0)
        if size > self.room:
            raise NotPushableError(
                "long", f"one of its partials takes {size} bytes, and a frame has room for {self.room}"
            )
        instead = tuple(self._deliveries(node.child, set()))
        self.fold_candidates.append(FoldCandidate(node, fold, sources, instead))
        return f"each mote sends one partial for each slice and group: {slices.label()}"

    def _in_time(self, extent: Extent, slices: SlicePattern, interval: int) -> None:
        """Stays where a partial may be late in part."""
        span = (slices.max_ticks(interval) - 1) * interval
        if extent.late is LatePolicy.DROP and span:
            raise NotPushableError(
                "late", "a partial of several ticks may be too late for some, and a late reading is dropped alone"
            )
        if extent.late is LatePolicy.REVISE and span >= (extent.horizon or 0):
            reach = f"a slice reaches over {span} ticks, answers are corrected back to {extent.horizon}"
            raise NotPushableError(
                "late", f"{reach}: of one partial, some readings may be beyond the horizon and some not"
            )

    def _counted(self, extent: Extent, slices: SlicePattern, interval: int) -> None:
        most = len(extent.sites or ()) * slices.max_ticks(interval)
        if most > MAX_READINGS:
            raise NotPushableError("wide", f"a slice has up to {most} readings, a partial counts up to {MAX_READINGS}")

    # --- readings ----------------------------------------------------------------------------------------------------

    def _deliveries(self, node: PlanNode, fed: set[int]):
        """What has to be delivered for a node, with the conditions that motes can ask."""
        if id(node) in fed:
            return
        if isinstance(node, StreamSelect | StreamProject | StreamJoin | StreamAcquire) and _sensed(node) is not None:
            yield from self._filtered(node)
            return
        for child in node.children:
            yield from self._deliveries(child, fed)

    def _filtered(self, node: PlanNode):
        operator = self._as_far_as_it_moves(node)
        for acquired in _sensed(node):
            acquire = lower_acquire(acquired)
            child = operator if operator is not None else acquire
            yield Deliver(child, acquire.extent, acquire.sampled)

    def _as_far_as_it_moves(self, node: PlanNode) -> MoteOperator | None:
        """The operator over what is sampled, without the conditions that stay; None for a join that stays."""
        match node:
            case StreamAcquire():
                return lower_acquire(node)
            case StreamProject(child=child):
                return self._as_far_as_it_moves(child)
            case StreamJoin():
                try:
                    return self._pair(node)
                except NotPushableError:
                    return None
        below = self._as_far_as_it_moves(node.child)
        acquired = _sensed(node)
        if below is None or any(a.extent.name in self.corrected | self.recorded | self.indexed for a in acquired):
            return below
        moved, _ = self._conjuncts(node, acquired)
        return MoteSelect(below, all_of(moved)) if moved else below


def _apart(node: WindowJoin | WindowCrossProduct) -> str:
    """Why a join of windows is none of readings of one tick: what `join_below_window` asks for."""
    if len(node.inputs) > 2:
        return "it puts more than two windows together, and motes pair two readings"
    left, right = node.inputs
    if any(not isinstance(side, TimeWindow) or _sensed(side.child) is None for side in node.inputs):
        return "its sides are not both windows of time over what motes sample"
    if isinstance(node, WindowCrossProduct):
        return "it pairs readings whatever their sites are"
    if (left.begin, left.end, left.slide) != (right.begin, right.end, right.slide):
        return "its windows do not hold the same ticks"
    if any(a.extent.late is LatePolicy.APPEND for side in node.inputs for a in _sensed(side.child)):
        return "of a `late append` extent, which windows hold a reading depends on its own arrival"
    return "it pairs readings of different ticks"


def _sensed(node: PlanNode) -> list[StreamAcquire] | None:
    """The sensed extents that a stream is made of by selections, projections and joins alone; None if there is more."""
    match node:
        case StreamAcquire():
            return [node]
        case StreamSelect(child=child) | StreamProject(child=child):
            return _sensed(child)
        case StreamJoin(left=left, right=right):
            below = _sensed(left), _sensed(right)
            return None if None in below else [*below[0], *below[1]]
    return None


def _values(node: PlanNode) -> dict[Column, Expression]:
    """What the columns of a stream are, in those that were acquired."""
    match node:
        case StreamProject(outputs=outputs, child=child):
            below = _values(child)
            return {column: ex.substitute(e, below) for column, e in outputs}
        case StreamSelect(child=child):
            return _values(child)
        case StreamJoin(left=left, right=right):
            return {**_values(left), **_values(right)}
    return {}


def _slices(node: SliceAggregation, interval: int) -> SlicePattern:
    """Cut at both ends of the windows. A landmark window also begins at a tick of its own: the start, on the grid."""
    if node.begin is None:
        return SlicePattern.cut(node.slide, (0, 1), interval)
    edges = node.begin, node.end + 1
    return SlicePattern.cut(node.slide, edges, interval, gap=edges[1] - edges[0] < node.slide)


_SUMMED = {"COUNT": 0, "SUM": 1, "AVG": 1, "VARIANCE": 2, "STDEV": 2}
_KINDS = ("COUNT", "SUM", "VARIANCE")


def _states(aggregates: list[ex.Aggregate], lowering: Lowering, values: Mapping[Column, Expression]):
    """The states that a fold keeps for some aggregates, and for each of those where it is.

    Of one expression, the count is a part of what a sum is made of, and that of what a variance is.
    """
    kept: dict[tuple, str] = {}
    wanted: list[tuple | None] = []
    for aggregate in aggregates:
        if aggregate.argument is None:
            wanted.append(None)
            continue
        value = lowering.value(ex.substitute(aggregate.argument, values))
        if aggregate.name in _SUMMED:
            place, before = (value, "sums"), kept.get((value, "sums"), "COUNT")
            kept[place] = _KINDS[max(_SUMMED[aggregate.name], _KINDS.index(before))]
        else:
            place = value, aggregate.name
            kept[place] = aggregate.name
        wanted.append(place)
    places = list(kept)
    states = tuple((kind, place[0]) for place, kind in kept.items())
    return states, tuple(READING_COUNT if place is None else places.index(place) for place in wanted)

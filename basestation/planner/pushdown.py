"""Plans pushdown: which operators of a plan motes may run, and for each of the others the reason why not.

Answers must not depend on where an operator runs. So an operator is pushed down only if the mote computes it exactly: for
every value of its sensors, for every late tuple, and for all operators above it. A pushed-down operator is one of `innet`.
The base station repeats selections and joins on the readings that arrive, so motes may send more than one query needs.
A fold replaces the readings below an aggregation: its partials feed that aggregation.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from acquisition.extent import Extent, LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode, walk
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
from basestation.planner.sensed_streams import acquired_values, acquires_of, explain_window_join, find_acquires_below
from gateway.frame import MAX_FRAME, payload_room
from innet.operators import MoteOperator
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression, all_of
from innet.operators.mote_select import MoteSelect
from innet.operators.site_join import SiteJoin
from innet.operators.slices import SlicePattern
from innet.partials import PartialShape
from innet.payload.partial import size_of
from innet.placement.placement import conditions, is_about_site
from innet.program.opcodes import MAX_KEYS

MAX_READINGS = 2**32 - 1
"""In one partial: its states and frames count readings in 32 bits."""
READING_COUNT = None
"""As a source: the aggregate is the number of readings, which every partial has."""


@dataclass(frozen=True, slots=True)
class PushdownDecision:
    """The decision about one operator of the plan. `code` is `moves`, or one word for the reason against it."""

    operator: str
    is_pushed_down: bool
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class FoldCandidate:
    """An aggregation that partials of motes can feed.

    `sources` has for each of its aggregates the position of its state in the fold; `instead` is what has
    to be delivered where the fold does not run.
    """

    node: SliceAggregation
    fold: Fold
    sources: tuple[int | None, ...]
    unfolded_readings: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class PushdownPlan:
    """`readings` are delivered whichever candidates are folded; `decisions` are in the order of the plan."""

    readings: tuple[Deliver, ...]
    fold_candidates: tuple[FoldCandidate, ...]
    decisions: tuple[PushdownDecision, ...]


def plan_pushdown(plan: Plan, root: PlanNode, raw: RawRanges | None = None, corrected: frozenset[str] = frozenset(),
          mtu: int = MAX_FRAME) -> PushdownPlan:  # fmt: skip
    """Decide for each operator of a plan whether motes may run it. `root` is the plan's tree after its rewrites.

    `corrected` are the extents whose readings may be revised, deleted or inserted by hand: those have to be here, one
    by one, so nothing that leaves any out moves. `mtu` is how long frames may be.
    """
    return _PushdownPlanner(plan, root, raw or {}, corrected, payload_room(mtu)).plan_all()


class _PushdownPlanner:
    def __init__(self, plan: Plan, root: PlanNode, raw: RawRanges, corrected: frozenset[str], room: int) -> None:
        self.plan, self.root, self.raw, self.corrected, self.room = plan, root, raw, corrected, room
        self.decisions: list[PushdownDecision] = []
        self.fold_candidates: list[FoldCandidate] = []
        named = {column for node in walk(root) for e in node.expressions for column in ex.columns_of(e)}
        self.reads = Counter(n.extent.name for n in walk(root) if isinstance(n, StreamAcquire))
        self.recorded = {n.extent.name for n in walk(root) if isinstance(n, Scan | Once) and n.history}
        self.indexed = {n.extent.name for n in walk(root) if isinstance(n, StreamAcquire) and n.tags[1] in named}

    def plan_all(self) -> PushdownPlan:
        self._look(self.root, ordered=False)
        fed = {id(feed.node) for feed in self.fold_candidates}
        return PushdownPlan(tuple(self._deliveries(self.root, fed)), tuple(self.fold_candidates), tuple(self.decisions))

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _look(self, node: PlanNode, ordered: bool) -> None:
        """Decide about a node and all below it. `ordered`: an operator above sees the order of tuples in a window."""
        if not any(isinstance(below, StreamAcquire) for below in walk(node)):
            return  # it reads no sensor
        match node:
            case SliceAggregation():
                if self._decide(node, lambda: self._fold(node, ordered)):
                    return
            case WindowAggregation():
                self._decide(node, lambda: self._unsliced(node))
            case StreamSelect() if find_acquires_below(node) is not None:
                self._decide(node, lambda: self._selection(node))
            case StreamJoin() if find_acquires_below(node) is not None:
                self._decide(node, lambda: self._condition(node))
            case WindowJoin() | WindowCrossProduct():
                self.decisions.append(PushdownDecision(label(node), False, "join", explain_window_join(node)))
            case WindowSelect():
                reason = "its predicate is over windows, and the base station builds windows"
                self.decisions.append(PushdownDecision(label(node), False, "nested", reason))
            case StreamAcquire():
                sampled = ", ".join(lower_acquire(node).sampled) or "only its existence"
                self.decisions.append(
                    PushdownDecision(label(node), True, "moves", f"of each reading is sent: {sampled}")
                )
        for child in node.children:
            self._look(child, ordered or isinstance(node, Converter))

    def _decide(self, node: PlanNode, lower: Callable[[], str]) -> bool:
        try:
            reason = lower()
        except NotPushableError as error:
            self.decisions.append(PushdownDecision(label(node), False, error.code, error.reason))
            return False
        self.decisions.append(PushdownDecision(label(node), True, "moves", reason))
        return True

    def _check_droppable(self, extents: list[Extent]) -> None:
        """Raise NotPushableError if the base station needs every reading of an extent."""
        for extent in extents:
            if extent.name in self.corrected:
                raise NotPushableError(
                    "corrected",
                    f"readings of `{extent.name}` may be corrected, and corrections need them at the base station",
                )
            if extent.name in self.recorded:
                raise NotPushableError(
                    "history", f"the query reads the history of `{extent.name}`, which has all readings"
                )

    def _selection(self, node: StreamSelect) -> str:
        acquired = acquires_of(node)
        self._check_droppable([a.extent for a in acquired])
        for a in acquired:
            if a.extent.name in self.indexed:
                raise NotPushableError(
                    "index", f"the query names the index of `{a.extent.name}`, which counts filtered readings too"
                )
        if self._pushable_part(node.child) is None:
            raise NotPushableError("join", "its predicate is over pairs, and the base station forms pairs")
        moved, kept = self._conjuncts(node, acquired)
        if not moved:
            raise kept[0]
        if kept:
            return f"in part: {kept[0].reason}"
        return "a mote sends only what passes, and reports the rest as filtered"

    def _conjuncts(
        self, node: StreamSelect, acquired: list[StreamAcquire]
    ) -> tuple[list[MoteExpression], list[NotPushableError]]:
        """The conjuncts of a selection that motes can evaluate, and the reasons against the others."""
        lowering = Lowering.over(acquired, self.raw)
        moved: list[MoteExpression] = []
        kept: list[NotPushableError] = []
        for term in ex.conjuncts(node.predicate):
            try:
                moved.append(lowering.predicate(ex.substitute(term, acquired_values(node.child))))
            except NotPushableError as error:
                kept.append(error)
        return moved, kept

    def _condition(self, node: StreamJoin) -> str:
        self._pair(node)
        return "both readings of a pair are of one mote, which sends them only if they match"

    def _pair(self, node: StreamJoin) -> SiteJoin:
        """A join as a mote operator: a mote pairs only readings of its own site and of one tick."""
        acquired = find_acquires_below(node)
        if acquired is None or len(acquired) != 2 or acquired[0].extent.name == acquired[1].extent.name:
            raise NotPushableError("join", "only two different extents are joined on motes")
        left, right = acquired
        self._check_droppable([left.extent, right.extent])
        if set(left.extent.sites or ()) != set(right.extent.sites or ()) or left.interval != right.interval:
            raise NotPushableError(
                "join", f"`{left.extent.name}` and `{right.extent.name}` are not sampled at the same sites and ticks"
            )
        values = {**acquired_values(node.left), **acquired_values(node.right)}
        keys = [(ex.substitute(a, values), ex.substitute(b, values)) for a, b in node.keys]
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
        """A stream with all its conditions as a mote operator."""
        match node:
            case StreamAcquire():
                return lower_acquire(node)
            case StreamProject(child=child):
                return self._stream(child)
            case StreamSelect(child=child):
                acquired = acquires_of(node)
                self._check_droppable([a.extent for a in acquired])
                moved, kept = self._conjuncts(node, acquired)
                if kept:
                    raise kept[0]
                return MoteSelect(self._stream(child), all_of(moved))
            case StreamJoin():
                return self._pair(node)
        raise NotPushableError("nested", f"it stands on {label(node)}, which runs at the base station")

    # --- aggregates --------------------------------------------------------------------------------------------------

    def _unsliced(self, node: WindowAggregation) -> str:
        grown = next((aggregate for _, aggregate in node.aggregates if not aggregate.is_mergeable), None)
        if grown is not None:
            name = "COUNT(DISTINCT …)" if grown.distinct else grown.name
            raise NotPushableError("readings", f"{name} needs the readings themselves")
        late = {a.extent.late for a in walk(node) if isinstance(a, StreamAcquire)}
        if LatePolicy.APPEND in late:
            raise NotPushableError(
                "late", "of a `late append` extent, its arrival decides which windows hold a reading"
            )
        match node.child:
            case RowWindow() | LandmarkWindow(rows=True):
                raise NotPushableError("rows", "its windows count rows, and only the base station sees all rows")
            case LoopWindow():
                raise NotPushableError("loop", "the windows of a loop have no slices that are known in advance")
            case TimeWindow() | LandmarkWindow():
                raise NotPushableError("nested", "its windows are empty, or FIRST or LAST orders by indexes of a union")
        raise NotPushableError("nested", "it aggregates combinations of several windows")

    def _fold(self, node: SliceAggregation, ordered: bool) -> str:
        acquired = find_acquires_below(node.child)
        if acquired is None:
            raise NotPushableError("nested", "its stream is computed at the base station")
        if node.loop is not None:
            raise NotPushableError("loop", "its slices begin with the loop, which motes do not run")
        if self.plan.options.since is not None or self.plan.options.since_ago is not None:
            raise NotPushableError("since", "it begins in the past, for which there are readings and no partials")
        if ordered and node.groups:
            raise NotPushableError(
                "order", "a converter above sees the order of its groups, which partials do not carry"
            )
        if twice := next((a.extent.name for a in acquired if self.reads[a.extent.name] > 1), None):
            raise NotPushableError(
                "twice", f"the query reads `{twice}` in several places, and coverage counts each reading once"
            )
        extent, interval = acquired[0].extent, acquired[0].interval
        slices = _slices(node, interval)
        for a in acquired:
            self._check_droppable([a.extent])
            self._check_lateness(a.extent, slices, interval)
        self._check_count(extent, slices, interval)
        child, lowering, values = (
            self._stream(node.child),
            Lowering.over(acquired, self.raw),
            acquired_values(node.child),
        )
        if len({(a.extent.wait, a.extent.late, a.extent.horizon, a.extent.ahead) for a in acquired}) > 1:
            raise NotPushableError("late", "its extents differ in their wait, or in how they treat late readings")
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

    def _check_lateness(self, extent: Extent, slices: SlicePattern, interval: int) -> None:
        """Raise NotPushableError if some readings of a partial may be late and others not."""
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

    def _check_count(self, extent: Extent, slices: SlicePattern, interval: int) -> None:
        most = len(extent.sites or ()) * slices.max_ticks(interval)
        if most > MAX_READINGS:
            raise NotPushableError("wide", f"a slice has up to {most} readings, a partial counts up to {MAX_READINGS}")

    # --- readings ----------------------------------------------------------------------------------------------------

    def _deliveries(self, node: PlanNode, fed: set[int]) -> Iterator[Deliver]:
        """The readings to deliver for a node, with the conditions that motes can evaluate."""
        if id(node) in fed:
            return
        if (
            isinstance(node, StreamSelect | StreamProject | StreamJoin | StreamAcquire)
            and find_acquires_below(node) is not None
        ):
            yield from self._filtered(node)
            return
        for child in node.children:
            yield from self._deliveries(child, fed)

    def _filtered(self, node: StreamNode) -> Iterator[Deliver]:
        operator = self._pushable_part(node)
        for acquired in acquires_of(node):
            acquire = lower_acquire(acquired)
            child = operator if operator is not None else acquire
            yield Deliver(child, acquire.extent, acquire.sampled)

    def _pushable_part(self, node: PlanNode) -> MoteOperator | None:
        """The mote operator without the conditions that stay at the base station; None for a join that stays there."""
        match node:
            case StreamAcquire():
                return lower_acquire(node)
            case StreamProject(child=child):
                return self._pushable_part(child)
            case StreamJoin():
                try:
                    return self._pair(node)
                except NotPushableError:
                    return None
        if not isinstance(node, StreamSelect):
            raise TypeError(f"no stream of readings: {node!r}")
        below = self._pushable_part(node.child)
        acquired = acquires_of(node)
        if below is None or any(a.extent.name in self.corrected | self.recorded | self.indexed for a in acquired):
            return below
        moved, _ = self._conjuncts(node, acquired)
        return MoteSelect(below, all_of(moved)) if moved else below


def _slices(node: SliceAggregation, interval: int) -> SlicePattern:
    """The slices of an aggregation, cut at both ends of its windows; those of a landmark window are cut at its slide."""
    if node.begin is None:
        return SlicePattern.cut(node.slide, (0, 1), interval)
    edges = node.begin, node.end + 1
    return SlicePattern.cut(node.slide, edges, interval, gap=edges[1] - edges[0] < node.slide)


_SUMMED = {"COUNT": 0, "SUM": 1, "AVG": 1, "VARIANCE": 2, "STDEV": 2}
_KINDS = ("COUNT", "SUM", "VARIANCE")


_Place: TypeAlias = tuple[MoteExpression, str]


def _states(
    aggregates: list[ex.Aggregate], lowering: Lowering, values: Mapping[Column, Expression]
) -> tuple[tuple[tuple[str, MoteExpression], ...], tuple[int | None, ...]]:
    """The states that a fold keeps for some aggregates, and for each aggregate the position of its state.

    The state of a sum contains the count, and that of a variance contains the sum.
    """
    kept: dict[_Place, str] = {}
    needed: list[_Place | None] = []
    for aggregate in aggregates:
        if aggregate.argument is None:
            needed.append(None)
            continue
        value = lowering.value(ex.substitute(aggregate.argument, values))
        if aggregate.name in _SUMMED:
            place, before = (value, "sums"), kept.get((value, "sums"), "COUNT")
            kept[place] = _KINDS[max(_SUMMED[aggregate.name], _KINDS.index(before))]
        else:
            place = value, aggregate.name
            kept[place] = aggregate.name
        needed.append(place)
    places = list(kept)
    states = tuple((kind, place[0]) for place, kind in kept.items())
    return states, tuple(READING_COUNT if place is None else places.index(place) for place in needed)

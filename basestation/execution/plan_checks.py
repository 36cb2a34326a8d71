"""Plan checks: what the engine has to know of a plan before it builds operators."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from acquisition.arrays import BoolArray
from acquisition.extent import Extent
from basestation.algebra import converters, table, window
from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, rebuild, walk
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
from basestation.execution.relational.subqueries import find_subqueries
from basestation.execution.relational.table_operators import TABLE_NODES
from basestation.planner.plan import Plan, QueryOptions
from basestation.progress.watermark import EpochProgress
from gateway.errors import MoteloomError

_INSIDE_BLOCK = WindowSelect | WindowProject | WindowAggregation | WindowCrossProduct | WindowJoin | TABLE_NODES


class UnsupportedPlanError(MoteloomError):
    """The plan is valid, and this version cannot run it. `what` names the part that is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be executed yet")
        self.what = what


class StartBeforeRecordError(MoteloomError):
    """A query is to begin before what is on record. `first` is the first tick that it could begin at."""

    def __init__(self, since: int, first: int) -> None:
        super().__init__(f"tick {since} is before all that is on record")
        self.first = first


# --- time ------------------------------------------------------------------------------------------------------------


def start_tick(options: QueryOptions, now: int) -> int | None:
    """The tick that SINCE names (10.7), for a query submitted in clock tick `now`; None without SINCE."""
    return options.since if options.since_ago is None else now - options.since_ago


def last_tick(options: QueryOptions, now: int) -> int | None:
    """The last tick of a query submitted in clock tick `now` (FOR, 11); None where it does not end."""
    start = start_tick(options, now)
    return None if options.run_for is None else (now if start is None else start) + options.run_for


# --- parts of a tree -------------------------------------------------------------------------------------------------


def find_unsupported(plan: Plan) -> str | None:
    """The first part of a plan that cannot be executed; None if there is none."""
    if plan.options.lifetime is not None:
        return "LIFETIME"
    for node in walk(plan.root):
        match node:
            case StreamAcquire(extent=extent) | table.Scan(extent=extent) | table.Once(extent=extent) if (
                extent.sites is None
            ):
                return "`at sites all` without a deployment"
    return None


def find_history_extents(root: PlanNode) -> set[Extent]:
    """The extents whose history a plan reads, in subqueries too."""
    found = {n.extent for n in walk(root) if isinstance(n, table.Scan | table.Once) and n.history}
    return found.union(*(find_history_extents(query.plan) for query in find_subqueries(root)))


def find_leaves(node: PlanNode) -> list[PlanNode]:
    """The nodes that the inputs of a block stand for, from left to right."""
    if isinstance(node, _INSIDE_BLOCK):
        return [leaf for child in node.children for leaf in find_leaves(child)]
    return [node]


def find_level(node: PlanNode) -> int:
    """How many converters are below an operator, one above another."""
    levels: dict[int, int] = {}

    def visit(each: PlanNode) -> PlanNode:
        below = max((levels[id(child)] for child in each.children), default=0)
        levels[id(each)] = below + isinstance(each, converters.Converter)
        return each

    rebuild(node, visit)
    return levels[id(node)]


def is_per_query(node: PlanNode, named: Collection[int] | None) -> bool:
    """Whether a stream differs between queries that begin at different times.

    A converter begins with its query. A union gives indexes from its first query on: it differs if the index is among the columns
    `named`, or if these are None.
    """
    return any(
        isinstance(each, converters.Converter)
        or (isinstance(each, StreamUnion) and (named is None or each.tags[1].id in named))
        for each in walk(node)
    )


def begins_with_query(node: PlanNode, named: Collection[int], early: bool, is_ordered: bool) -> bool:
    """Whether the windows of a block depend on the tick at which their query begins.

    Windows of time and scans do not: all queries have those that lie on one grid, each from its own beginning on. Windows of rows
    do not where each row of an extent makes one, unless windows are answered `early`. The order of tuples within a window does,
    for a query that `is_ordered`, where a selection in a union lets a tuple pass after a revision: a union that begins later does
    not know when that was.
    """
    leaves = find_leaves(node)
    if is_ordered and any(map(_has_selection_in_union, leaves)):
        return True
    return any(is_per_query(leaf, named) for leaf in leaves) or not all(
        _has_shared_windows(leaf, early) for leaf in leaves
    )


def depends_on_order(root: PlanNode) -> bool:
    """Whether the order of tuples within a window matters to a query: a converter numbers them, FIRST and LAST choose by it."""
    aggregations = [each for each in walk(root) if isinstance(each, WindowAggregation)]
    return isinstance(root, converters.Converter) or any(
        aggregate.name in ("FIRST", "LAST") for each in aggregations for _, aggregate in each.aggregates
    )


def _has_selection_in_union(leaf: PlanNode) -> bool:
    unions = [each for each in walk(leaf) if isinstance(each, StreamUnion)]
    return any(isinstance(each, StreamSelect) for union in unions for each in walk(union))


def _has_shared_windows(leaf: PlanNode, early: bool) -> bool:
    match leaf:
        case window.TimeWindow() | table.Scan():
            return True
        case SliceAggregation():
            return leaf.begin is not None
        case window.RowWindow(slide=1, child=stream) if not early:
            while isinstance(stream, StreamProject):
                stream = stream.child
            if isinstance(stream, StreamAcquire):
                return stream.interval == stream.extent.interval
            return isinstance(stream, StreamReceive)
    return False


def may_cover_ahead(root: PlanNode) -> bool:
    """Whether a window may cover readings after its tick: rows of a union of pushed tuples, stamped ahead, and readings."""
    rows = any(
        isinstance(node, window.RowWindow)
        or (isinstance(node, window.LandmarkWindow) and node.rows)
        or (isinstance(node, window.LoopWindow) and node.loop.rows)
        for node in walk(root)
    )
    unions = [{type(below) for below in walk(node)} for node in walk(root) if isinstance(node, StreamUnion)]
    return rows and any({StreamAcquire, StreamReceive} <= below for below in unions)


# --- coverage --------------------------------------------------------------------------------------------------------


class ScheduledIntake(Protocol):
    """The intake of an extent, as coverage sees it."""

    @property
    def epochs(self) -> EpochProgress | None:
        """The schedule of a sensed extent, and its sites."""


SiteMasks = tuple[BoolArray, ...]
"""Masks over the sites of an extent."""


def find_site_exclusions(root: PlanNode, intakes: Mapping[str, ScheduledIntake]) -> dict[int, SiteMasks]:
    """For each StreamAcquire, by the id of its tick column: masks of the sites that conjuncts over `site` leave out (12.3)."""
    found: dict[int, SiteMasks] = {}
    _exclude(root, (), found, intakes)
    return found


def _exclude(
    node: PlanNode,
    terms: Sequence[Expression],
    found: dict[int, SiteMasks],
    intakes: Mapping[str, ScheduledIntake],
) -> None:
    """`terms` are the conjuncts of WHERE above the node, over its columns. They pass plain projections only (14)."""
    match node:
        case StreamAcquire(extent=extent, attributes=attributes):
            site = next((c for c in attributes if extent.site_attribute and c.name == "site"), None)
            epochs = intakes[extent.name].epochs
            masks = []
            for term in terms:
                if site is not None and epochs is not None and ex.columns_of(term) == {site}:
                    sites = epochs.sites
                    masks.append(~Evaluation({site.id: Vector(sites)}, len(sites)).of(term).is_true)
            found[node.tags[0].id] = tuple(masks)
            return
        case StreamSelect(predicate=predicate) | WindowSelect(predicate=predicate):
            terms = (*terms, *ex.conjuncts(predicate))
        case StreamProject(outputs=outputs) | WindowProject(outputs=outputs):
            plain: dict[Column, Expression] = {column: e for column, e in outputs if isinstance(e, ex.Attr)}
            terms = tuple(ex.substitute(t, plain) for t in terms if ex.columns_of(t) <= set(plain))
        case WindowAggregation() | converters.Converter() | StreamUnion():
            terms = ()
    for child in node.children:
        _exclude(child, terms, found, intakes)

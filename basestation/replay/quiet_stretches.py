"""Quiet stretches: ranges of ticks in which nothing is recorded and every window of every query holds the same.

No meaning of a query depends on where tick 0 is, as long as all windows, samples and scans keep their grid. So a replay can shorten a
quiet stretch by whole periods of all those grids: it gives the engine earlier ticks for everything behind, and moves
the ticks of its updates back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import lcm

from acquisition.extent import Extent
from basestation.algebra.converters import DStream, IStream, RStream
from basestation.algebra.expressions import columns_of
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.one_off import Distinct, Limit, Sort, TableJoin, TableUnion
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import LandmarkWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.ingest.intake import find_retention
from basestation.execution.plan_checks import find_history_extents
from basestation.execution.relational.subqueries import find_subqueries
from basestation.planner.plan import Plan, QueryOptions

_TIMELESS = (
    *(DStream, IStream, RStream, StreamAcquire, StreamProject, StreamReceive, StreamSelect, StreamUnion, Once, Scan),
    *(LandmarkWindow, RowWindow, TimeWindow),
    *(WindowAggregation, WindowCrossProduct, WindowProject, WindowSelect),
    *(Distinct, Limit, Sort, TableJoin, TableUnion),
)
"""Operators whose result does not depend on where tick 0 is, and that hold nothing that grows while nothing comes."""


MANY_STEPS = 1_000
"""A stretch is also skipped for this many times as many steps of an operator, such as epochs of a sensor that is read each second:
10,000,000 epochs took 10 s and 0.4 GB, for 116 windows of a day."""


@dataclass(frozen=True, slots=True)
class QuietStretch:
    """Windows at ticks in `last_shown` < tick < `next_shown` have the same rows; they and the epochs there are left out.

    The engine is given ticks behind the stretch that are `removed` earlier. Whatever recurs does so within `period` ticks.
    All windows up to a tick are answered `lag` ticks later.
    """

    last_shown: int
    next_shown: int
    removed: int
    period: int
    lag: int


def find_quiet_stretches(
    gaps: Iterable[tuple[int, int]],
    plans: Sequence[Plan],
    later: Sequence[Plan],
    extents: Sequence[Extent],
    tick_ms: int,
    least: int,
) -> list[QuietStretch]:
    """Return the quiet stretches in gaps of a recording, in each of which a query has at least `least` answers to remove.

    Fewer answers are enough where an operator has `MANY_STEPS` times as many steps to compute. `gaps` are (last recorded tick, next
    one). There are no stretches if a query of `plans`, or of those submitted `later`, depends on more than the order of ticks.
    """
    wide = [gap for gap in gaps if gap[1] - gap[0] > least]
    if not wide:
        return []
    if not all(_is_timeless(plan) for plan in (*plans, *later)):
        return []
    if any(isinstance(node, RowWindow | LandmarkWindow) for plan in later for node in walk(plan.root)):
        return []  # they begin with what is on record, which is kept for a time
    if any(plan.options.since is not None for plan in later):
        return []  # answers of ticks before the submission are given at once
    nodes = [[*walk(plan.root)] for plan in (*plans, *later)]
    steps = [_step(node) for found in nodes for node in found if _recurs(node)]
    if not steps:
        return []  # no query answers where nothing comes
    answers = [step for plan in (*plans, *later) for step in _answer_steps(plan.root)]
    shortest = min([*answers, MANY_STEPS * min(steps)])
    period = lcm(*(_step(node) for found in nodes for node in found), *(extent.interval or 1 for extent in extents))
    reach = max((sum(_reach(node) for node in found) for found in nodes), default=0)
    lag = max((extent.wait for extent in extents), default=0)
    # A tuple from one side of the stretch must be as late, or as far ahead, as it was; and one that is no longer kept stays forgotten.
    limits = [limit for extent in extents for limit in (extent.horizon, extent.ahead) if limit is not None]
    read = {extent for plan in (*plans, *later) for extent in find_history_extents(plan.root)}
    limits += [find_retention(extent, tick_ms, extent in read) for extent in extents]
    kept = max([reach, *limits]) + 2 * lag + 6 * period + 3
    stretches = []
    for last, following in wide:
        removed = (following - last - kept) // period * period
        if removed // shortest >= least:
            shown = last + reach + lag + 2 * period
            stretches.append(QuietStretch(shown, following - lag - period - 1, removed, period, lag))
    return stretches


def count_steps(gaps: Iterable[tuple[int, int]], plans: Sequence[Plan]) -> int:
    """Return how many steps, such as windows or epochs, an operator at most has in one of the gaps."""
    steps = [_step(node) for plan in plans for node in walk(plan.root) if _recurs(node)]
    return max((following - last for last, following in gaps), default=0) // min(steps) if steps else 0


def _step(node: PlanNode) -> int:
    """After how many ticks an operator does the same again."""
    match node:
        case LandmarkWindow(rows=True):
            return 1
        case TimeWindow(slide=step) | LandmarkWindow(slide=step) | StreamAcquire(interval=step) | Scan(interval=step):
            return step
    return 1


def _recurs(node: PlanNode) -> bool:
    """Whether an operator has a window, an epoch or a scan at regular ticks, though nothing comes."""
    return isinstance(node, TimeWindow | LandmarkWindow | StreamAcquire | Scan) and not getattr(node, "rows", False)


def _answer_steps(node: PlanNode) -> list[int]:
    """After how many ticks a query answers again, though nothing comes: one number for each input that says so."""
    if _recurs(node):
        return [_step(node)]
    return [] if isinstance(node, RowWindow) else [step for child in node.children for step in _answer_steps(child)]


def _reach(node: PlanNode) -> int:
    """For how many ticks an operator can change its result after its input has changed."""
    return _step(node) - (node.begin if isinstance(node, TimeWindow) else 0)


def _is_timeless(plan: Plan) -> bool:
    """Return whether a query answers the same, at other ticks, if a stretch in which nothing comes is shorter.

    What it names of ticks is restored (`restored_ticks.py`).
    """
    options = replace(plan.options, acquire_every=None, lifetime=None, since=None, run_for=None, deliver_within=None)
    if options != QueryOptions():
        return False
    subqueries = find_subqueries(plan.root)
    nodes = [node for root in (plan.root, *(subquery.plan for subquery in subqueries)) for node in walk(root)]
    if not all(isinstance(node, _TIMELESS) for node in nodes):
        return False
    if plan.options.deliver_within is not None and any(isinstance(node, RowWindow | LandmarkWindow) for node in nodes):
        return False  # a late row may change which windows there are
    given = [node for node in nodes if isinstance(node, RStream) and not _is_silent(node.child)]
    if not all(node is plan.root or _is_read_evenly(node, nodes) for node in given):
        return False
    if any(isinstance(node, DStream | IStream) and _repeats_rows(node.child) for node in nodes):
        return False
    # The coverage of windows that span the stretch counts the readings that were due in it. That of windows since the start grows by as
    # much in each period, which ShownUpdates makes up for; that of rows grows in none of the windows of the stretch.
    spanning = [node for node in nodes if isinstance(node, RowWindow | LandmarkWindow)]
    counting = [node for node in spanning if any(isinstance(below, StreamAcquire) for below in walk(node))]
    grows_evenly = all(isinstance(node, LandmarkWindow) and not node.rows for node in counting)
    return not counting or (grows_evenly and not any(isinstance(node, DStream | IStream | RStream) for node in nodes))


def _repeats_rows(node: PlanNode) -> bool:
    """Return whether a tick may have several windows of rows, each combined with a window that recurs: these differ at each tick."""
    for product in walk(node):
        if isinstance(product, WindowCrossProduct):
            rows = [each for each in product.inputs if isinstance(each, RowWindow) or getattr(each, "rows", False)]
            if rows and any(map(_recurs, product.inputs)):
                return True
    return False


def _is_read_evenly(stream: RStream, nodes: Iterable[PlanNode]) -> bool:
    """Return whether windows of time hold as many tuples of an RSTREAM at each tick, and nothing names how these differ."""
    if any(columns_of(expression) & set(stream.tags) for node in nodes for expression in node.expressions):
        return False
    period = lcm(*(_step(node) for node in walk(stream.child)))
    reader = _find_reader(stream, nodes)
    while isinstance(reader, StreamProject | StreamSelect):
        reader = _find_reader(reader, nodes)
    return isinstance(reader, TimeWindow) and reader.slide % period == 0


def _find_reader(node: PlanNode, nodes: Iterable[PlanNode]) -> PlanNode | None:
    return next((each for each in nodes if any(child is node for child in each.children)), None)


def _is_silent(node: PlanNode) -> bool:
    """Return whether windows have no rows, or do not come at all, while nothing is recorded."""
    match node:
        case TimeWindow() | RowWindow():
            return not any(isinstance(below, RStream) and not _is_silent(below.child) for below in walk(node))
        case Once():
            return True
        case WindowSelect(child=child) | WindowProject(child=child):
            return _is_silent(child)
        case WindowAggregation(child=child, grouped=grouped):
            return _is_silent(child) and (grouped or not any(isinstance(below, TimeWindow) for below in walk(child)))
        case WindowCrossProduct(inputs=inputs):
            return any(isinstance(each, TimeWindow) and _is_silent(each) for each in inputs)
    return False

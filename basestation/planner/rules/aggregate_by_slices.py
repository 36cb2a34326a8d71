"""Aggregates over time windows merge partial states of slices: each tuple is folded once, whatever the overlap.

The rule cuts the stream at each begin and end of a window, so each window is a run of whole slices. The aggregates must
merge exactly, or answers would depend on the cuts; sums of floats are exact and rounded once (semantics 5.5).

The rule does not apply to `late append` extents, where a late tuple belongs to only one of two windows with the same range,
nor where every window is empty. FIRST and LAST over a union use indexes that a tuple may get only after it was folded.

A for-loop has slices where t and the ends of its windows move by fixed steps.
"""

from acquisition.extent import LatePolicy
from basestation.algebra.loop_grid import find_loop_grid
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.window import LandmarkWindow, LoopEnds, LoopWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation


def aggregate_by_slices(root: PlanNode) -> PlanNode:
    return rebuild(root, _slice)


def _slice(node: PlanNode) -> PlanNode:
    if not isinstance(node, WindowAggregation) or not all(aggregate.is_mergeable for _, aggregate in node.aggregates):
        return node
    window = node.child
    begin: int | None
    loop: LoopEnds | None = None
    match window:
        case TimeWindow() if window.begin <= window.end:
            begin, end, slide = window.begin, window.end, window.slide
        case LandmarkWindow(rows=False):
            begin, end, slide = None, 0, window.slide
        case LoopWindow() if (grid := find_loop_grid(window.ends)) is not None:
            begin, end, slide, loop = None, 0, grid.slide, window.ends
        case _:
            return node
    for below in walk(window.child):
        if isinstance(below, StreamAcquire | StreamReceive) and below.extent.late is LatePolicy.APPEND:
            return node
        if isinstance(below, StreamUnion) and any(a.name in ("FIRST", "LAST") for _, a in node.aggregates):
            return node
    return SliceAggregation(node.groups, node.aggregates, begin, end, slide, window.child, node.grouped, loop)

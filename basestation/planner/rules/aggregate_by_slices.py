"""Aggregates over a window of time are merged from slices: a tuple is folded in once, however many windows hold it.

The stream is cut wherever a window begins or ends, so every window is a run of whole slices; the aggregates must merge,
and exactly (sums of floats are exact until they are rounded once, SEMANTICS 5.5), or it would show how it was cut. Not for
`late append` extents, where a tuple may be in one of two windows with the same range; nor where a window is always empty.
FIRST and LAST over a union go by indexes that tuples get only when they enter it, which may be after they are folded in.
"""

from acquisition.extent import LatePolicy
from basestation.algebra.node import rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.window import LandmarkWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation


def aggregate_by_slices(root):
    return rebuild(root, _slice)


def _slice(node):
    if not isinstance(node, WindowAggregation) or not all(aggregate.is_mergeable for _, aggregate in node.aggregates):
        return node
    window = node.child
    match window:
        case TimeWindow(begin=begin, end=end, slide=slide) if begin <= end:
            pass
        case LandmarkWindow(slide=slide, rows=False):
            begin, end = None, 0
        case _:
            return node
    for below in walk(window.child):
        if isinstance(below, StreamAcquire | StreamReceive) and below.extent.late is LatePolicy.APPEND:
            return node
        if isinstance(below, StreamUnion) and any(
            aggregate.name in ("FIRST", "LAST") for _, aggregate in node.aggregates
        ):
            return node
    return SliceAggregation(node.groups, node.aggregates, begin, end, slide, window.child, node.grouped)

"""A join of two equal time windows on their ticks becomes one time window over a join tick by tick.

A pair of tuples with tick t is in the join of the windows at w exactly if t is in range, which is the same on both sides.
So each pair is found once, not once for each window that contains it. The rule needs:

* windows with the same range and slide, so that they combine at every w, and only there;
* a key that equates the ticks, or windows of one tick such as [NOW];
* extents whose late tuples belong to windows by their tick alone; `late append` considers the arrival too (semantics 3.6).

A further condition of the join becomes a selection over the pairs.
"""

from collections.abc import Callable, Collection

from acquisition.extent import LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode, WindowNode, rebuild, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_join import WindowJoin


def join_below_window(root: PlanNode) -> PlanNode:
    return rebuild(root, _push)


def restrict_to_ticks(ticks: Collection[Column]) -> Callable[[PlanNode], PlanNode]:
    """The same rule, but only for joins whose left streams have one of these tick columns."""

    def join_below_window(root: PlanNode) -> PlanNode:
        return rebuild(root, lambda node: after if _tick_of(after := _push(node)) in ticks else node)

    return join_below_window


def _tick_of(window: PlanNode) -> Column | None:
    """The tick column of the stream below a time window; None for other nodes."""
    return window.child.tags[0] if isinstance(window, TimeWindow) else None


def _push(node: PlanNode) -> PlanNode:
    if not (isinstance(node, WindowJoin) and len(node.inputs) == 2):
        return node
    left, right = node.inputs
    if not (isinstance(left, TimeWindow) and isinstance(right, TimeWindow)):
        return node
    if (left.begin, left.end, left.slide) != (right.begin, right.end, right.slide):
        return node
    if any(_considers_arrival(side) for side in (left, right)):
        return node
    ticks = tick_columns(left.child), tick_columns(right.child)
    on_tick = [key for key in node.keys if _is(key[0], ticks[0]) and _is(key[1], ticks[1])]
    if not on_tick and left.begin != left.end:
        return node
    keys = tuple(key for key in node.keys if key not in on_tick[:1])
    joined = StreamJoin(keys, left.child, right.child, left.child.tags)
    stream = joined if node.residual is None else StreamSelect(node.residual, joined)
    return TimeWindow(stream, left.begin, left.end, left.slide)


def _considers_arrival(window: WindowNode) -> bool:
    return any(
        isinstance(below, StreamAcquire | StreamReceive) and below.extent.late is LatePolicy.APPEND
        for below in walk(window)
    )


def _is(side: Expression, columns: Collection[Column]) -> bool:
    return isinstance(side, ex.Attr) and side.column in columns


def tick_columns(stream: StreamNode) -> set[Column]:
    """The columns of a stream that hold the tick of the tuple: its tag, and plain copies of it."""
    match stream:
        case StreamAcquire(extent=extent, attributes=attributes):
            named = extent.time_attribute
            return {stream.tags[0]} | {c for c in attributes if named and c.name == named.name}
        case StreamReceive() | Converter():
            return {stream.tags[0]}
        case StreamSelect(child=child):
            return tick_columns(child)
        case StreamProject(outputs=outputs, child=child):
            below = tick_columns(child)
            return {stream.tags[0]} | {column for column, e in outputs if _is(e, below)}
    return {stream.tags[0]}

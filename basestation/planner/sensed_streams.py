"""Sensed streams: the acquisitions below a stream of selections, projections and joins, and its columns as expressions over them."""

from acquisition.extent import LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin

_NOT_TIME_WINDOWS = "its sides are not both time windows over sensed extents"


def explain_window_join(node: WindowJoin | WindowCrossProduct) -> str:
    """Why `join_below_window` does not apply to a join of windows."""
    if len(node.inputs) > 2:
        return "it joins more than two windows, and motes pair two readings"
    left, right = node.inputs
    if not isinstance(left, TimeWindow) or not isinstance(right, TimeWindow):
        return _NOT_TIME_WINDOWS
    acquired = find_acquires_below(left.child), find_acquires_below(right.child)
    if acquired[0] is None or acquired[1] is None:
        return _NOT_TIME_WINDOWS
    if isinstance(node, WindowCrossProduct):
        return "it pairs readings of all sites"
    if (left.begin, left.end, left.slide) != (right.begin, right.end, right.slide):
        return "its windows do not hold the same ticks"
    if any(a.extent.late is LatePolicy.APPEND for a in (*acquired[0], *acquired[1])):
        return "of a `late append` extent, its arrival decides which windows hold a reading"
    return "it pairs readings of different ticks"


def find_acquires_below(node: PlanNode) -> list[StreamAcquire] | None:
    """The acquisitions below a stream of selections, projections and joins; None if it has other operators."""
    match node:
        case StreamAcquire():
            return [node]
        case StreamSelect(child=child) | StreamProject(child=child):
            return find_acquires_below(child)
        case StreamJoin(left=left, right=right):
            below = find_acquires_below(left), find_acquires_below(right)
            return None if below[0] is None or below[1] is None else [*below[0], *below[1]]
    return None


def acquires_of(node: PlanNode) -> list[StreamAcquire]:
    """The acquisitions below a stream that has no other operators."""
    found = find_acquires_below(node)
    if found is None:
        raise TypeError(f"no stream of readings: {node!r}")
    return found


def acquired_values(node: PlanNode) -> dict[Column, Expression]:
    """The columns of a stream as expressions over acquired columns."""
    match node:
        case StreamProject(outputs=outputs, child=child):
            below = acquired_values(child)
            return {column: ex.substitute(e, below) for column, e in outputs}
        case StreamSelect(child=child):
            return acquired_values(child)
        case StreamJoin(left=left, right=right):
            return {**acquired_values(left), **acquired_values(right)}
    return {}

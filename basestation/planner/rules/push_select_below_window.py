"""A selection over a time window moves below it: only its tick decides whether a tuple is in range.

The rule does not apply to row windows: `[FROM NOW-2 TO NOW SLIDE 1 ROW]` counts the tuples of its stream (semantics 3.7),
and a selection below would change the count. Coverage counts due readings, selected or not (12.3), so it stays the same.
"""

from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import LandmarkWindow, LoopWindow, StreamWindow, TimeWindow
from basestation.algebra.window_select import WindowSelect


def push_select_below_window(root: PlanNode) -> PlanNode:
    return rebuild(root, _push)


def _push(node: PlanNode) -> PlanNode:
    if isinstance(node, WindowSelect) and isinstance(node.child, StreamWindow) and is_time_based(node.child):
        window = node.child
        return window.with_children((StreamSelect(node.predicate, window.child),))
    return node


def is_time_based(node: PlanNode) -> bool:
    """Whether the node is a window that selects tuples by their ticks."""
    match node:
        case TimeWindow():
            return True
        case LandmarkWindow(rows=rows):
            return not rows
        case LoopWindow(loop=loop):
            return not loop.rows
    return False

"""A selection over a window of time is the window of a selection: whether a tuple is in range depends on its tick alone.

Not over rows: `[FROM NOW-2 TO NOW SLIDE 1 ROW]` counts the tuples it is written on (SEMANTICS 3.7), and a selection
below would change which ones those are. Coverage is over what was due, whatever was selected (12.3), so it stays.
"""

from basestation.algebra.node import rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import LandmarkWindow, LoopWindow, TimeWindow
from basestation.algebra.window_select import WindowSelect


def push_select_below_window(root):
    return rebuild(root, _push)


def _push(node):
    if isinstance(node, WindowSelect) and is_time_based(node.child):
        window = node.child
        return window.with_children((StreamSelect(node.predicate, window.child),))
    return node


def is_time_based(node):
    """A window whose tuples are chosen by their ticks."""
    match node:
        case TimeWindow():
            return True
        case LandmarkWindow(rows=rows):
            return not rows
        case LoopWindow(loop=loop):
            return not loop.rows
    return False

"""A projection over a window moves below it: each tuple is computed once, not once for each window that contains it.

A projection changes neither tick nor row number, so the rule holds for windows of time and of rows.
"""

from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window import StreamWindow
from basestation.algebra.window_project import WindowProject


def push_project_below_window(root: PlanNode) -> PlanNode:
    return rebuild(root, _push)


def _push(node: PlanNode) -> PlanNode:
    if isinstance(node, WindowProject) and isinstance(node.child, StreamWindow):
        window = node.child
        return window.with_children((StreamProject(node.outputs, window.child),))
    return node

"""A projection over a window is the window of a projection: each tuple is computed once, not in every window that holds it.

A projection changes neither tick nor row number, so this holds for windows of time and of rows alike.
"""

from basestation.algebra.node import rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window import StreamWindow
from basestation.algebra.window_project import WindowProject


def push_project_below_window(root):
    return rebuild(root, _push)


def _push(node):
    if isinstance(node, WindowProject) and isinstance(node.child, StreamWindow):
        window = node.child
        return window.with_children((StreamProject(node.outputs, window.child),))
    return node

"""A selection over a projection is the projection of a selection: the predicate is asked of what the columns come from.

A projection neither drops nor adds tuples, and keeps tick, index and arrival.
"""

from basestation.algebra.expressions import substitute
from basestation.algebra.node import rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect


def push_select_below_project(root):
    return rebuild(root, _push)


def _push(node):
    for select, project in ((StreamSelect, StreamProject), (WindowSelect, WindowProject)):
        if isinstance(node, select) and isinstance(node.child, project):
            below = select(substitute(node.predicate, dict(node.child.outputs)), node.child.child)
            return project(node.child.outputs, below)
    return node

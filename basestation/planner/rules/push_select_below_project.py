"""A selection over a projection is the projection of a selection: the predicate is asked of what the columns come from.

A projection neither drops nor adds tuples, and keeps tick, index and arrival. Not where the predicate reads a computed
column more than once: it would be computed more than once, and twice as often at each level.
"""

from basestation.algebra.expressions import is_computed_once, substitute
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
            below = dict(node.child.outputs)
            if not is_computed_once((node.predicate,), below):
                return node
            return project(node.child.outputs, select(substitute(node.predicate, below), node.child.child))
    return node

"""A projection of a projection is one: the upper expressions are asked of what the lower columns come from.

Not where a computed column is read more than once: it would be computed more than once, and twice as often at each level.
"""

from basestation.algebra.expressions import is_computed_once, substitute
from basestation.algebra.node import rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window_project import WindowProject


def merge_projects(root):
    return rebuild(root, _merge)


def _merge(node):
    for project in (StreamProject, WindowProject):
        if isinstance(node, project) and isinstance(node.child, project):
            below = dict(node.child.outputs)
            if not is_computed_once(node.expressions, below):
                return node
            return project(tuple((column, substitute(e, below)) for column, e in node.outputs), node.child.child)
    return node

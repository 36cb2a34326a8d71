"""A projection of a projection is one: the upper expressions are asked of what the lower columns come from."""

from basestation.algebra.expressions import substitute
from basestation.algebra.node import rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window_project import WindowProject


def merge_projects(root):
    return rebuild(root, _merge)


def _merge(node):
    for project in (StreamProject, WindowProject):
        if isinstance(node, project) and isinstance(node.child, project):
            below = dict(node.child.outputs)
            return project(tuple((column, substitute(e, below)) for column, e in node.outputs), node.child.child)
    return node

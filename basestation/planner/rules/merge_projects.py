"""A projection over a projection becomes one: the upper expressions are computed from the columns below both.

The rule does not apply where a computed column is read more than once: the merged projection would compute it each time.
"""

from dataclasses import replace

from basestation.algebra.expressions import is_computed_once, substitute
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window_project import WindowProject


def merge_projects(root: PlanNode) -> PlanNode:
    return rebuild(root, _merge)


def _merge(node: PlanNode) -> PlanNode:
    match node:
        case StreamProject(child=StreamProject() as lower) | WindowProject(child=WindowProject() as lower):
            below = dict(lower.outputs)
            if is_computed_once(node.expressions, below):
                return replace(lower, outputs=tuple((column, substitute(e, below)) for column, e in node.outputs))
    return node

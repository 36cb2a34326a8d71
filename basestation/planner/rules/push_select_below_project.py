"""A selection over a projection moves below it: its predicate is computed from the columns below both.

A projection neither drops nor adds tuples, and it keeps tick, index and arrival. The rule does not apply where the
predicate reads a computed column more than once: it would compute the column each time.
"""

from dataclasses import replace

from basestation.algebra.expressions import is_computed_once, substitute
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect


def push_select_below_project(root: PlanNode) -> PlanNode:
    return rebuild(root, _push)


def _push(node: PlanNode) -> PlanNode:
    match node:
        case StreamSelect(child=StreamProject() as project):
            below = dict(project.outputs)
            if is_computed_once((node.predicate,), below):
                return replace(project, child=StreamSelect(substitute(node.predicate, below), project.child))
        case WindowSelect(child=WindowProject() as over):
            below = dict(over.outputs)
            if is_computed_once((node.predicate,), below):
                return replace(over, child=WindowSelect(substitute(node.predicate, below), over.child))
    return node

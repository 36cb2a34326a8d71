"""A selection whose predicate is always true is dropped. One that is never true stays: its empty windows are answers."""

from basestation.algebra.expressions import Truth
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_select import WindowSelect


def drop_true_select(root: PlanNode) -> PlanNode:
    return rebuild(root, _drop)


def _drop(node: PlanNode) -> PlanNode:
    if isinstance(node, StreamSelect | WindowSelect) and node.predicate == Truth(True):
        return node.child
    return node

"""Two selections in a row become one with the conjuncts of both.

No conjunct can fail on a tuple that another conjunct rejects: expressions are total, and a division by zero is null.
"""

from dataclasses import replace

from basestation.algebra.expressions import conjunction
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_select import WindowSelect


def merge_selects(root: PlanNode) -> PlanNode:
    return rebuild(root, _merge)


def _merge(node: PlanNode) -> PlanNode:
    match node:
        case StreamSelect(child=StreamSelect() as lower) | WindowSelect(child=WindowSelect() as lower):
            return replace(lower, predicate=conjunction((lower.predicate, node.predicate)))
    return node

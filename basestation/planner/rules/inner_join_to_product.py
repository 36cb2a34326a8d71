"""An inner join of tables becomes a selection over their product, in which other rules find the keys."""

from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.one_off import TableJoin
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_select import WindowSelect


def inner_join_to_product(root: PlanNode) -> PlanNode:
    return rebuild(root, _flat)


def _flat(node: PlanNode) -> PlanNode:
    if isinstance(node, TableJoin) and node.kind == "INNER":
        return WindowSelect(node.condition, WindowCrossProduct((node.left, node.right)))
    return node

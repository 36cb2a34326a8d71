"""An inner join of tables is a selection over their product; from there the other rewrites find its keys."""

from basestation.algebra.node import rebuild
from basestation.algebra.one_off import TableJoin
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_select import WindowSelect


def inner_join_to_product(root):
    return rebuild(root, _flat)


def _flat(node):
    if isinstance(node, TableJoin) and node.kind == "INNER":
        return WindowSelect(node.condition, WindowCrossProduct((node.left, node.right)))
    return node

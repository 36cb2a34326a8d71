"""A product inside a product becomes one product: any bracketing gives the same windows (semantics 4.5)."""

from basestation.algebra.node import PlanNode, WindowNode, rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct


def flatten_products(root: PlanNode) -> PlanNode:
    return rebuild(root, _flat)


def _flat(node: PlanNode) -> PlanNode:
    if isinstance(node, WindowCrossProduct) and any(isinstance(i, WindowCrossProduct) for i in node.inputs):
        return WindowCrossProduct(tuple(inner for i in node.inputs for inner in _inputs(i)))
    return node


def _inputs(node: WindowNode) -> tuple[WindowNode, ...]:
    return node.inputs if isinstance(node, WindowCrossProduct) else (node,)

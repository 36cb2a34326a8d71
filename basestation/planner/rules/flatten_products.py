"""A product in a product is one product: any bracketing gives the same windows (SEMANTICS 4.5), the leftmost slowest."""

from basestation.algebra.node import rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct


def flatten_products(root):
    return rebuild(root, _flat)


def _flat(node):
    if isinstance(node, WindowCrossProduct) and any(isinstance(i, WindowCrossProduct) for i in node.inputs):
        return WindowCrossProduct(tuple(inner for i in node.inputs for inner in _inputs(i)))
    return node


def _inputs(node):
    return node.inputs if isinstance(node, WindowCrossProduct) else (node,)

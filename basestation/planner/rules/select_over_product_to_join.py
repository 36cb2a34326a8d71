"""Equalities between inputs of a product make it a join: only the pairs that agree are put together.

An equality with null on a side is unknown, and the product's selection would drop the pair; so the join leaves nulls
out. The pairs come in the order of the product.
"""

from basestation.algebra.expressions import Compare, columns_of, conjunction, conjuncts
from basestation.algebra.node import rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect


def select_over_product_to_join(root):
    return rebuild(root, _join)


def _join(node):
    if not (isinstance(node, WindowSelect) and isinstance(node.child, WindowCrossProduct)):
        return node
    inputs = node.child.inputs
    keys, rest = [], []
    for term in conjuncts(node.predicate):
        key = _key(term, inputs)
        (keys if key else rest).append(key or term)
    if not keys:
        return node
    return WindowJoin(inputs, tuple(keys), conjunction(rest) if rest else None)


def _key(term, inputs):
    """The sides of an equality between two inputs, that of the earlier input first; None if the term is none."""
    if not (isinstance(term, Compare) and term.op == "="):
        return None
    homes = [_home(side, inputs) for side in (term.left, term.right)]
    if None in homes or homes[0] == homes[1]:
        return None
    return (term.left, term.right) if homes[0] < homes[1] else (term.right, term.left)


def _home(side, inputs):
    """Which input a side is over; None where it is over several, or over no column."""
    needs = columns_of(side)
    return next((i for i, child in enumerate(inputs) if needs and needs <= set(child.columns)), None)

"""A selection with equalities between inputs of a product becomes a join, which forms only the pairs that agree.

An equality with a null on one side is unknown, and the selection would drop the pair; so the join drops nulls. The pairs
have the order of the product.
"""

from collections.abc import Sequence

from basestation.algebra.expression import Expression
from basestation.algebra.expressions import Compare, columns_of, conjunction, conjuncts
from basestation.algebra.node import PlanNode, WindowNode, rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect


def select_over_product_to_join(root: PlanNode) -> PlanNode:
    return rebuild(root, _join)


def _join(node: PlanNode) -> PlanNode:
    if not (isinstance(node, WindowSelect) and isinstance(node.child, WindowCrossProduct)):
        return node
    inputs = node.child.inputs
    keys: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for term in conjuncts(node.predicate):
        key = _key(term, inputs)
        if key is None:
            rest.append(term)
        else:
            keys.append(key)
    if not keys:
        return node
    return WindowJoin(inputs, tuple(keys), conjunction(rest) if rest else None)


def _key(term: Expression, inputs: Sequence[WindowNode]) -> tuple[Expression, Expression] | None:
    """The sides of an equality between two inputs, that of the earlier input first; None for another term."""
    if not (isinstance(term, Compare) and term.op == "="):
        return None
    left, right = _home(term.left, inputs), _home(term.right, inputs)
    if left is None or right is None or left == right:
        return None
    return (term.left, term.right) if left < right else (term.right, term.left)


def _home(side: Expression, inputs: Sequence[WindowNode]) -> int | None:
    """The input that a side is over; None where it is over several, or over no column."""
    needs = columns_of(side)
    return next((i for i, child in enumerate(inputs) if needs and needs <= set(child.columns)), None)

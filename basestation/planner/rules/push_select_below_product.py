"""A conjunct over one input of a product moves to that input, below the product.

A pair passes such a conjunct exactly if its tuple of that input does. A window that becomes empty is still a window
(semantics 3.5), so windows combine as before. A conjunct without columns stays above. No conjunct moves below an outer
join, which must keep tuples without a partner.
"""

from basestation.algebra.expression import Expression
from basestation.algebra.expressions import columns_of, conjunction, conjuncts
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect


def push_select_below_product(root: PlanNode) -> PlanNode:
    return rebuild(root, _push)


def _push(node: PlanNode) -> PlanNode:
    if not (isinstance(node, WindowSelect) and isinstance(node.child, WindowCrossProduct | WindowJoin)):
        return node
    product = node.child
    below: list[list[Expression]] = [[] for _ in product.inputs]
    above: list[Expression] = []
    for term in conjuncts(node.predicate):
        needs = columns_of(term)
        home = [i for i, child in enumerate(product.inputs) if needs and needs <= set(child.columns)]
        (below[home[0]] if home else above).append(term)
    if not any(below):
        return node
    inputs = tuple(
        WindowSelect(conjunction(terms), child) if terms else child
        for child, terms in zip(product.inputs, below, strict=True)
    )
    product = product.with_children(inputs)
    return WindowSelect(conjunction(above), product) if above else product

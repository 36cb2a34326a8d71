"""Conjuncts over one input of a product are asked of that input, before anything is combined.

The tuples of a combination are all pairs; a pair passes such a conjunct exactly if its part does. An input's window
that becomes empty is still a window (SEMANTICS 3.5), so windows combine as before. What speaks of no column at all
stays above. Nothing is pushed below an outer join: a tuple without a partner must stay one.
"""

from basestation.algebra.expressions import columns_of, conjunction, conjuncts
from basestation.algebra.node import rebuild
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect


def push_select_below_product(root):
    return rebuild(root, _push)


def _push(node):
    if not (isinstance(node, WindowSelect) and isinstance(node.child, WindowCrossProduct | WindowJoin)):
        return node
    product = node.child
    below = [[] for _ in product.inputs]
    above = []
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

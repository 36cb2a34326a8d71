"""Found: where a block has a join that can be computed over state modules, and that join."""

from basestation.algebra.expressions import columns_of
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.joins.join_inputs import make_join_input
from basestation.execution.joins.join_operator import JoinOperator


def find_join(node, leaves):
    """(the node of the join in a block, [(place of a leaf, what is between it and the join), …]); None without such a join."""
    above = None
    while isinstance(node, WindowSelect | WindowProject | WindowAggregation):
        above, node = node, node.child
    if not isinstance(node, WindowJoin | WindowCrossProduct):
        return None
    found = [_below(child, leaves) for child in node.inputs]
    if None in found:
        return None
    chosen = isinstance(above, WindowSelect) and isinstance(node, WindowCrossProduct)
    return above if chosen else node, found


def make_join(root, joined, inputs, leaves, shown):
    """The Join that `find_join` found in a block, over its inputs. Of what is joined only, others say what is `shown`."""
    node, found = joined
    sides = [make_join_input(inputs[place], leaves[place], steps) for place, steps in found]
    if shown and root is node:
        return JoinOperator(node, sides, (), False)
    return JoinOperator(node, sides, _asked(root, node), _ordered(root, node))


def _ordered(root, below):
    """Whether the order of a node's rows counts: not to aggregates without groups (5.5)."""
    counts = True
    while root is not below:
        if isinstance(root, WindowAggregation):
            counts = root.grouped
        root = root.child
    return counts


def _asked(root, below):
    """The columns of a node that are named above it, up to a root, or handed on by that."""
    asked = {column.id for column in root.columns}
    while root is not below:
        asked |= {c.id for e in root.expressions for c in columns_of(e)}
        root = root.child
    return asked


def _below(node, leaves):
    """(place of the leaf, the selections and projections above it, the lowest first); None where there is something else."""
    steps = []
    while isinstance(node, WindowSelect | WindowProject):
        steps.append(node)
        node = node.child
    place = next((place for place, leaf in enumerate(leaves) if leaf is node), None)
    return None if place is None else (place, tuple(reversed(steps)))

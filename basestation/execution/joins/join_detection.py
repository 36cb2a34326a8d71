"""Join detection: whether a block has a join that can be computed over state modules, and that join."""

from collections.abc import Sequence

from basestation.algebra.expressions import columns_of
from basestation.algebra.node import PlanNode
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.interfaces import WindowSource
from basestation.execution.joins.join_inputs import Steps, make_join_input
from basestation.execution.joins.join_operator import JoinNode, JoinOperator

DetectedJoin = tuple[JoinNode, list[tuple[int, Steps]]]
"""(the node of a join; for each of its inputs the position of a leaf, and the steps between that and the join)."""


def find_join(node: PlanNode, leaves: Sequence[PlanNode]) -> DetectedJoin | None:
    """The join of a block; None without such a join."""
    above: PlanNode | None = None
    while isinstance(node, WindowSelect | WindowProject | WindowAggregation):
        above, node = node, node.child
    if not isinstance(node, WindowJoin | WindowCrossProduct):
        return None
    found = [below for child in node.inputs if (below := _find_leaf(child, leaves)) is not None]
    if len(found) < len(node.inputs):
        return None
    if isinstance(above, WindowSelect) and isinstance(node, WindowCrossProduct):
        return above, found
    return node, found


def make_join(
    root: PlanNode,
    detected: DetectedJoin,
    inputs: Sequence[WindowSource],
    leaves: Sequence[PlanNode],
    shown: bool,
) -> JoinOperator:
    """The JoinOperator that `find_join` found. With `shown`, views say which columns of a plain join they read."""
    node, found = detected
    join_inputs = [make_join_input(inputs[place], leaves[place], steps) for place, steps in found]
    if shown and root is node:
        return JoinOperator(node, join_inputs, (), False)
    return JoinOperator(node, join_inputs, _columns_read(root, node), _is_ordered(root, node))


def _is_ordered(root: PlanNode, below: PlanNode) -> bool:
    """Whether the order of a node's rows counts: not below aggregates without groups (5.5)."""
    ordered = True
    while root is not below:
        if isinstance(root, WindowAggregation):
            ordered = root.grouped
        [root] = root.children
    return ordered


def _columns_read(root: PlanNode, below: PlanNode) -> set[int]:
    """The columns of a node that nodes above it read, up to the root, or that the root hands on."""
    read = {column.id for column in root.columns}
    while root is not below:
        read |= {c.id for e in root.expressions for c in columns_of(e)}
        [root] = root.children
    return read


def _find_leaf(node: PlanNode, leaves: Sequence[PlanNode]) -> tuple[int, Steps] | None:
    """(the position of a leaf; the selections and projections above it, the lowest first). None if there is more."""
    steps: list[WindowSelect | WindowProject] = []
    while isinstance(node, WindowSelect | WindowProject):
        steps.append(node)
        node = node.child
    place = next((place for place, leaf in enumerate(leaves) if leaf is node), None)
    return None if place is None else (place, tuple(reversed(steps)))

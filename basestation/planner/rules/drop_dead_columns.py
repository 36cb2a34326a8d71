"""Operators carry only the columns that an operator above reads, and motes sample only these.

Columns stay where they decide which tuples are equal. That is below DISTINCT and below converters, where fewer columns
would make more tuples equal. RSTREAM is no exception: a revision that retracts a tuple and adds another changes the row
numbers that row windows above count. Columns also stay below a union, which matches them by position.
"""

from dataclasses import replace

from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column
from basestation.algebra.node import PlanNode
from basestation.algebra.one_off import Distinct, TableUnion
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject

_LEAVES = StreamAcquire | StreamReceive | Scan | Once
_ALL_MATTER = Converter | Distinct | TableUnion | StreamUnion


def drop_dead_columns(root: PlanNode) -> PlanNode:
    return _drop(root, frozenset(root.columns))


def _drop(node: PlanNode, needed: frozenset[Column]) -> PlanNode:
    """The node with only the needed columns; the same object if it needs all."""
    if isinstance(node, _LEAVES):
        kept = tuple(c for c in node.attributes if c in needed)
        return node if len(kept) == len(node.attributes) else replace(node, attributes=kept)
    if isinstance(node, StreamProject | WindowProject):
        outputs = tuple(pair for pair in node.outputs if pair[0] in needed)
        node = node if len(outputs) == len(node.outputs) else replace(node, outputs=outputs)
        needed = frozenset()
    elif isinstance(node, WindowAggregation | SliceAggregation):
        aggregates = tuple(pair for pair in node.aggregates if pair[0] in needed)
        node = node if len(aggregates) == len(node.aggregates) else replace(node, aggregates=aggregates)
        needed = frozenset()
    below = needed.union(*(ex.columns_of(e) for e in node.expressions))
    children = node.children
    if isinstance(node, _ALL_MATTER):
        changed = tuple(_drop(child, below | frozenset(child.columns)) for child in children)
    else:
        changed = tuple(_drop(child, below) for child in children)
    if all(new is old for new, old in zip(changed, children, strict=True)):
        return node
    return node.with_children(changed)

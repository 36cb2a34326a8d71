"""Invariants of every plan. The tests check them after binding and after each rewrite."""

from collections.abc import Iterator

from basestation.algebra.expressions import Aggregate, columns_of
from basestation.algebra.expressions import walk as walk_expression
from basestation.algebra.node import PlanNode, StreamNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import StreamWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_select import WindowSelect


def find_violations(root: PlanNode) -> list[str]:
    """One sentence for each invariant that a node of the plan violates."""
    return [sentence for node in walk(root) for sentence in _violations(node)]


def _violations(node: PlanNode) -> Iterator[str]:
    name = type(node).__name__
    available = {c for child in node.children for c in child.columns}
    available |= {c for child in node.children if isinstance(child, StreamNode) for c in child.tags}
    for expression in node.expressions:
        missing = columns_of(expression) - available
        if missing:
            yield f"{name} reads {', '.join(sorted(map(str, missing)))}, which no child gives"
        inner = expression.parts if isinstance(node, WindowAggregation | SliceAggregation) else (expression,)
        if any(isinstance(e, Aggregate) for part in inner for e in walk_expression(part)):
            yield f"{name} evaluates an aggregate"
    if isinstance(node, StreamSelect | WindowSelect) and not node.predicate.is_predicate:
        yield f"{name} selects by a value"
    ids = [c.id for c in node.columns]
    if len(set(ids)) < len(ids):
        yield f"{name} gives a column twice"
    accepts_streams = isinstance(node, StreamWindow | SliceAggregation | StreamNode)
    for child in node.children:
        if isinstance(node, StreamWindow | SliceAggregation | StreamSelect) and not isinstance(child, StreamNode):
            yield f"{name} reads {type(child).__name__}, which is no stream"
        if not accepts_streams and isinstance(child, StreamNode):
            yield f"{name} reads {type(child).__name__}, which has no windows"
    if isinstance(node, Scan | Once) and node.children:
        yield f"{name} has children"

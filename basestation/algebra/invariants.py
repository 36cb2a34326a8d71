"""Invariants: what is true of every plan. The tests check it after binding and after each rewrite."""

from basestation.algebra.expressions import Aggregate, columns_of
from basestation.algebra.expressions import walk as walk_expression
from basestation.algebra.node import StreamNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import StreamWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_select import WindowSelect


def find_violations(root):
    """What is wrong with a plan, as sentences; empty where nothing is."""
    return [sentence for node in walk(root) for sentence in _broken(node)]


def _broken(node):
    name = type(node).__name__
    available = {c for child in node.children for c in child.columns}
    available |= {c for child in node.children if isinstance(child, StreamNode) for c in child.tags}
    for expression in node.expressions:
        missing = columns_of(expression) - available
        if missing:
            yield f"{name} reads {', '.join(sorted(map(str, missing)))}, which nothing below gives"
        inner = expression.parts if isinstance(node, WindowAggregation | SliceAggregation) else (expression,)
        if any(isinstance(e, Aggregate) for part in inner for e in walk_expression(part)):
            yield f"{name} evaluates an aggregate"
    if isinstance(node, StreamSelect | WindowSelect) and not node.predicate.predicate:
        yield f"{name} selects by a value"
    ids = [c.id for c in node.columns]
    if len(set(ids)) < len(ids):
        yield f"{name} gives a column twice"
    streams_wanted = isinstance(node, StreamWindow | SliceAggregation) or isinstance(node, StreamNode)
    for child in node.children:
        if isinstance(node, StreamWindow | SliceAggregation | StreamSelect) and not isinstance(child, StreamNode):
            yield f"{name} stands on {type(child).__name__}, which is no stream"
        if not streams_wanted and isinstance(child, StreamNode):
            yield f"{name} stands on {type(child).__name__}, which has no windows"
    if isinstance(node, Scan | Once) and node.children:
        yield f"{name} has children"

"""Columns that nothing above reads are not carried, down to what is sampled at all.

They must stay where equal tuples are told apart by all their columns: below DISTINCT and below converters, where fewer
columns would make more tuples equal (RSTREAM too: whether a revision takes a tuple back and gives another, which is then
the next row, shows in row windows above); and below a union, whose columns match by position.
"""

from dataclasses import replace

from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
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


def drop_dead_columns(root):
    return _drop(root, frozenset(root.columns))


def _drop(node, needed):
    """The node with no columns but the needed ones; the same object where all are."""
    if isinstance(node, _LEAVES):
        kept = tuple(c for c in node.attributes if c in needed)
        return node if len(kept) == len(node.attributes) else replace(node, attributes=kept)
    if isinstance(node, StreamProject | WindowProject):
        kept = tuple(pair for pair in node.outputs if pair[0] in needed)
        node = node if len(kept) == len(node.outputs) else replace(node, outputs=kept)
        needed = frozenset()
    elif isinstance(node, WindowAggregation | SliceAggregation):
        kept = tuple(pair for pair in node.aggregates if pair[0] in needed)
        node = node if len(kept) == len(node.aggregates) else replace(node, aggregates=kept)
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
